// Package flagvalue provides values of command-line flags, and checks which flags are
// set. Its error messages name the flag.
package flagvalue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/ledger"
)

// A choice is the value of a flag that accepts one of a few words.
type choice struct {
	value   *string
	allowed []string
}

func (c choice) String() string { return *c.value }

func (c choice) Type() string { return strings.Join(c.allowed, "|") }

func (c choice) Set(s string) error {
	i := slices.IndexFunc(c.allowed, func(word string) bool { return strings.EqualFold(word, s) })
	if i < 0 {
		return fmt.Errorf("use %s", OneOf(c.allowed))
	}
	*c.value = c.allowed[i]
	return nil
}

// Choice returns a flag value that accepts one of the allowed words, in upper or lower case.
func Choice(value *string, allowed ...string) pflag.Value { return choice{value, allowed} }

// ChoiceVar defines a flag that accepts one of the allowed words and completes them.
// The first word is the default. If short is empty, the flag has no shorthand.
func ChoiceVar(
	command *cobra.Command, flags *pflag.FlagSet, value *string, name, short, usage string, allowed ...string,
) {
	*value = allowed[0]
	flags.VarP(choice{value, allowed}, name, short, usage)
	Complete(command, name, allowed...)
}

// Complete has the shell complete the value of a flag from words. The flag must be
// defined.
func Complete(command *cobra.Command, flag string, words ...string) {
	_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// Scope defines --scope, the scope of a token.
func Scope(command *cobra.Command, value *ledger.Scope, usage string) {
	var names []string
	for _, s := range ledger.Scopes() {
		names = append(names, s.String())
	}
	parsed := &Parsed[ledger.Scope]{Value: value, Kind: strings.Join(names, "|"), Parse: ledger.ParseScope}
	command.Flags().Var(parsed, "scope", usage)
	Complete(command, "scope", names...)
}

// OneOf returns words as text, such as "a, b or c".
func OneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// A Parsed is a flag value that a function parses. It implements pflag.Value.
type Parsed[T any] struct {
	Value *T
	Text  string // default value in the help
	Kind  string // name of the value in the help
	Parse func(string) (T, error)
}

// String implements pflag.Value.
func (p *Parsed[T]) String() string { return p.Text }

// Type implements pflag.Value.
func (p *Parsed[T]) Type() string { return p.Kind }

// Set implements pflag.Value.
func (p *Parsed[T]) Set(s string) error {
	v, err := p.Parse(s)
	if err != nil {
		return err
	}
	*p.Value, p.Text = v, s
	return nil
}
