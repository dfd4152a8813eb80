package cmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/ledger"
)

// A choice is the value of a flag that takes one of a few words.
type choice struct {
	value   *string
	allowed []string
}

func (c choice) String() string { return *c.value }

func (c choice) Type() string { return strings.Join(c.allowed, "|") }

func (c choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("use %s", either(c.allowed))
	}
	*c.value = s
	return nil
}

// choiceVar defines a flag that takes one of the allowed words, the first of
// which is its default. A short of "" leaves it without a letter.
func choiceVar(command *cobra.Command, flags *pflag.FlagSet, value *string, name, short, usage string, allowed ...string) {
	*value = allowed[0]
	flags.VarP(choice{value, allowed}, name, short, usage)
	complete(command, name, allowed...)
}

// complete offers words to the shell for a flag. The error it passes over is
// that of a flag which is not there, and its callers have just defined it.
func complete(command *cobra.Command, flag string, words ...string) {
	_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// either writes words as "a, b or c".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// A parsed is the value of a flag that a function reads.
type parsed[T any] struct {
	value *T
	text  string
	kind  string
	parse func(string) (T, error)
}

func (p *parsed[T]) String() string { return p.text }

func (p *parsed[T]) Type() string { return p.kind }

func (p *parsed[T]) Set(s string) error {
	v, err := p.parse(s)
	if err != nil {
		return err
	}
	*p.value, p.text = v, s
	return nil
}

// stateFlag defines --state.
func stateFlag(command *cobra.Command, value *ledger.State, usage string) {
	command.Flags().Var(&parsed[ledger.State]{value: value, kind: "STATE", parse: ledger.ParseState}, "state", usage)
	var names []string
	for _, s := range ledger.States() {
		names = append(names, s.String())
	}
	complete(command, "state", names...)
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
	command.Flags().Var(&parsed[int]{value: limit, kind: "N", parse: func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("use a number of 1 or more")
		}
		return n, nil
	}}, "limit", "no more than so many (default all)")
}

func statuses() []string {
	return []string{string(ledger.Pass), string(ledger.Warn), string(ledger.Fail), string(ledger.Errored), string(ledger.Skip)}
}

func statusFlag(value *ledger.Status) pflag.Value {
	return choice{(*string)(value), statuses()}
}
