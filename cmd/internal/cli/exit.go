package cli

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/connect"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// The exit statuses. attest also passes on the status of the command that it runs.
const (
	ExitFailure = 1 // any other error
	ExitUsage   = 2 // wrong flags or arguments

	// verify: no check has failed, but some that were asked for could not be made.
	ExitIncomplete = 3

	// gate: the commit has not reached the state. radar: an overlap is at or above
	// --fail-on. webhook ping and redeliver: the attempt failed. check: the database has
	// problems.
	ExitNotReached = 4

	// gate: the commit has not reached the state within --wait. webhook ping and
	// redeliver: there is no outcome within --wait.
	ExitGaveUp = 5
)

// An ExitError ends the program with the given exit status. If Err is nil, no error
// message is printed.
type ExitError struct {
	Status int
	Err    error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Exitf returns an error that ends the program with the given exit status.
func Exitf(status int, format string, args ...any) error {
	return &ExitError{status, fmt.Errorf(format, args...)}
}

// Usagef returns a usage error.
func Usagef(format string, args ...any) error {
	return Exitf(ExitUsage, format, args...)
}

// Status returns the exit status for an error.
func (p *Program) Status(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*ExitError](err); ok {
		return e.Status
	}
	if p.Command == nil {
		return ExitUsage
	}
	return ExitFailure
}

// Silent reports whether an error only sets the exit status and has no message.
func Silent(err error) bool {
	e, ok := errors.AsType[*ExitError](err)
	return ok && e.Err == nil
}

// Describe returns an error as text for people: a line, or one for each error that was joined. Several
// invalid fields get a line each. A field that the user set with a flag is called by the name of the flag.
func (p *Program) Describe(err error) string {
	var fields []ledger.FieldError
	if e, ok := errors.AsType[*client.Error](err); ok {
		fields = e.Problem.Errors
	} else if e, ok := errors.AsType[*ledger.Error](err); ok {
		fields = e.Fields
	}

	text := lineOf(err)
	if len(fields) == 1 { // text already has its message
		field := terminal.Inline(fields[0].Field)
		text = strings.Replace(text, "invalid "+field+": ", "invalid "+p.flagOf(field)+": ", 1)
	} else {
		for _, f := range fields {
			text += fmt.Sprintf("\n  %s: %s", terminal.Inline(p.flagOf(f.Field)), terminal.Inline(f.Message))
		}
	}
	return terminal.Printable(strings.TrimSpace(text))
}

// lineOf returns the text of an error in one line, whatever names and messages of others are in it. Only
// errors that were joined get a line each.
func lineOf(err error) string {
	switch e := err.(type) {
	case *client.Error:
		return terminal.Inline(e.Problem.Detail)
	case *ledger.Error:
		return terminal.Inline(e.Detail)
	case *url.Error:
		return terminal.Inline(connect.Describe(e))
	}
	var wrapped []error
	if e, ok := err.(interface{ Unwrap() []error }); ok {
		wrapped = e.Unwrap()
	} else if e := errors.Unwrap(err); e != nil {
		wrapped = []error{e}
	}

	text, rest := "", err.Error()
	for _, e := range wrapped {
		before, after, ok := strings.Cut(rest, e.Error())
		if !ok {
			continue
		}
		if before != "\n" {
			before = terminal.Inline(before)
		}
		text, rest = text+before+lineOf(e), after
	}
	return text + terminal.Inline(rest)
}

// flagOf returns the flag with which the user set an API field, or the name of the
// field.
func (p *Program) flagOf(field string) string {
	if p.Command == nil {
		return field
	}
	return flagvalue.OfField(p.Command.Flags(), field)
}
