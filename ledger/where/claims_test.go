package where_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/where"
)

func TestClaims(t *testing.T) {
	const token = `{"ref": "refs/heads/main", "run_attempt": "1", "project_id": 7, "groups": ["a", "b"]}`
	for _, test := range []struct {
		expression string
		want       bool
	}{
		{`claims.ref == "refs/heads/main"`, true},
		{`claims.ref.startsWith("refs/tags/")`, false},
		{`claims.project_id == 7 && "b" in claims.groups`, true},
		{`has(claims.environment) && claims.environment == "production"`, false},
		{`claims.all(name, name != "sub")`, true},
	} {
		p, err := where.CompileClaims(test.expression)
		if err != nil {
			t.Fatalf("%s: %v", test.expression, err)
		}
		if got := p.EvalClaims(where.ReadClaims([]byte(token))); got.True != test.want || got.Error != "" {
			t.Errorf("%s: got %+v, want %t", test.expression, got, test.want)
		}
	}
}

// A mistake in an expression or a token is an error, never true.
func TestClaimsThatCannotBeEvaluated(t *testing.T) {
	for _, expression := range []string{`predicate.x == 1`, `claims.ref`, `claims.ref == `, `now() > 1`} {
		var verdict where.Verdict
		p, err := where.CompileClaims(expression)
		if err == nil { // the type of a claim is not known before
			verdict = p.EvalClaims(where.ReadClaims([]byte(`{"ref": "x"}`)))
		}
		if err == nil && verdict.Error == "" {
			t.Errorf("%s is accepted", expression)
		}
	}

	p, err := where.CompileClaims(`true`)
	must.OK(t, err)
	for _, token := range []string{``, `[]`, `"x"`, `{"a": 1, "a": 2}`, `{} {}`, `{"a": `} {
		if got := p.EvalClaims(where.ReadClaims([]byte(token))); got.True || got.Error == "" {
			t.Errorf("%s: got %+v, want an error", token, got)
		}
	}
	if _, err := where.Compile(`claims.ref == "x"`); err == nil {
		t.Error("an expression about a statement reads claims")
	}
}

// An expression about claims has the limits of other expressions.
func TestClaimsHaveLimits(t *testing.T) {
	const costly = `claims.list.all(a, claims.list.all(b, claims.list.all(c, a + b + c >= 0)))`
	p, err := where.CompileClaims(costly)
	must.OK(t, err)
	list := strings.TrimSuffix(strings.Repeat("1,", 200), ",")
	got := p.EvalClaims(where.ReadClaims([]byte(`{"list": [` + list + `]}`)))
	if got.True || !strings.Contains(got.Error, "costs more") {
		t.Errorf("got %+v, want an error about the cost", got)
	}
}
