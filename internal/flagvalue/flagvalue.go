// Package flagvalue has the values of flags that take one of a few words, or what a
// function parses.
package flagvalue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
		return fmt.Errorf("use %s", OneOf(c.allowed))
	}
	*c.value = s
	return nil
}

// Choice returns the value of a flag that takes one of the allowed words.
func Choice(value *string, allowed ...string) pflag.Value { return choice{value, allowed} }

// ChoiceVar defines a flag that takes one of the allowed words, the first of
// which is its default. A short of "" leaves it without a letter.
func ChoiceVar(
	command *cobra.Command, flags *pflag.FlagSet, value *string, name, short, usage string, allowed ...string,
) {
	*value = allowed[0]
	flags.VarP(choice{value, allowed}, name, short, usage)
	Complete(command, name, allowed...)
}

// Complete offers words to the shell for a flag. The flag must be defined.
func Complete(command *cobra.Command, flag string, words ...string) {
	_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// OneOf writes words as "a, b or c".
func OneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// A Parsed is the value of a flag that a function parses. It implements
// pflag.Value.
type Parsed[T any] struct {
	Value *T
	Text  string // the default, for the help
	Kind  string // what the help calls the value
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
