package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestDescribe(t *testing.T) {
	fields := []ledger.FieldError{{Field: "requirements[0].state", Message: "there is no such state"}}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"plain": {errors.New("no luck"), "no luck"},
		"the ledger's": {
			&ledger.Error{Detail: "the contract is wrong", Fields: fields},
			"the contract is wrong\n  requirements[0].state: there is no such state",
		},
		"a server's, with what was tried": {
			fmt.Errorf("applying: %w", &client.Error{Problem: ledger.Problem{Detail: "the contract is wrong", Errors: fields}}),
			"applying: the contract is wrong\n  requirements[0].state: there is no such state",
		},
		"what would move the cursor": {errors.New("no \x1b[2Jluck"), "no \uFFFD[2Jluck"},
	} {
		if got := describe(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	table := newTable(&b, "COMMIT", "MESSAGE")
	table.row("1234", "first line\nsecond")
	table.row("5", "a\ttab and \x1b[31mcolour")
	table.row("", "")
	table.flush()
	const want = "COMMIT  MESSAGE\n1234    first line\n5       a tab and \uFFFD[31mcolour\n\n"
	if got := b.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestQuoteShell(t *testing.T) {
	for word, want := range map[string]string{
		"ledger.db":           "ledger.db",
		"/srv/ledgerd/a-b.db": "/srv/ledgerd/a-b.db",
		"":                    "''",
		"two words":           "'two words'",
		"Ada's":               `'Ada'\''s'`,
		"$HOME":               "'$HOME'",
		"~":                   "'~'",
		"a;b":                 "'a;b'",
	} {
		if got := quoteShell(word); got != want {
			t.Errorf("%q is quoted as %s, want %s", word, got, want)
		}
	}
}
