package store_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A judged is a store whose repo acme/api has a contract with an expression.
type judged struct {
	*store.Store
	t   *testing.T
	now time.Time
}

func newJudged(t *testing.T) *judged {
	j := &judged{t: t, now: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	started := j.now
	j.Store = newSQLite(t).Open(t, store.Options{
		Now: func() time.Time { return j.now }, Monotonic: func() time.Duration { return j.now.Sub(started) },
	})
	t.Cleanup(func() { j.Close() })
	storetest.CreateAcme(t, j.Store)
	return j
}

// setWhere sets a contract as another release may have accepted it.
func (j *judged) setWhere(expression string) {
	j.t.Helper()
	c, err := policy.ParseStored(fmt.Appendf(nil, `{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","where":%q,"max_age":"24h"},
		{"state":"PROMOTABLE","predicate":"review:*"}],"targets":"all"}`, expression))
	must.OK(j.t, err)
	_, err = j.SetPolicy(j.t.Context(), "acme", "api", c, 0, "host")
	must.OK(j.t, err)
}

// attest records a pass of test:go, with a level, on the first commit.
func (j *judged) attest(level int) { j.attestAs("test:go", level) }

func (j *judged) attestAs(predicate string, level int) {
	j.t.Helper()
	j.now = j.now.Add(time.Second) // another statement
	dn := must.Get(identity.ParseDN("cn=ci,o=acme"))(j.t)
	payload := fmt.Appendf(nil, `{"predicate": {"level": %d, "at": %d}}`, level, j.now.Unix())
	_, version, err := j.Keyring(j.t.Context(), "acme")
	must.OK(j.t, err)
	_, _, err = j.Record(j.t.Context(), "acme", "api", &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: predicate, Result: ledger.Result{Status: ledger.Pass}},
		Commit:  sha(0), PredicateType: attestation.ResultPredicateType, Payload: payload,
		PayloadDigest: sha256.Sum256(payload),
		Signer:        identity.Signer{DN: dn, Identity: "idn_made", Key: sha256.Sum256([]byte(dn.CN))},
		Envelope:      []byte(`{"payload":"` + base64.StdEncoding.EncodeToString(payload) + `"}`),
	}, version)
	must.OK(j.t, err)
}

// want checks the state of the first commit, the reason of its first requirement, and the
// number of its transitions.
func (j *judged) want(state ledger.State, reason string, transitions int) {
	j.t.Helper()
	c, err := j.Commit(j.t.Context(), "acme", "api", sha(0))
	must.OK(j.t, err)
	if r := c.Requirements[0]; c.State != state || !strings.Contains(r.Reason, reason) ||
		len(c.Transitions) != transitions {
		j.t.Errorf("the commit is %s after %d transitions because %q, want %s, %d and %q", c.State, len(c.Transitions),
			r.Reason, state, transitions, reason)
	}
}

func (j *judged) settle() {
	j.t.Helper()
	must.OK(j.t, j.Settle(j.t.Context()))
}

func TestWhereOfAPrunedEnvelope(t *testing.T) {
	j := newJudged(t)
	j.attest(1)
	_, err := j.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{
		Retention: &ledger.RetentionChange{Envelopes: days(1)}})
	must.OK(t, err)
	must.OK(t, j.Run(t.Context(), "UPDATE repos SET keep_envelopes = 60000")) // shorter than evidence is valid
	j.now = j.now.Add(2 * time.Minute)
	j.settle()
	j.setWhere("predicate.level == 1")
	j.want(ledger.Attested, "not evaluated yet", 2)
	j.settle()
	j.want(ledger.Validating, "the envelope was pruned", 3)

	j.attest(1)
	j.want(ledger.Attested, "met by", 4)
}

// However much is to be evaluated, a step of a job evaluates only a part of it, and the job goes on later.
func TestStepsEvaluateAPart(t *testing.T) {
	j := newJudged(t)
	const many = store.EvaluatedBatch + 10
	for i := range many {
		j.attestAs(fmt.Sprint("test:", i), 1)
	}
	j.setWhere("predicate.level == 1")
	for _, want := range []int{store.EvaluatedBatch, many} {
		more, verdicts, err := j.EvaluateNext(t.Context())
		must.OK(t, err)
		if verdicts != want || more != (want < many) {
			t.Errorf("%d verdicts are stored, and more is %t, want %d", verdicts, more, want)
		}
	}

	must.OK(t, j.LoseVerdicts(t.Context()))
	j.settle()
	j.want(ledger.Attested, "met by", 2)
}

// If the policy changes between the evaluation of a batch and its write, the writer finds
// verdicts missing. It then leaves the commits as they are, and has them evaluated again.
func TestBatchWithoutVerdictsWaitsFault(t *testing.T) {
	j := newJudged(t)
	j.attest(1)
	j.setWhere("predicate.level == 1")
	stuck, err := j.SettleBatch(t.Context(), "acme", "api")
	must.OK(t, err)
	if !stuck {
		t.Error("the batch was settled without verdicts")
	}
	j.want(ledger.Attested, "not evaluated yet", 2)

	j.settle()
	j.want(ledger.Attested, "met by", 2)
	if c, err := j.Commit(t.Context(), "acme", "api", sha(0)); err != nil || c.PolicyVersion != 2 {
		t.Errorf("the commit was derived under policy %d, want 2: %v", c.PolicyVersion, err)
	}
}

// A contract of a later release, or an earlier one, may have an expression that this one
// does not compile.
func TestWhereThatDoesNotCompile(t *testing.T) {
	j := newJudged(t)
	j.attest(1)
	j.setWhere("predicate.level ==")
	j.settle()
	j.want(ledger.Validating, "not valid in this release", 3)
	j.attest(1)
	j.want(ledger.Validating, "not valid in this release", 3)
	j.setWhere("predicate.level == 1")
	j.settle()
	j.want(ledger.Attested, "met by", 4)
}

// An expression that is not valid does not keep the others from being evaluated.
func TestVerdictsNextToThatOfAnInvalidExpression(t *testing.T) {
	j := newJudged(t)
	list := j.Verdicts([]byte(`{}`), []string{"true", "nothing(", "true"})
	if !list[0].True || !strings.Contains(list[1].Error, "not valid in this release") || !list[2].True {
		t.Errorf("%+v", list)
	}
}

// If verdicts are missing, as after other rules have mapped a statement to another
// predicate, no write takes the state away. The background finds them and derives it.
func TestLostVerdictsFault(t *testing.T) {
	j := newJudged(t)
	j.setWhere("predicate.level == 1")
	j.attest(1)
	j.want(ledger.Attested, "met by", 2)

	register := func() {
		_, _, err := j.Register(t.Context(), "acme", "api", sha(0), ledger.Registration{Branch: "topic"})
		must.OK(t, err)
	}
	must.OK(t, j.LoseVerdicts(t.Context()))
	register()
	j.want(ledger.Attested, "not evaluated yet", 2)
	j.settle()
	j.want(ledger.Attested, "met by", 2)

	// An attestation is only recorded when all verdicts are known.
	must.OK(t, j.LoseVerdicts(t.Context()))
	j.attest(0)
	j.want(ledger.Validating, "where", 3)
	j.attest(1)

	// The state also waits when evidence expires, and then falls because of it.
	must.OK(t, j.LoseVerdicts(t.Context()))
	j.now = j.now.Add(25 * time.Hour)
	j.settle()
	j.settle()
	j.want(ledger.Validating, "expired", 5)
}
