package attestation

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A new review may say from which commit on it has read. In other results, a member of this name says nothing. A
// result that was recorded before the member was read keeps its meaning, whatever it has there.
func TestBaseOfReview(t *testing.T) {
	const (
		review = `"predicate":"review:code","result":{"status":"pass"}`
		base   = `,"base":"` + otherCommit + `"`
	)
	for _, test := range []struct{ name, members, base, field string }{
		{"a base", review + base, otherCommit, ""},
		{"a base of changes that are requested", strings.Replace(review, "pass", "fail", 1) + base, otherCommit, ""},
		{"no base", review, "", ""},
		{"null", review + `,"base":null`, "", ""},
		{"an empty base", review + `,"base":""`, "", "base"},
		{"a short ID", review + `,"base":"0123456"`, "", "base"},
		{"upper case", review + `,"base":"` + strings.ToUpper(otherCommit) + `"`, "", "base"},
		{"a branch", review + `,"base":"main"`, "", "base"},
		{"a number", review + `,"base":1`, "", "base"},
		{"an object", review + `,"base":{"sha":"` + otherCommit + `"}`, "", "base"},
		{"another hash function", review + `,"base":"` + otherCommit + otherCommit[:24] + `"`, "", "base"},
		{"the commit itself", review + `,"base":"` + ledgertest.Commit + `"`, "", "base"},
		{"another spelling", review + `,"Base":"` + otherCommit + `"`, "", "base"},
		{"a test", `"predicate":"test:go","result":{"status":"pass"},"base":"main"`, "", ""},
		{"another prefix", `"predicate":"reviews:code","result":{"status":"pass"},"base":1`, "", ""},
	} {
		payload := []byte(statementOf(aboutCommit, ResultPredicateType, "{"+test.members+"}"))
		st, err := parseStatement(payload, Place{})
		if err != nil || st.outcome.Predicate == "" {
			t.Errorf("%s: a recorded statement is refused: %v", test.name, err)
		}
		a := Attestation{PredicateType: ResultPredicateType, Outcome: st.outcome, Commit: st.commit, Payload: payload}
		a.readBase()
		wantFault(t, "a new statement with "+test.name, a.CheckNew(), test.field)
		if a.Base != test.base {
			t.Errorf("%s: base %q, want %q", test.name, a.Base, test.base)
		}
	}

	text := statementOf(aboutCommit, testResultV01, `{"result":"PASSED","configuration":[],"base":1}`)
	a := Attestation{PredicateType: testResultV01, Commit: ledgertest.Commit, Payload: []byte(text)}
	if a.readBase(); a.Base != "" || a.CheckNew() != nil {
		t.Errorf("another type: %q, %v", a.Base, a.CheckNew())
	}
}

// A new statement has a base only if it is that of a review.
func TestNewStatementWithBase(t *testing.T) {
	p := ResultPredicate{Predicate: "review:code", Result: ledger.Result{Status: ledger.Pass}, Base: otherCommit}
	key := ledgertest.NewP256()
	envelope := must.Get(SignDSSE(key, must.Get(NewStatement("acme/api", ledgertest.Commit, p))(t)))(t)
	a := must.Get(Verify(envelope, ledgertest.Keyring(ledgertest.KeyIdentity(key.Public())), ledgertest.Now))(t)
	if a.Base != otherCommit || a.CheckNew() != nil {
		t.Errorf("base %q, %v", a.Base, a.CheckNew())
	}
	for name, change := range map[string]func(*ResultPredicate){
		"a test":            func(p *ResultPredicate) { p.Predicate = "test:go" },
		"a branch":          func(p *ResultPredicate) { p.Base = "main" },
		"the commit itself": func(p *ResultPredicate) { p.Base = ledgertest.Commit },
	} {
		p := p
		change(&p)
		_, err := NewStatement("acme/api", ledgertest.Commit, p)
		wantFault(t, name, err, "base")
	}
}
