package cmd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestDescribe(t *testing.T) {
	refused := ledger.FieldsError(ledger.CodeInvalidContract,
		ledger.FieldError{Field: "radar.block", Message: "unknown level"},
		ledger.FieldError{Field: "requirements[0].state", Message: "unknown state"})

	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"plain": {errors.New("no luck"), "no luck"},
		"an invalid field": {
			ledger.FieldErrorf(ledger.CodeInvalidField, "url", "use http or https"),
			"invalid url: use http or https",
		},
		"several invalid fields": {
			refused,
			"2 invalid fields\n  radar.block: unknown level\n  requirements[0].state: unknown state",
		},
		"a server's error, with what was tried": {
			fmt.Errorf("applying: %w", &client.Error{Problem: ledger.Problem{Detail: refused.Detail, Errors: refused.Fields}}),
			"applying: 2 invalid fields\n  radar.block: unknown level\n  requirements[0].state: unknown state",
		},
		"a name with lines": {
			fmt.Errorf("read %w", fmt.Errorf("event %s: %w", "evt_1\nFAKE", errors.New("no\r\nFAKE"))),
			"read event evt_1 FAKE: no FAKE",
		},
		"errors that were joined": {
			fmt.Errorf("config: %w", errors.Join(errors.New("no\nurl"), errors.New("no name"))), "config: no url\nno name",
		},
		"a field's name with lines": {
			&client.Error{Problem: ledger.Problem{Detail: "invalid a\nb: no", Errors: []ledger.FieldError{{Field: "a\nb"}}}},
			"invalid a b: no",
		},
		"control characters": {errors.New("no \x1b[2Jluck"), "no \uFFFD[2Jluck"},
	} {
		if got := (&cli.Program{}).Describe(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
