package attestation

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// wantFault checks that an error names a field of a statement. With an empty field, it wants no error.
func wantFault(t *testing.T, name string, err error, field string) {
	t.Helper()
	fault, _ := errors.AsType[*ledger.Error](err)
	switch {
	case field == "" && err == nil:
	case fault == nil || fault.Code != ledger.CodeInvalidStatement || len(fault.Fields) != 1 ||
		fault.Fields[0].Field != "predicate."+field:
		t.Errorf("%s: %v, want an error about %q", name, err, field)
	}
}

// A rollback names its repo, the environment and the reason.
func TestRollbacksAreValidated(t *testing.T) {
	const to = otherCommit
	for _, test := range []struct{ name, predicate, field string }{
		{"all", `{"repo":"acme/api","environment":"prod","reason":"x","to":{"sha":"` + to + `"},` +
			`"issuedOn":"2026-11-28T00:00:00Z"}`, ""},
		{"as little as possible", `{"repo":"acme/api","environment":"eu/1","reason":"x"}`, ""},
		{"no repo", `{"environment":"prod","reason":"x"}`, "repo"},
		{"no environment", `{"repo":"acme/api","reason":"x"}`, "environment"},
		{"a strange environment", `{"repo":"acme/api","environment":"pr od","reason":"x"}`, "environment"},
		{"a long environment", `{"repo":"acme/api","environment":"` + strings.Repeat("e", 120) + `","reason":"x"}`,
			"environment"},
		{"no reason", `{"repo":"acme/api","environment":"prod"}`, "reason"},
		{"a long reason", `{"repo":"acme/api","environment":"prod","reason":"` + strings.Repeat("é", 1001) + `"}`, "reason"},
		{"an invisible reason", `{"repo":"acme/api","environment":"prod","reason":"a\u202eb"}`, "reason"},
		{"a short ID", `{"repo":"acme/api","environment":"prod","reason":"x","to":{"sha":"abc"}}`, "to.sha"},
		{"another spelling", `{"repo":"acme/api","Environment":"prod","reason":"x"}`, "environment"},
	} {
		st, err := parseStatement([]byte(statementOf(aboutCommit, RollbackPredicateType, test.predicate)), Place{})
		wantFault(t, test.name, err, test.field)
		if err == nil && (!strings.HasPrefix(st.outcome.Predicate, "rollback:") ||
			st.outcome.Result.Status != ledger.Recorded || st.rollback == nil) {
			t.Errorf("%s: %+v", test.name, st.outcome)
		}
	}

	r := Rollback{Repo: "acme/api", Environment: "prod", Reason: "x", To: RunningCommit{ledgertest.Commit}}
	_, err := NewRollbackStatement(ledgertest.Commit, r)
	wantFault(t, "to itself", err, "to.sha")
}

// A baseline names its repo and the environment. The reason is optional.
func TestBaselinesAreValidated(t *testing.T) {
	for _, test := range []struct{ name, predicate, field string }{
		{"all", `{"repo":"acme/api","environment":"prod","reason":"x","issuedOn":"2026-11-28T00:00:00Z"}`, ""},
		{"as little as possible", `{"repo":"acme/api","environment":"eu/1"}`, ""},
		{"no repo", `{"environment":"prod"}`, "repo"},
		{"a strange repo", `{"repo":"api","environment":"prod"}`, "repo"},
		{"no environment", `{"repo":"acme/api","reason":"x"}`, "environment"},
		{"a strange environment", `{"repo":"acme/api","environment":"pr od"}`, "environment"},
		{"a long environment", `{"repo":"acme/api","environment":"` + strings.Repeat("e", 120) + `"}`, "environment"},
		{"a long reason", `{"repo":"acme/api","environment":"prod","reason":"` + strings.Repeat("é", 1001) + `"}`, "reason"},
		{"an invisible reason", `{"repo":"acme/api","environment":"prod","reason":"a\u202eb"}`, "reason"},
		{"an invalid time", `{"repo":"acme/api","environment":"prod","issuedOn":"today"}`, "issuedOn"},
		{"another spelling", `{"repo":"acme/api","Environment":"prod"}`, "environment"},
	} {
		st, err := parseStatement([]byte(statementOf(aboutCommit, BaselinePredicateType, test.predicate)), Place{})
		wantFault(t, test.name, err, test.field)
		if err == nil && (!strings.HasPrefix(st.outcome.Predicate, "baseline:") ||
			st.outcome.Result.Status != ledger.Recorded || st.baseline == nil) {
			t.Errorf("%s: %+v", test.name, st.outcome)
		}
	}

	_, err := NewBaselineStatement(ledgertest.Commit, Baseline{Repo: "acme/api"})
	wantFault(t, "a new one", err, "environment")
	payload, err := NewBaselineStatement(ledgertest.Commit, Baseline{Repo: "acme/api", Environment: "prod"})
	if err != nil || strings.Contains(string(payload), "reason") {
		t.Errorf("a new one without a reason: %s, %v", payload, err)
	}
}

// A deployment may say that an attempt has failed, or that the commit is deployed again.
// Other results may have members of these names, which say nothing.
func TestRolloutsAreValidated(t *testing.T) {
	for _, test := range []struct {
		members string
		want    ledger.Status
		field   string
	}{
		{`"predicate":"deploy:prod","result":{"status":"fail"},"rollout":"failed"`, ledger.Recorded, ""},
		{`"predicate":"deploy:prod","result":{"status":"error"},"rollout":"failed"`, ledger.Recorded, ""},
		{`"predicate":"deploy:prod","result":{"status":"fail"}`, ledger.Fail, ""},
		{`"predicate":"test:go","result":{"status":"fail"},"rollout":"failed","again":"x"`, ledger.Fail, ""},
		{`"predicate":"deploy:prod","result":{"status":"pass"},"again":"it was the database"`, ledger.Pass, ""},
		{`"predicate":"deploy:prod","result":{"status":"pass"},"rollout":"failed"`, "", "rollout"},
		{`"predicate":"deploy:prod","result":{"status":"fail"},"rollout":"undone"`, "", "rollout"},
		{`"predicate":"deploy:prod","result":{"status":"fail"},"again":"x"`, "", "again"},
		{`"predicate":"deploy:prod","result":{"status":"pass"},"again":"a\u202eb"`, "", "again"},
	} {
		st, err := parseStatement([]byte(statementOf(aboutCommit, ResultPredicateType, "{"+test.members+"}")), Place{})
		wantFault(t, test.members, err, test.field)
		if err == nil && st.outcome.Result.Status != test.want {
			t.Errorf("%s: %s, want %s", test.members, st.outcome.Result.Status, test.want)
		}
	}
}

// New results may not have a name that begins with rollback:, baseline: or changes:, and recorded ones keep theirs.
func TestLaterNamesAreReserved(t *testing.T) {
	var a Attestation
	for _, predicate := range []string{"Rollback:prod", "Baseline:prod", "baseline:x", "changes:files"} {
		st, err := parseStatement([]byte(statementOf(aboutCommit, ResultPredicateType,
			`{"predicate":"`+predicate+`","result":{"status":"pass"}}`)), Place{})
		if err != nil || st.outcome.Predicate != predicate {
			t.Errorf("a recorded result: %+v, %v", st.outcome, err)
		}
		a = Attestation{PredicateType: ResultPredicateType, Outcome: st.outcome}
		wantFault(t, "a new result", a.CheckNew(), "predicate")
	}
	a.PredicateType, a.Predicate = RollbackPredicateType, "rollback:prod"
	wantFault(t, "a rollback", a.CheckNew(), "")
}
