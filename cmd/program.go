// Package cmd is the command line of ledgerd. It has a file for each command, which
// parses the flags, calls the client of the HTTP API and prints the result.
package cmd

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/connect"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// The exit statuses. attest also passes on the status of the command that it runs.
const (
	exitFailure = 1 // any other error
	exitUsage   = 2 // wrong flags or arguments

	// gate: the commit has not reached the state. radar: an overlap is at or above
	// --fail-on. webhook ping and redeliver: the attempt failed.
	exitNotReached = 4

	// gate: the commit has not reached the state within --wait. webhook ping and
	// redeliver: there is no outcome within --wait.
	exitGaveUp = 5
)

// A program is one run of ledgerd.
type program struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	// command is the running command. It is nil until the command line has been
	// checked: an error before that is a usage error.
	command *cobra.Command
	global  globalFlags
}

// readFile reads a file, or standard input if the name is "-".
func (p *program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(p.stdin)
	}
	return os.ReadFile(name)
}

// An exitError ends the program with the given exit status. If err is nil, no error
// message is printed.
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

// usagef returns a usage error.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// describe returns an error as text for people. Several invalid fields get a line
// each. A field that the user set with a flag is called by the name of the flag.
func (p *program) describe(err error) string {
	text, fields := err.Error(), []ledger.FieldError(nil)
	if e, ok := errors.AsType[*client.Error](err); ok {
		text, fields = strings.Replace(text, e.Error(), e.Problem.Detail, 1), e.Problem.Errors
	} else if e, ok := errors.AsType[*ledger.Error](err); ok {
		text, fields = strings.Replace(text, e.Error(), e.Detail, 1), e.Fields
	} else if e, ok := errors.AsType[*url.Error](err); ok {
		text = strings.Replace(text, e.Error(), connect.Describe(e), 1)
	}

	if len(fields) == 1 { // text already has its message
		field := fields[0].Field
		text = strings.Replace(text, "invalid "+field+": ", "invalid "+p.flagOf(field)+": ", 1)
	} else {
		for _, f := range fields {
			text += fmt.Sprintf("\n  %s: %s", p.flagOf(f.Field), f.Message)
		}
	}
	return terminal.Printable(strings.TrimSpace(text))
}

// flagOf returns the flag with which the user set an API field, or the name of the
// field.
func (p *program) flagOf(field string) string {
	if p.command == nil {
		return field
	}
	return flagvalue.OfField(p.command.Flags(), field)
}

// globalFlags are the flags that every command has.
type globalFlags struct {
	config string
	url    string
	token  string
	output string
}

// group returns a command that only has subcommands.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use:                   use,
		Short:                 short,
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
	}
	command.AddCommand(children...)
	command.RunE = func(command *cobra.Command, args []string) error {
		var names []string
		for _, child := range children {
			names = append(names, child.Name())
		}
		if len(args) > 0 {
			return usagef("unknown command %q for %s: use %s", args[0], command.CommandPath(), flagvalue.OneOf(names))
		}
		return usagef("%s requires a command: use %s", command.CommandPath(), flagvalue.OneOf(names))
	}
	return command
}

// takes returns a check that a command has the named arguments. A name in brackets
// is optional.
func takes(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		if len(args) < len(names) && !strings.HasPrefix(names[len(args)], "[") {
			return fmt.Errorf("%s is required", names[len(args)])
		}
		return nil
	}
}

// print prints a record or a list of records: as JSON with -o json, otherwise by
// calling human.
func (p *program) print(v any, human func()) error {
	if p.global.output != "json" {
		human()
		return nil
	}
	return terminal.WriteJSON(p.stdout, v)
}

// printList prints at most limit records of a list, or all if limit is 0. For people
// it is a table with the given columns and a row for each record.
func printList[T any](p *program, records iter.Seq2[T, error], limit int, columns []string, row func(T) []any) error {
	all, err := client.Collect(records, limit)
	if err != nil {
		return err
	}
	return p.print(all, func() {
		t := terminal.NewTable(p.stdout, columns...)
		for _, record := range all {
			t.Row(row(record)...)
		}
		t.Flush()
	})
}

// limitFlag defines --limit, for lists that can be long.
func limitFlag(command *cobra.Command, limit *int) {
	command.Flags().Var(flagvalue.Limit(limit), "limit", "maximum number of results (default all)")
}
