package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// SetOutput applies the flags for the output of a command.
func (p *Program) SetOutput(command *cobra.Command) error {
	p.Stdout.Wide, p.Stderr.Wide = p.Global.Wide, p.Global.Wide
	if p.Global.JQ == nil {
		return nil
	}
	format := command.Flags().Lookup("output")
	if format.Changed && format.Value.String() != "json" {
		return fmt.Errorf("--jq and --output %s are mutually exclusive", format.Value)
	}
	return format.Value.Set("json")
}

// Print prints a record or a list of records: as JSON with -o json, what the expression
// selects from it with --jq, otherwise by calling human.
func (p *Program) Print(v any, human func()) error {
	if p.Global.Output != "json" {
		human()
		return nil
	}
	if p.Global.JQ == nil {
		return terminal.WriteJSON(p.Stdout, v)
	}
	var text bytes.Buffer
	if err := terminal.WriteJSON(&text, v); err != nil {
		return err
	}
	return p.Global.JQ.Write(p.Command.Context(), p.Stdout, text.Bytes())
}

// Shown returns a function that prints a record, by calling human for people, or returns its error.
func Shown[T any](p *Program, human func(w io.Writer, v T)) func(v T, err error) error {
	return func(v T, err error) error {
		if err != nil {
			return err
		}
		return p.Print(v, func() { human(p.Stdout, v) })
	}
}

// Lines returns where to write a stream of lines, each with one call: standard output. With
// --jq, what the expression selects from each of them is written.
func (p *Program) Lines() io.Writer {
	if p.Global.JQ == nil {
		return p.Stdout
	}
	return p.Global.JQ.Lines(p.Command.Context(), p.Stdout)
}

// Confirm is like Print for what was done, which people who ask for --quiet do not need.
func (p *Program) Confirm(v any, human func()) error {
	if p.Global.Quiet {
		human = func() {}
	}
	return p.Print(v, human)
}

// Hints returns where to print progress, hints and confirmations that are no result: standard
// error, or nowhere with --quiet.
func (p *Program) Hints() io.Writer {
	if p.Global.Quiet {
		return io.Discard
	}
	return p.Stderr
}

// Ask returns an error unless somebody agrees to what cannot be undone. It asks only on a
// terminal and without --yes: scripts have decided. describe returns the question, such as
// "Revoke cn=ci of acme?".
func (p *Program) Ask(describe func() (string, error)) error {
	if p.Global.Yes || !terminal.IsTerminal(p.Stdin) || !terminal.IsTerminal(p.Stderr) {
		return nil
	}
	question, err := describe()
	if err != nil {
		return err
	}
	yes, err := terminal.Ask(p.Stdin, p.Stderr, question)
	if err == nil && !yes {
		err = errors.New("nothing was changed (to answer yes in advance, use --yes)")
	}
	return err
}

// Askf is Ask with a question that is formatted.
func (p *Program) Askf(format string, args ...any) error {
	return p.Ask(func() (string, error) { return fmt.Sprintf(format, args...), nil })
}

// ConfirmName returns an error unless the name of what is to be deleted or purged was repeated: with the
// flag --confirm or, on a terminal, by typing it.
func (p *Program) ConfirmName(verb, what, name, confirmed string) error {
	switch {
	case confirmed == name:
		return nil
	case confirmed != "":
		return Usagef("invalid --confirm %q: use %s, the name of the %s", confirmed, name, what)
	case !terminal.IsTerminal(p.Stdin) || !terminal.IsTerminal(p.Stderr):
		return Usagef("--confirm is required: use --confirm %s to %s the %s", name, verb, what)
	}
	ok, err := terminal.AskName(p.Stdin, p.Stderr, fmt.Sprintf("Type %s to %s the %s:", name, verb, what), name)
	if err == nil && !ok {
		err = errors.New("nothing was changed: that is not the name")
	}
	return err
}

// ConfirmFlag defines --confirm, for ConfirmName.
func ConfirmFlag(command *cobra.Command, name *string) {
	command.Flags().StringVar(name, "confirm", "", "the `name` again, instead of typing it")
}

// YesFlag defines --yes, for commands that Ask.
func (p *Program) YesFlag(command *cobra.Command) {
	command.Flags().BoolVarP(&p.Global.Yes, "yes", "y", false, "do not ask; without a terminal, nothing is asked")
}

// PrintList prints at most limit records of a list, or all if limit is 0. For people
// it is a table with the given columns and a row for each record.
func PrintList[T any](p *Program, records iter.Seq2[T, error], limit int, columns []string, row func(T) []any) error {
	all, err := client.Collect(records, limit)
	if err != nil {
		return err
	}
	return p.Print(all, func() {
		t := terminal.NewTable(p.Stdout, columns...)
		for _, record := range all {
			t.Row(row(record)...)
		}
		t.Flush()
	})
}

// LimitFlag defines --limit, for lists that can be long.
func LimitFlag(command *cobra.Command, limit *int) {
	command.Flags().Var(flagvalue.Limit(limit), "limit", "maximum number of results (default all)")
}
