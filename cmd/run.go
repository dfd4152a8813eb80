package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

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
}

// exit returns the error that attest ends with, where err is what kept the
// outcome from being recorded.
func (o outcome) exit(err error) error {
	if o.err != nil {
		err = errors.Join(o.err, err)
	}
	switch {
	case o.code != 0:
		return &exitError{o.code, err}
	case err != nil && o.ran:
		return fmt.Errorf("the command passed, but that is not recorded: %w", err)
	}
	return err
}

// runCommand runs the command of an attestation with ledgerd's own input and
// output, and passes on the signals that ledgerd gets.
func (p *program) runCommand(a *attestation) outcome {
	if len(a.command) == 0 {
		now := time.Now()
		return outcome{status: a.status, started: now, finished: now}
	}
	command := exec.Command(a.command[0], a.command[1:]...)
	command.Stdin, command.Stdout, command.Stderr = p.stdin, p.stdout, p.stderr

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
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
			if !fromTerminal(s) {
				// A command that has just ended needs it no more.
				_ = command.Process.Signal(s)
			}
			continue
		case err := <-done:
			o.finished = time.Now()
			return o.finish(err)
		}
	}
}

// fromTerminal tells whether a signal most likely came from a key press: then
// the terminal has sent it to the command too, and a second one would make
// many programs end at once without cleaning up.
func fromTerminal(s os.Signal) bool {
	return s == os.Interrupt && term.IsTerminal(int(os.Stdin.Fd()))
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
