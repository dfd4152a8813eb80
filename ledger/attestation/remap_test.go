package attestation

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// What the present rules refuse keeps its place in the log: a failure goes on blocking,
// and all else has no outcome.
func TestRemapOfARefusedStatement(t *testing.T) {
	key := ledgertest.NewP256()
	envelope := func(statement string) []byte { return ledgertest.Must(SignDSSE(key, []byte(statement))) }
	twice := envelope(statementOf(aboutCommit, vsaV1, `{"verificationResult":"PASSED","VerificationResult":"FAILED"}`))
	reserved := envelope(statementOf(aboutCommit, ResultPredicateType,
		`{"predicate":"merge:x","result":{"status":"fail"}}`))
	long := bytes.Replace(envelope(statementOf(aboutCommit, vsaV1, `{"verificationResult":"FAILED"}`)), []byte(`{"`),
		[]byte(`{"more":"`+strings.Repeat("x", 2*maxUnsigned)+`","`), 1)

	outcome := func(predicate string, status ledger.Status) Outcome {
		return Outcome{Predicate: predicate, Result: ledger.Result{Status: status}}
	}
	for _, test := range []struct {
		name         string
		envelope     []byte
		before, want Outcome
	}{
		{"a pass", twice, outcome(vsaV1, ledger.Pass), outcome(vsaV1, ledger.Recorded)},
		{"a fail", twice, outcome(vsaV1, ledger.Fail), outcome(vsaV1, ledger.Fail)},
		{"an error with a reserved name", reserved, outcome("merge:x", ledger.Errored), outcome("merge:x", ledger.Errored)},
		{"an envelope that is now too long", long, outcome(vsaV1, ledger.Fail), outcome("vsa:default", ledger.Fail)},
		{"no envelope", nil, outcome(vsaV1, ledger.Pass), outcome(vsaV1, ledger.Recorded)},
	} {
		r := Recorded{Envelope: test.envelope, PredicateType: vsaV1, Commit: ledgertest.Commit, Outcome: test.before}
		if got := Remap(r).Outcome; got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

// A failure that was recorded before rollout was read stays one.
func TestRemapOfAFailedDeployment(t *testing.T) {
	payload := statementOf(aboutCommit, ResultPredicateType,
		`{"predicate":"deploy:prod","result":{"status":"fail"},"rollout":"failed"}`)
	for before, want := range map[ledger.Status]ledger.Status{
		ledger.Fail: ledger.Fail, ledger.Recorded: ledger.Recorded, "": ledger.Recorded,
	} {
		r := Recorded{Envelope: ledgertest.Must(SignDSSE(ledgertest.NewP256(), []byte(payload))),
			PredicateType: ResultPredicateType, Commit: ledgertest.Commit}
		r.Outcome.Result.Status = before
		if got := Remap(r).Outcome; got.Result.Status != want {
			t.Errorf("it was %q, and is %q, want %q", before, got.Result.Status, want)
		}
		a := Attestation{PredicateType: ResultPredicateType}
		a.Predicate, a.Result.Status = "deploy:prod", ledger.Recorded
		if a.AsRecorded(before); a.Result.Status != want {
			t.Errorf("it was recorded as %q, and is %q, want %q", before, a.Result.Status, want)
		}
	}
}

// A recorded time in the future is ignored: it would make all later successes stale.
func TestRemapOfAFutureTime(t *testing.T) {
	key := ledgertest.NewP256()
	for ahead, want := range map[ledger.Time]ledger.Time{0: ledgertest.Now, 5 * 60 * 1000: ledgertest.Now + 5*60*1000,
		5*60*1000 + 1: 0} {
		payload := ledgertest.Must(NewStatement("", ledgertest.Commit, ResultPredicate{Predicate: "test:go",
			Result: ledger.Result{Status: ledger.Fail}, FinishedOn: ledgertest.Now + ahead}))
		got := Remap(Recorded{Envelope: ledgertest.Must(SignDSSE(key, payload)), PredicateType: ResultPredicateType,
			Commit: ledgertest.Commit, RecordedAt: ledgertest.Now}).Outcome
		if got.FinishedAt != want || got.Predicate != "test:go" {
			t.Errorf("%d ms ahead: got %+v", ahead, got)
		}
	}
}
