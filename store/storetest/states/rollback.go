package states

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// deployment returns the statement of a deployment to prod.
func (fx *fixture) deployment(sha string, change func(*attestation.ResultPredicate)) []byte {
	fx.T.Helper()
	p := attestation.ResultPredicate{Predicate: "deploy:prod", Result: ledger.Result{Status: ledger.Pass}}
	change(&p)
	payload, err := attestation.NewStatement("acme/api", sha, p)
	must.OK(fx.T, err)
	return payload
}

func again(p *attestation.ResultPredicate) { p.Again = "it was the database" }

func attempt(p *attestation.ResultPredicate) {
	p.Result.Status, p.Rollout = ledger.Fail, ledger.RolloutFailed
}

func finished(at ledger.Time) func(*attestation.ResultPredicate) {
	return func(p *attestation.ResultPredicate) { p.FinishedOn = at }
}

// rollback returns the statement of a rollback from prod. to may be empty.
func (fx *fixture) rollback(sha, to string) []byte {
	fx.T.Helper()
	payload, err := attestation.NewRollbackStatement(sha, attestation.Rollback{Repo: "acme/api", Environment: "prod",
		Reason: "it leaks", To: attestation.RunningCommit{SHA: to}, IssuedOn: fx.Now()})
	must.OK(fx.T, err)
	return payload
}

// wantShut checks from which environments a commit was rolled back, and what its gate says.
func (fx *fixture) wantShut(n int, environments ...string) {
	fx.T.Helper()
	c := fx.ReadCommit(sha(n))
	var got []string
	for _, r := range c.RolledBack {
		got = append(got, r.Environment)
		g := c.Gate(ledger.Promotable, r.Environment)
		if g.Reached || !strings.Contains(strings.Join(g.Reasons, " "), r.String()) {
			fx.T.Errorf("commit %d: the gate of %s is %+v, want it shut because it was %s", n, r.Environment, g, r)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(environments) {
		fx.T.Errorf("commit %d was rolled back from %v, want %v", n, got, environments)
	}
}

// deployers returns a ledger in which deploy:prod counts, and three who may deploy there. Of
// the commits 0 to 2, all are tested, and the first two were deployed.
func (s suite) deployers(t *testing.T) (fx *fixture, ann, bob, mallory *storetest.Signer) {
	fx = s.newFixture(t)
	fx.SetContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"test:*"},
{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=cd"],"name":"live"}],
"exceptions":{"signers":["cn=ann"],"max_duration":"1h"}}`)
	ann, bob = fx.NewSigner("cn=ann,ou=cd,o=acme"), fx.NewSigner("cn=bob,ou=cd,o=acme")
	mallory = fx.NewSigner("cn=mallory,ou=x,o=acme")
	for n := range 3 {
		mallory.Attest(sha(n), "test:go", ledger.Pass)
	}
	for n := range 2 {
		ann.Attest(sha(n), "deploy:prod", ledger.Pass)
	}
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")
	return fx, ann, bob, mallory
}

// A rollback takes a commit out of its environment and keeps it out: only a deployer who says so,
// and has not rolled it back, deploys it again without a violation.
func (s suite) TestRollbackShutsTheGateOfItsEnvironment(t *testing.T) {
	fx, ann, bob, mallory := s.deployers(t)
	mallory.SendNoticed(fx.rollback(sha(1), ""), "it has no effect: by the policy, cn=mallory,ou=x,o=acme does not deploy")
	fx.wantShut(1)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")

	if rec := ann.SendNoticed(fx.rollback(sha(1), ""), ""); rec.Reason != "it leaks" || rec.Predicate != "rollback:prod" {
		t.Errorf("recorded as %+v, want the reason of a rollback:prod", rec)
	}
	fx.WantState(sha(1), ledger.Promotable)
	fx.wantEnvironments("prod 0 DEPLOYED behind 2 after 1")
	fx.wantShut(1, "prod")
	c := fx.ReadCommit(sha(1))
	if g := c.Gate(ledger.Promotable, "pro"); !g.Reached {
		t.Errorf("the gate of another environment is %+v, want it open", g)
	}

	for _, who := range []*storetest.Signer{ann, bob} {
		if rec := who.Attest(sha(1), "deploy:prod", ledger.Pass); rec.Violation == nil {
			t.Errorf("%s deploys it again, and that is no violation", who.DN)
		}
	}
	if rec := ann.SendNoticed(fx.deployment(sha(1), again), ""); rec.Violation == nil {
		t.Error("who has rolled it back deploys it again, and that is no violation")
	}
	if rec := mallory.SendNoticed(fx.deployment(sha(1), again), ""); rec.Violation == nil {
		t.Error("who may not deploy deploys it again, and that is no violation")
	}
	fx.WantState(sha(1), ledger.Promotable)
	fx.wantShut(1, "prod")

	bob.SendNoticed(fx.deployment(sha(1), again), "")
	fx.WantState(sha(1), ledger.Deployed)
	fx.wantShut(1)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")
	if rec := ann.Attest(sha(1), "deploy:prod", ledger.Pass); rec.Violation != nil {
		t.Errorf("it is deployed once more: %v", rec.Violation.Missing)
	}
	fx.wantShut(1)
}

// An exception opens the gate that a rollback has shut, until it ends. A deployment that counts
// in this time opens it for good.
func (s suite) TestExceptionOpensTheGateOfARollback(t *testing.T) {
	fx, ann, bob, _ := s.deployers(t)
	ann.SendNoticed(fx.rollback(sha(0), ""), "")
	ann.SendNoticed(fx.rollback(sha(1), ""), "")
	fx.wantShut(0, "prod")
	fx.wantEnvironments("prod unknown after 1")

	excuse := func(n int) {
		payload, err := attestation.NewExceptionStatement(sha(n), attestation.Exception{Repo: "acme/api",
			Requirement: "rollback:prod", Reason: "the leak is small", Until: fx.Now().Add(time.Minute)})
		must.OK(t, err)
		ann.SendNoticed(payload, "")
	}
	excuse(0)
	excuse(1)
	fx.wantShut(0)
	fx.WantState(sha(0), ledger.Promotable) // an exception deploys nothing
	if rec := bob.Attest(sha(1), "deploy:prod", ledger.Pass); rec.Violation != nil {
		t.Errorf("a deployment with an exception is a violation: %v", rec.Violation.Missing)
	}
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")

	fx.Clock.Advance(2 * time.Minute)
	fx.wantShut(0, "prod")
	fx.wantShut(1)
	if rec := bob.Attest(sha(0), "deploy:prod", ledger.Pass); rec.Violation == nil {
		t.Error("a deployment after the exception has ended is no violation")
	}
}

// An attempt to deploy that failed is recorded, and moves nothing. A failure that does not say
// so is a rollback, and the answer says that.
func (s suite) TestFailedAttemptMovesNothing(t *testing.T) {
	fx, ann, bob, _ := s.deployers(t)
	for _, n := range []int{1, 2} {
		rec := ann.SendNoticed(fx.deployment(sha(n), attempt), "")
		if rec.Rollout != ledger.RolloutFailed || rec.Result.Status != ledger.Recorded {
			t.Errorf("recorded as %+v, want an attempt that failed", rec)
		}
	}
	fx.WantState(sha(1), ledger.Deployed)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")
	fx.wantShut(1)
	if list := fx.ReadCommit(sha(1)).Attestations; list[0].Rollout != ledger.RolloutFailed {
		t.Errorf("the commit shows %+v, want an attempt that failed", list[0])
	}

	bob.SendNoticed(fx.deployment(sha(1), func(p *attestation.ResultPredicate) { p.Result.Status = ledger.Fail }),
		"it is a rollback: the commit no longer runs in prod")
	fx.WantState(sha(1), ledger.Promotable)
	fx.wantEnvironments("prod 0 DEPLOYED behind 2 after 1")
}

// A rollback may name the commit that runs in place of the other: one whose deployment counted.
func (s suite) TestRollbackToACommit(t *testing.T) {
	fx, ann, bob, _ := s.deployers(t)
	mallory := fx.NewSigner("cn=eve,ou=x,o=acme")
	mallory.Attest(sha(2), "deploy:prod", ledger.Pass) // a violation
	for _, n := range []int{2, 3} {                    // whose deployment has not counted, and who is not known
		_, _, err := ann.Send(fx.rollback(sha(1), sha(n)))
		storetest.WantCode(t, err, ledger.CodeInvalidStatement)
	}
	fx.wantEnvironments("prod 1 DEPLOYED behind 1 violations 1, 2")

	ann.Attest(sha(2), "deploy:prod", ledger.Pass)
	rec := bob.SendNoticed(fx.rollback(sha(2), sha(0)), "")
	fx.wantEnvironments("prod 0 DEPLOYED behind 2 after 2")
	runs := fx.environments(store.EnvironmentFilter{Query: store.Query{Limit: 10}})[0].Deployment
	if runs.Attestation != rec.ID || runs.Identity != bob.DN {
		t.Errorf("it runs by %+v, want the rollback %s", runs, rec.ID)
	}
	_, _, err := ann.Send(fx.rollback(sha(0), sha(2)))
	storetest.WantCode(t, err, ledger.CodeInvalidStatement) // it was rolled back itself
}

// What runs is what was deployed last, by the times in the statements. A statement that another
// deployment has replaced says nothing any more.
func (s suite) TestDeploymentsAreRecordedInAnotherOrder(t *testing.T) {
	fx, ann, bob, _ := s.deployers(t)
	now := fx.Now()
	ann.SendNoticed(fx.deployment(sha(1), finished(now.Add(-time.Minute))), "")
	late := fx.deployment(sha(2), finished(now.Add(-time.Hour)))
	bob.SendNoticed(late, "it does not change what runs in prod: "+sha(1)+" was deployed there later")
	fx.WantState(sha(2), ledger.Deployed)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")
	if _, created, err := bob.Send(late); created || err != nil {
		t.Errorf("recorded again: created %t, %v", created, err)
	}

	plain := fx.deployment(sha(0), func(*attestation.ResultPredicate) {})
	ann.SendNoticed(plain, "")
	if _, created, err := ann.Send(plain); created || err != nil {
		t.Errorf("recorded again at once: created %t, %v", created, err)
	}
	ann.SendNoticed(fx.deployment(sha(1), finished(now)), "")
	_, _, err := ann.Send(plain)
	storetest.WantCode(t, err, ledger.CodeStaleStatement)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")

	undo := fx.rollback(sha(1), "")
	ann.SendNoticed(undo, "")
	bob.SendNoticed(fx.deployment(sha(1), again), "")
	_, _, err = ann.Send(undo)
	storetest.WantCode(t, err, ledger.CodeStaleStatement)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")
}

// A rollback of a deployment that broke the policy closes its violation, under the predicate of
// the deployments.
func (s suite) TestRollbackClosesViolations(t *testing.T) {
	fx, ann, _, mallory := s.deployers(t)
	mallory.Attest(sha(2), "deploy:prod", ledger.Pass)
	fx.wantEnvironments("prod 1 DEPLOYED behind 1 violations 1, 2")
	ann.SendNoticed(fx.rollback(sha(2), ""), "")
	fx.wantEnvironments("prod 1 DEPLOYED behind 1")
	fx.wantShut(2, "prod")
}
