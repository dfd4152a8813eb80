// Package cmd is the command line of ledgerd: a file for each command, which
// reads its flags, calls the client of the HTTP API and prints.
package cmd

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// The exit statuses that mean something; attest also passes on those of the
// command that it runs.
const (
	exitFailure = 1 // it could not be done, or could not be told
	exitUsage   = 2 // the command line is wrong
	// gate: the commit has not reached the state; radar: an overlap of --fail-on; webhook ping: the attempt failed
	exitNotReached = 4
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

// describe returns an error as people read it. Several invalid fields get a line
// each.
func describe(err error) string {
	text, fields := err.Error(), []ledger.FieldError(nil)
	if e, ok := errors.AsType[*client.Error](err); ok {
		text, fields = strings.Replace(text, e.Error(), e.Problem.Detail, 1), e.Problem.Errors
	} else if e, ok := errors.AsType[*ledger.Error](err); ok {
		text, fields = strings.Replace(text, e.Error(), e.Detail, 1), e.Fields
	} else if e, ok := errors.AsType[*url.Error](err); ok {
		text = strings.Replace(text, e.Error(), describeRequest(e), 1)
	}
	if len(fields) < 2 {
		fields = nil // the text has it
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

// globalFlags are those that every command has.
type globalFlags struct {
	config string
	url    string
	token  string
	output string
}

// group returns a command that only holds others.
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
			return usagef("%s has no command %q: choose from %s", command.CommandPath(), args[0], strings.Join(names, ", "))
		}
		return usagef("%s needs a command: choose from %s", command.CommandPath(), strings.Join(names, ", "))
	}
	return command
}

// takes checks that a command has the arguments of the given names; a name in
// brackets may be left out.
func takes(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		if len(args) < len(names) && !strings.HasPrefix(names[len(args)], "[") {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		return nil
	}
}

// print writes a record or a list of them: as JSON where -o json asks for it,
// else by the function, which writes it for people.
func (p *program) print(v any, human func()) error {
	if p.global.output != "json" {
		human()
		return nil
	}
	return terminal.WriteJSON(p.stdout, v)
}

// printList writes up to limit records of a list, all where limit is 0: for
// people as a table with those columns and a row for each record.
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

// milliseconds returns the duration of n milliseconds.
func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// stateFlag defines --state.
func stateFlag(command *cobra.Command, value *ledger.State, usage string) {
	command.Flags().Var(&flagvalue.Parsed[ledger.State]{Value: value, Kind: "STATE", Parse: ledger.ParseState}, "state",
		usage)
	var names []string
	for _, s := range ledger.States() {
		names = append(names, s.String())
	}
	flagvalue.Complete(command, "state", names...)
}

// parseExpiry returns what reads when something ends: after a duration such as
// 90d, or at a date or date-time.
func parseExpiry(now time.Time) func(string) (ledger.Time, error) {
	return func(s string) (ledger.Time, error) {
		if d, err := ledger.ParseDuration(s); err == nil {
			return ledger.TimeOf(now.Add(d.Std())), nil
		}
		t, err := ledger.ParseSince(s)
		if err != nil {
			return 0, fmt.Errorf("use a duration such as 90d or 12h, a date or an RFC 3339 date-time")
		}
		return t, nil
	}
}

// require makes flags obligatory. The error it passes over is that of a flag
// which is not there, and its callers have just defined them.
func require(command *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = command.MarkFlagRequired(name)
	}
}

// limitFlag defines --limit, of lists that can be long.
func limitFlag(command *cobra.Command, limit *int) {
	command.Flags().Var(&flagvalue.Parsed[int]{Value: limit, Kind: "N", Parse: func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("use a number of 1 or more")
		}
		return n, nil
	}}, "limit", "no more than so many (default all)")
}

func statuses() []string {
	return []string{string(ledger.Pass), string(ledger.Warn), string(ledger.Fail), string(ledger.Errored),
		string(ledger.Skip)}
}

func statusFlag(value *ledger.Status) pflag.Value {
	return flagvalue.Choice((*string)(value), statuses()...)
}
