// Package subprocess runs the command whose outcome an attestation is about.
package subprocess

import (
	"errors"
	"io"
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

// An Outcome is how a command ended.
type Outcome struct {
	Status   ledger.Status
	Started  time.Time
	Finished time.Time
	Code     int   // the command's exit status
	Err      error // why it could not be started
	// Stopped is the signal that told ledgerd or the command to end: what the
	// command would have come to is not known.
	Stopped syscall.Signal
}

// Run runs a command and passes on the signals that this process gets. The command
// does not get the API token or the secret of a webhook.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) Outcome {
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = stdin, stdout, stderr
	command.Env = withoutToken(os.Environ())

	signals := make(chan os.Signal, 8)
	for _, s := range stopSignals() {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)

	o := Outcome{Started: time.Now()}
	if err := command.Start(); err != nil {
		o.Finished, o.Status, o.Code, o.Err = time.Now(), ledger.Errored, exitNotStarted, err
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
			o.Finished = time.Now()
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

func (o *Outcome) stop(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok && o.Stopped == 0 {
		o.Stopped = number
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
func (o Outcome) finish(err error) Outcome {
	o.Status = ledger.Pass
	if err == nil {
		return o
	}
	o.Status, o.Code = ledger.Fail, 1
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		o.Code = exitCode(e.ProcessState)
		if status, ok := e.Sys().(syscall.WaitStatus); ok && status.Signaled() &&
			slices.Contains(stopSignals(), status.Signal()) {
			o.stop(status.Signal())
		}
	} else {
		o.Err = err
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
