package storetest

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

func (s suite) TestAPolicyChangeMovesWhatSimulateForetold(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	for i := range 250 {
		ci.attests(sha(i), []string{"test:go", "lint:go"}[i%2], ledger.Pass)
	}
	draft, err := policy.Parse(
		[]byte(`{"requirements":[{"state":"ATTESTED","predicate":"lint:*"},{"state":"PROMOTABLE","predicate":"review:*"}]}`))
	check(t, err)

	foretold, err := b.Simulate(t.Context(), "acme", "api", draft)
	check(t, err)
	if foretold.Evaluated != 250 || len(foretold.Moves) != 250 {
		t.Fatalf("simulate evaluated %d and moves %d, want 250 of each", foretold.Evaluated, len(foretold.Moves))
	}
	_, err = b.SetPolicy(t.Context(), "acme", "api", draft, 1, "host")
	check(t, err)
	check(t, b.Settle(t.Context()))
	for _, move := range foretold.Moves {
		c := b.commit(move.Commit)
		last := c.Transitions[len(c.Transitions)-1]
		if c.State != move.To || last.From != move.From || c.PolicyVersion != 2 {
			t.Fatalf("commit %s: went %s to %s under policy %d, simulate said %s to %s", c.SHA, last.From, c.State,
				c.PolicyVersion, move.From, move.To)
		}
		if want := (ledger.Cause{Type: ledger.CausePolicy, ID: "2"}); last.Cause != want {
			t.Fatalf("cause %v, want %v", last.Cause, want)
		}
	}
	again, err := b.Simulate(t.Context(), "acme", "api", draft)
	check(t, err)
	if len(again.Moves) != 0 {
		t.Errorf("%d moves are left", len(again.Moves))
	}
	repo, err := b.Repo(t.Context(), "acme", "api")
	check(t, err)
	if got, want := fmt.Sprint(repo.Commits), "map[DRAFT:0 VALIDATING:125 ATTESTED:125 PROMOTABLE:0 DEPLOYED:0]"; got !=
		want {
		t.Errorf("counts %s, want %s", got, want)
	}
}

func (s suite) TestAReevaluationGoesOnAfterAStop(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	for i := range 150 {
		ci.attests(sha(i), "test:go", ledger.Pass)
	}
	draft, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"none:*"}]}`))
	check(t, err)
	_, err = b.SetPolicy(t.Context(), "acme", "api", draft, 1, "host")
	check(t, err)
	check(t, b.Close())

	b.open(store.Options{})
	check(t, b.Settle(t.Context()))
	for i := range 150 {
		b.wantState(sha(i), ledger.Validating)
	}
}

func (s suite) TestDeployedCommitsStayAfterAPolicyChange(t *testing.T) {
	b := s.newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	for _, predicate := range []string{"test:go", "review:code", "deploy:prod"} {
		ci.attests(sha(1), predicate, ledger.Pass)
	}
	draft, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"none:*"}]}`))
	check(t, err)
	_, err = b.SetPolicy(t.Context(), "acme", "api", draft, 1, "host")
	check(t, err)
	check(t, b.Settle(t.Context()))
	b.wantState(sha(1), ledger.Deployed)
}

func (s suite) TestPolicyVersions(t *testing.T) {
	b := s.newBench(t)
	first, err := b.Policy(t.Context(), "acme", "api", 0)
	check(t, err)
	if first.Version != 1 || first.Digest != policy.Default().Digest() {
		t.Fatalf("a new repo has version %d, digest %s; want 1 and the default contract's", first.Version, first.Digest)
	}
	draft, err := policy.Parse([]byte(`{"requirements":[]}`))
	check(t, err)
	_, err = b.SetPolicy(t.Context(), "acme", "api", draft, 7, "host")
	wantCode(t, err, ledger.CodePreconditionFailed)
	second, err := b.SetPolicy(t.Context(), "acme", "api", draft, 1, "ann")
	check(t, err)
	if second.Version != 2 || second.CreatedBy != "ann" {
		t.Errorf("got version %d by %s, want 2 by ann", second.Version, second.CreatedBy)
	}
	if got, want := eventTypes(b), "policy"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	old, err := b.Policy(t.Context(), "acme", "api", 1)
	check(t, err)
	if old.Digest != first.Digest {
		t.Errorf("version 1 has changed: %+v", old)
	}
	_, err = b.Policy(t.Context(), "acme", "api", 3)
	wantCode(t, err, ledger.CodeNotFound)
	list, err := b.Policies(t.Context(), "acme", "api", store.Query{Limit: 10})
	check(t, err)
	if len(list.Data) != 2 || list.Data[0].Version != 2 {
		t.Errorf("versions %+v, want 2 and 1", list.Data)
	}
}
