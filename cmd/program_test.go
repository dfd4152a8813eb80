package cmd

import (
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
