package states

import (
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// Who counts once with the person who has rolled a commit back does not deploy it again.
func (s suite) TestNamesakeDoesNotDeployAgain(t *testing.T) {
	fx, ann, _, _ := s.deployers(t)
	namesake, i := fx.named("cn=Ann,ou=cd,o=globex", nil)
	ann.SendNoticed(fx.rollback(sha(1), ""), "")
	if rec := namesake.SendNoticed(fx.deployment(sha(1), again), ""); rec.Violation == nil {
		t.Error("a namesake of who has rolled it back deploys it again, and that is no violation")
	}
	fx.wantShut(1, "prod")

	fx.setDistinct(i, true)
	once := func(p *attestation.ResultPredicate) { p.Again, p.FinishedOn = "it was the database", fx.Now() }
	if rec := namesake.SendNoticed(fx.deployment(sha(1), once), ""); rec.Violation != nil {
		t.Errorf("another person deploys it again: %v", rec.Violation.Missing)
	}
	fx.wantShut(1)
}

// Of two deployments at once, what runs is the one that finished last, in whatever order they are
// recorded.
func (s suite) TestTwoDeployersAtOnce(t *testing.T) {
	for range 10 {
		fx, ann, bob, _ := s.deployers(t)
		now := fx.Now()
		statements := map[*storetest.Signer][]byte{
			ann: fx.deployment(sha(0), finished(now.Add(-2*time.Second))),
			bob: fx.deployment(sha(2), finished(now.Add(-time.Second))),
		}
		var group sync.WaitGroup
		for who, statement := range statements {
			a, keyring := who.Verify(statement)
			group.Go(func() {
				_, _, err := fx.Record(t.Context(), "acme", "api", a, keyring)
				must.OK(t, err)
			})
		}
		group.Wait()
		fx.WantState(sha(0), ledger.Deployed)
		fx.WantState(sha(2), ledger.Deployed)
		fx.wantEnvironments("prod 2 DEPLOYED")
	}
}

// A rollback is later than the deployment that it takes back, also if the clock was put back or ran
// ahead between them.
func (s suite) TestClockStepBetweenDeploymentAndRollback(t *testing.T) {
	for name, step := range map[string]time.Duration{"back": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			fx, ann, bob, _ := s.deployers(t)
			fx.Clock.Advance(step)
			ann.SendNoticed(fx.rollback(sha(1), ""), "")
			fx.WantState(sha(1), ledger.Promotable)
			fx.wantShut(1, "prod")
			fx.Clock.Advance(-step)
			if rec := bob.Attest(sha(1), "deploy:prod", ledger.Pass); rec.Violation == nil {
				t.Error("it is deployed again without a word, and that is no violation")
			}
			fx.wantShut(1, "prod")
			bob.SendNoticed(fx.deployment(sha(1), again), "")
			fx.WantState(sha(1), ledger.Deployed)
			fx.wantShut(1)
			fx.wantEnvironments("prod 1 DEPLOYED behind 1")
		})
	}
}
