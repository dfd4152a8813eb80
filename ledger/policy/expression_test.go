package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

func TestInvalidExpressionsNameTheirField(t *testing.T) {
	contract := func(expressions ...string) string {
		var list []string
		for _, x := range expressions {
			list = append(list, fmt.Sprintf(`{"state":"ATTESTED","predicate":"test:*","where":%q}`, x))
		}
		return `{"requirements":[` + strings.Join(list, ",") + `],"targets":"all"}`
	}
	const good, bad = `predicate.x == 1`, `predicate.x ==`

	_, err := policy.Parse([]byte(contract(good, bad, good, bad)))
	wantFields(t, err, "requirements[1].where", "requirements[3].where")
	if !strings.Contains(err.Error(), "line 1, column 15") {
		t.Errorf("the error does not say where: %v", err)
	}
	_, err = policy.Parse([]byte(contract(strings.Repeat("x", 2049))))
	wantFields(t, err, "requirements[0].where")

	// A contract that another release has accepted is still read.
	c, err := policy.ParseStored([]byte(contract(good, bad)))
	if err != nil || c.Requirements[1].Where != bad {
		t.Errorf("a stored contract: %+v, %v", c, err)
	}
}

func wantFields(t *testing.T, err error, want ...string) {
	t.Helper()
	var fields []string
	if err != nil {
		e, ok := err.(*ledger.Error)
		if !ok || e.Code != ledger.CodeInvalidContract {
			t.Fatalf("got error %v, want code %s", err, ledger.CodeInvalidContract)
		}
		for _, f := range e.Fields {
			fields = append(fields, f.Field)
		}
	}
	if !slices.Equal(fields, want) {
		t.Errorf("the faults are of %v, want %v: %v", fields, want, err)
	}
}

func TestExpressionsOfEvidence(t *testing.T) {
	c, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","where":"predicate.a"},
		{"state":"PROMOTABLE","predicate":"test:go","where":"predicate.b"},
		{"state":"PROMOTABLE","predicate":"test:go","signers":["cn=x"],"where":"predicate.a"},
		{"state":"PROMOTABLE","predicate":"review:*"},
		{"state":"DEPLOYED","type":"https://example.com/*","where":"predicate.c"}]}`))
	must.OK(t, err)
	if !c.NeedsVerdicts() || policy.Default().NeedsVerdicts() {
		t.Error("the contract needs verdicts, and the default one needs none")
	}
	for _, test := range []struct{ predicate, predicateType, want string }{
		{"test:go", "x", "[predicate.a predicate.b]"},
		{"test:js", "https://example.com/t", "[predicate.a predicate.c]"},
		{"review:code", "x", "[]"},
	} {
		e := policy.Evidence{Predicate: test.predicate, PredicateType: test.predicateType}
		if got := fmt.Sprint(c.Expressions(&e)); got != test.want {
			t.Errorf("%s of %s: %s, want %s", test.predicate, test.predicateType, got, test.want)
		}
	}
}
