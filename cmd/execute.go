// Package cmd is the command line of ledgerd: a file for each command, which
// reads its flags, calls the client of the HTTP API and prints.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// The exit statuses that mean something; attest also passes on those of the
// command that it runs.
const (
	exitFailure    = 1 // it could not be done, or could not be told
	exitUsage      = 2 // the command line is wrong
	exitNotReached = 4 // gate: the commit has not reached the state; radar: an overlap of --fail-on; webhook ping: the attempt failed
	exitGaveUp     = 5 // gate: nor had it when the wait was over; webhook ping: no outcome by then
)

// A program is one run of ledgerd.
type program struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	// began is set when a command starts to work: an error before that is one
	// of the command line.
	began  bool
	global globalFlags
}

// readFile reads a file that a flag names, or standard input where that is "-".
func (p *program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(p.stdin)
	}
	return os.ReadFile(name)
}

// An exitError ends the program with a status of its own. Without err nothing
// more is printed.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef returns the error of a command line that is wrong.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// Execute runs ledgerd as the operating system started it and returns its exit
// status.
func Execute() int {
	return Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Main runs ledgerd with the given arguments, the program's name not among
// them, and returns its exit status.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(p)
	root.SetArgs(append([]string{}, args...))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	status := p.status(err)
	if err != nil && !silent(err) {
		fmt.Fprintf(stderr, "ledgerd: %s\n", describe(err))
		if status == exitUsage {
			fmt.Fprintf(stderr, "Run '%s --help' for how to use it.\n", command.CommandPath())
		}
	}
	return status
}

func (p *program) status(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.status
	}
	if !p.began {
		return exitUsage
	}
	return exitFailure
}

func silent(err error) bool {
	e, ok := errors.AsType[*exitError](err)
	return ok && e.err == nil
}

// describe writes an error for people: what is wrong, then a line for each
// field that is.
func describe(err error) string {
	text, fields := err.Error(), []ledger.FieldError(nil)
	if e, ok := errors.AsType[*client.Error](err); ok {
		text, fields = strings.Replace(text, e.Error(), e.Problem.Detail, 1), e.Problem.Errors
	} else if e, ok := errors.AsType[*ledger.Error](err); ok {
		text, fields = strings.Replace(text, e.Error(), e.Detail, 1), e.Fields
	} else if e, ok := errors.AsType[*url.Error](err); ok {
		text = strings.Replace(text, e.Error(), describeRequest(e), 1)
	}
	for _, f := range fields {
		text += fmt.Sprintf("\n  %s: %s", f.Field, f.Message)
	}
	return terminal.Printable(strings.TrimSpace(text))
}

// describeRequest writes why a request got no answer; of a server that cannot
// be reached, what to look at.
func describeRequest(err *url.Error) string {
	dial, ok := errors.AsType[*net.OpError](err)
	if !ok || dial.Op != "dial" {
		return err.Error()
	}
	server := err.URL
	if u, err := url.Parse(server); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	reason := dial.Err.Error()
	if e, ok := errors.AsType[*net.DNSError](dial); ok {
		reason = e.Err
	}
	return fmt.Sprintf("no server answers at %s: is ledgerd serve running there? (%s)", server, reason)
}
