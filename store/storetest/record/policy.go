package record

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

func (s suite) TestAPolicyChangeMovesCommitsAsSimulated(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	for i := range 250 {
		ci.Attest(sha(i), []string{"test:go", "lint:go"}[i%2], ledger.Pass)
	}
	draft, err := policy.Parse(
		[]byte(`{"requirements":[{"state":"ATTESTED","predicate":"lint:*"},{"state":"PROMOTABLE","predicate":"review:*"}]}`))
	must.OK(t, err)

	simulated, err := fx.Simulate(t.Context(), "acme", "api", draft)
	must.OK(t, err)
	if simulated.Evaluated != 250 || len(simulated.Moves) != 250 || simulated.Truncated != 0 {
		t.Fatalf("simulate evaluated %d and moves %d, want 250 of each", simulated.Evaluated, len(simulated.Moves))
	}
	_, err = fx.SetPolicy(t.Context(), "acme", "api", draft, 1, "host")
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))
	for _, move := range simulated.Moves {
		c := fx.ReadCommit(move.Commit)
		last := c.Transitions[len(c.Transitions)-1]
		if c.State != move.To || last.From != move.From || c.PolicyVersion != 2 {
			t.Fatalf("commit %s: %s to %s under policy %d, simulated %s to %s", c.SHA, last.From, c.State,
				c.PolicyVersion, move.From, move.To)
		}
		if want := (ledger.Cause{Type: ledger.CausePolicy, ID: "2"}); last.Cause != want {
			t.Fatalf("cause %v, want %v", last.Cause, want)
		}
	}
	again, err := fx.Simulate(t.Context(), "acme", "api", draft)
	must.OK(t, err)
	if len(again.Moves) != 0 || len(again.Sums) != 0 {
		t.Errorf("simulate after the change: %d moves", len(again.Moves))
	}

	repo, err := fx.Repo(t.Context(), "acme", "api")
	must.OK(t, err)
	if got, want := fmt.Sprint(repo.Commits), "map[DRAFT:0 VALIDATING:125 ATTESTED:125 PROMOTABLE:0 DEPLOYED:0]"; got !=
		want {
		t.Errorf("counts %s, want %s", got, want)
	}
}

func (s suite) TestSettlingGoesOnAfterARestart(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	for i := range 150 {
		ci.Attest(sha(i), "test:go", ledger.Pass)
	}
	draft, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"none:*"}]}`))
	must.OK(t, err)
	_, err = fx.SetPolicy(t.Context(), "acme", "api", draft, 1, "host")
	must.OK(t, err)
	must.OK(t, fx.Close())

	fx.Open(store.Options{})
	must.OK(t, fx.Settle(t.Context()))
	for i := range 150 {
		fx.WantState(sha(i), ledger.Validating)
	}
}

func (s suite) TestDeployedCommitsSurviveAPolicyChange(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	ci.Deploy(sha(1))
	draft, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"none:*"}]}`))
	must.OK(t, err)
	_, err = fx.SetPolicy(t.Context(), "acme", "api", draft, 1, "host")
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))
	fx.WantState(sha(1), ledger.Deployed)
}

func (s suite) TestPolicyVersions(t *testing.T) {
	fx := s.newFixture(t)
	first, err := fx.Policy(t.Context(), "acme", "api", 0)
	must.OK(t, err)
	if first.Version != 1 || first.Digest != policy.Default().Digest() {
		t.Fatalf("a new repo has version %d, digest %s; want 1 and the default contract's", first.Version, first.Digest)
	}

	draft, err := policy.Parse([]byte(`{"requirements":[]}`))
	must.OK(t, err)
	_, err = fx.SetPolicy(t.Context(), "acme", "api", draft, 7, "host")
	storetest.WantCode(t, err, ledger.CodePreconditionFailed)
	second, err := fx.SetPolicy(t.Context(), "acme", "api", draft, 1, "ann")
	must.OK(t, err)
	if second.Version != 2 || second.CreatedBy != "ann" {
		t.Errorf("got version %d by %s, want 2 by ann", second.Version, second.CreatedBy)
	}
	if got, want := eventTypes(fx), "policy"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}

	old, err := fx.Policy(t.Context(), "acme", "api", 1)
	must.OK(t, err)
	if old.Digest != first.Digest {
		t.Errorf("version 1 has changed: %+v", old)
	}
	_, err = fx.Policy(t.Context(), "acme", "api", 3)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	list, err := fx.Policies(t.Context(), "acme", "api", store.Query{Limit: 10})
	must.OK(t, err)
	if len(list.Data) != 2 || list.Data[0].Version != 2 {
		t.Errorf("versions %+v, want 2 and 1", list.Data)
	}
}
