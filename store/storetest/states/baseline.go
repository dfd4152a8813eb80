package states

import (
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// baseline returns the statement that a commit is the baseline of an environment.
func (fx *fixture) baseline(n int, environment string) []byte {
	fx.T.Helper()
	payload, err := attestation.NewBaselineStatement(sha(n), attestation.Baseline{Repo: "acme/api",
		Environment: environment, Reason: "it runs since May", IssuedOn: ledger.Time(fx.Clock.Tick())})
	must.OK(fx.T, err)
	return payload
}

// A baseline is what runs as long as no deployment counts: before the first one, and when all were rolled back. While
// one counts, another baseline is refused.
func (s suite) TestBaselineIsWhatRunsWithoutADeployment(t *testing.T) {
	fx, ann, bob, _ := s.deployers(t)
	first := ann.SendNoticed(fx.baseline(0, "eu"), "")
	fx.wantEnvironments("eu unknown baseline 0", "prod 1 DEPLOYED behind 1")
	bob.SendNoticed(fx.baseline(3, "eu"), "") // a commit that was not known
	fx.wantEnvironments("eu unknown baseline 3", "prod 1 DEPLOYED behind 1")
	again := ann.SendNoticed(fx.baseline(0, "eu"), "") // the newest counts, also of a commit that was one before
	fx.wantEnvironments("eu unknown baseline 0", "prod 1 DEPLOYED behind 1")

	eu := fx.environments(store.EnvironmentFilter{Query: store.Query{Limit: 1}, Name: "eu"})[0]
	want := ledger.Baseline{Commit: sha(0), Identity: ann.DN, Attestation: again.ID, At: again.RecordedAt,
		Reason: "it runs since May"}
	if *eu.Baseline != want || again.ID == first.ID || again.Predicate != "baseline:eu" || again.Reason != want.Reason {
		t.Errorf("the baseline is %+v by %+v, want %+v", *eu.Baseline, again, want)
	}

	ann.Attest(sha(2), "deploy:eu", ledger.Pass)
	fx.wantEnvironments("eu 2 PROMOTABLE not required", "prod 1 DEPLOYED behind 1")
	_, _, err := bob.Send(fx.baseline(1, "eu"))
	storetest.WantCode(t, err, ledger.CodeInvalidStatement)
	fx.wantEnvironments("eu 2 PROMOTABLE not required", "prod 1 DEPLOYED behind 1")
	ann.Attest(sha(2), "deploy:eu", ledger.Fail)
	fx.wantEnvironments("eu unknown baseline 0 after 2", "prod 1 DEPLOYED behind 1")
	bob.SendNoticed(fx.baseline(1, "eu"), "")
	fx.wantEnvironments("eu unknown baseline 1 after 2", "prod 1 DEPLOYED behind 1")
}

// A rollback of the baseline's commit does not end it: only another baseline does. The commit has no state by it.
func (s suite) TestRollbackDoesNotEndABaseline(t *testing.T) {
	fx, ann, _, _ := s.deployers(t)
	for n := range 2 {
		ann.SendNoticed(fx.rollback(sha(n), ""), "")
	}
	fx.wantEnvironments("prod unknown after 1")
	ann.SendNoticed(fx.baseline(2, "prod"), "")
	fx.wantEnvironments("prod unknown baseline 2 after 1")
	fx.WantState(sha(2), ledger.Promotable)
	ann.SendNoticed(fx.rollback(sha(2), ""), "")
	fx.wantEnvironments("prod unknown baseline 2 after 1")
}

// Only deployers set baselines. What a signer has set who is distrusted later does not count.
func (s suite) TestWhoSetsABaseline(t *testing.T) {
	fx, ann, bob, mallory := s.deployers(t)
	for _, n := range []int{1, 3} { // a commit that is known, and one that is not
		_, _, err := mallory.Send(fx.baseline(n, "prod"))
		storetest.WantCode(t, err, ledger.CodePredicateNotAllowed)
		if err != nil && !strings.Contains(err.Error(), "does not deploy to prod") {
			t.Errorf("a baseline by somebody who does not deploy: %v", err)
		}
	}
	mallory.SendNoticed(fx.baseline(1, "test"), "") // to which anybody deploys
	fx.wantEnvironments("test unknown baseline 1", "prod 1 DEPLOYED behind 1")

	ann.SendNoticed(fx.baseline(0, "eu"), "")
	fx.Clock.Advance(time.Hour)
	since := fx.Now()
	replaced := ann.SendNoticed(fx.baseline(1, "eu"), "")
	bob.SendNoticed(fx.baseline(2, "eu"), "")
	fx.distrust(bob, since)
	fx.wantEnvironments("eu unknown baseline 1", "test unknown baseline 1", "prod 1 DEPLOYED behind 1")
	if eu := fx.environments(store.EnvironmentFilter{Query: store.Query{Limit: 1}, Name: "eu"})[0]; eu.Baseline.
		Attestation != replaced.ID {
		t.Errorf("the baseline is by %s, want %s", eu.Baseline.Attestation, replaced.ID)
	}
}

// What was deployed and replaced does not run again because it is a baseline, so its standing is not kept.
func (s suite) TestStandingOfABaseline(t *testing.T) {
	l := s.newLive(t)
	l.cd.SendNoticed(l.rollback(commitOf(1), ""), "")
	l.cd.SendNoticed(l.baseline(1, "prod"), "")
	l.deploy(2)
	l.ci.Attest(commitOf(1), "scan:image", ledger.Fail)
	l.want(0, "")
}

// A baseline that another one has replaced says nothing any more when it is sent again.
func (s suite) TestBaselinesAreSentAgain(t *testing.T) {
	fx, ann, bob, _ := s.deployers(t)
	first := fx.baseline(0, "eu")
	ann.SendNoticed(first, "")
	if _, created, err := ann.Send(first); created || err != nil {
		t.Errorf("sent again at once: created %t, %v", created, err)
	}
	bob.SendNoticed(fx.baseline(1, "eu"), "")
	_, _, err := ann.Send(first)
	storetest.WantCode(t, err, ledger.CodeStaleStatement)
	fx.wantEnvironments("eu unknown baseline 1", "prod 1 DEPLOYED behind 1")
}

// A baseline is logged as an attestation, and as what an admin has done.
func (s suite) TestBaselinesAreAudited(t *testing.T) {
	fx, ann, _, _ := s.deployers(t)
	rec := ann.SendNoticed(fx.baseline(0, "eu"), "")
	list := storetest.EventsOf[ledger.AuditEvent](fx.Fixture)
	last := list[len(list)-1]
	if last.Action != ledger.AuditBaselineSet || last.Target != rec.ID || last.Repo != "api" || len(last.Changes) != 4 {
		t.Errorf("the last audit event is %+v, want that of the baseline %s", last, rec.ID)
	}
}
