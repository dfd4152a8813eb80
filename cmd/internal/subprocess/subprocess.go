// Package subprocess runs the command whose result an attestation reports.
package subprocess

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/ledger"
)

// exitNotStarted is the exit status that shells return for a command that they cannot
// start.
const exitNotStarted = 127

// An Outcome is how a command ended.
type Outcome struct {
	Status   ledger.Status
	Started  time.Time
	Finished time.Time
	Code     int   // the command's exit status
	Err      error // set if the command could not be started or waited for
	// NotStarted reports that the command could not be started: there is no result.
	NotStarted bool

	// Stopped is the signal that stopped ledgerd or the command, or 0. If it is set,
	// the command has neither passed nor failed.
	Stopped syscall.Signal
}

// Run runs a command and forwards SIGINT, SIGTERM and SIGHUP to it. It first removes the variables
// with tokens, the one with the webhook secret, and others, from the environment of this process for
// good. On Linux, the command cannot read them in this process either, unless it is privileged.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer, others ...string) Outcome {
	command := exec.Command(args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = stdin, stdout, stderr

	signals := make(chan os.Signal, 8)
	for _, s := range stopSignals() {
		if !signal.Ignored(s) { // nohup ignores SIGHUP
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)

	o := Outcome{Started: time.Now()}
	err := errors.Join(removeSecrets(others), hideMemory())
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		o.Finished, o.Code, o.Err, o.NotStarted = time.Now(), exitNotStarted, err, true
		return o
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	for {
		select {
		case s := <-signals:
			o.stop(s)
			if !fromTerminal(s) {
				_ = command.Process.Signal(s) // fails if the command has just ended
			}
		case err := <-done:
			o.Finished = time.Now()
			select {
			case s := <-signals: // may have stopped the command as well
				o.stop(s)
			default:
			}
			return o.finish(err)
		}
	}
}

// stopSignals returns the signals that ask a program to stop.
func stopSignals() []syscall.Signal {
	return []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
}

// stop records the first signal that stopped ledgerd or the command.
func (o *Outcome) stop(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok && o.Stopped == 0 {
		o.Stopped = number
	}
}

// removeSecrets removes the variables of the API token, of the token of a CI job and of the webhook
// secret, and others, from the environment of this process. Neither the command nor programs that
// ledgerd starts later have them: processes that the command left running can read the environment of
// these programs.
func removeSecrets(others []string) (err error) {
	for _, name := range append([]string{"LEDGERD_TOKEN", "LEDGERD_ID_TOKEN", config.WebhookSecretVariable}, others...) {
		err = errors.Join(err, os.Unsetenv(name), os.Unsetenv(name+"_FILE"))
	}
	return err
}

// fromTerminal reports whether a signal probably comes from Ctrl-C in a terminal. The
// terminal then sends it to the command as well. A second SIGINT would make many
// programs exit without cleaning up.
func fromTerminal(s os.Signal) bool {
	if s != os.Interrupt {
		return false
	}
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if term.IsTerminal(int(f.Fd())) {
			return true
		}
	}
	tty, err := os.Open("/dev/tty") // the standard streams may all be redirected
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

// finish returns the outcome completed with the result of Wait.
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

// exitCode returns the exit status of a command that failed. Like a shell, it returns
// 128 plus the signal number if a signal ended the command.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
