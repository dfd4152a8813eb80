package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/client"
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
		"control characters": {errors.New("no \x1b[2Jluck"), "no \uFFFD[2Jluck"},
	} {
		if got := (&Program{}).Describe(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
