package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/ledger"
)

// exitNotStarted is what shells return for a command that they cannot start.
const exitNotStarted = 127

// An outcome is how a command went.
type outcome struct {
	status   ledger.Status
	started  time.Time
	finished time.Time
	ran      bool  // false where a status was given instead of a command
	code     int   // the command's exit status
	err      error // why it could not be started
	// stopped is the signal that told ledgerd or the command to end: what the
	// command would have come to is not known.
	stopped syscall.Signal
}

// exit returns the error that attest ends with, where err is what kept the
// outcome from being recorded.
func (o outcome) exit(err error) error {
	if o.err != nil {
		err = errors.Join(o.err, err)
	}
	switch {
	case o.stopped != 0:
		return &exitError{128 + int(o.stopped), fmt.Errorf("stopped by a signal (%v): nothing is recorded", o.stopped)}
	case o.code != 0:
		return &exitError{o.code, err}
	case err != nil && o.ran:
		return fmt.Errorf("the command passed, but that is not recorded: %w", err)
	}
	return err
}

// runCommand runs the command of an attestation with ledgerd's own input and
// output, and passes on the signals that ledgerd gets.
func (p *program) runCommand(a *attestRequest) outcome {
	if len(a.command) == 0 {
		now := time.Now()
		return outcome{status: a.status, started: now, finished: now}
	}
	command := exec.Command(a.command[0], a.command[1:]...)
	command.Stdin, command.Stdout, command.Stderr = p.stdin, p.stdout, p.stderr
	command.Env = withoutToken(os.Environ())

	signals := make(chan os.Signal, 8)
	for _, s := range stopSignals() {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)

	o := outcome{ran: true, started: time.Now()}
	if err := command.Start(); err != nil {
		o.finished, o.status, o.code, o.err = time.Now(), ledger.Errored, exitNotStarted, err
		return o
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	for {
		select {
		case s := <-signals:
			o.stop(s)
			if !fromTerminal(s) {
				// A command that has just ended needs it no more.
				_ = command.Process.Signal(s)
			}
		case err := <-done:
			o.finished = time.Now()
			select {
			case s := <-signals: // the one that also ended the command
				o.stop(s)
			default:
			}
			return o.finish(err)
		}
	}
}

// stopSignals are those that tell a program to end.
func stopSignals() []syscall.Signal {
	return []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
}

func (o *outcome) stop(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok && o.stopped == 0 {
		o.stopped = number
	}
}

// withoutToken returns the environment without the API token and the secret of
// a webhook.
func withoutToken(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		name = strings.TrimSuffix(name, "_FILE")
		return name == "LEDGERD_TOKEN" || name == config.WebhookSecretVariable
	})
}

// fromTerminal tells whether a signal most likely came from a key press: then
// the terminal has sent it to the command too, and a second one would make
// many programs end at once without cleaning up.
func fromTerminal(s os.Signal) bool {
	if s != os.Interrupt {
		return false
	}
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if term.IsTerminal(int(f.Fd())) {
			return true
		}
	}
	tty, err := os.Open("/dev/tty") // of a program whose files are all redirected
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

// finish notes how the command ended: err is what Wait returned.
func (o outcome) finish(err error) outcome {
	o.status = ledger.Pass
	if err == nil {
		return o
	}
	o.status, o.code = ledger.Fail, exitFailure
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		o.code = exitCode(e.ProcessState)
		if status, ok := e.Sys().(syscall.WaitStatus); ok && status.Signaled() && slices.Contains(stopSignals(), status.Signal()) {
			o.stop(status.Signal())
		}
	} else {
		o.err = err
	}
	return o
}

// exitCode returns the exit status of a command that did not pass, for one
// that a signal ended as shells do: 128 and the signal's number.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
