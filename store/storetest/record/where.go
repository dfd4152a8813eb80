package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// whereContract returns a contract whose ATTESTED requirement has an expression.
func whereContract(t testing.TB, expression string) policy.Contract {
	t.Helper()
	c, err := policy.Parse(fmt.Appendf(nil, `{"requirements":[{"state":"ATTESTED","predicate":"test:*","where":%q},
		{"state":"PROMOTABLE","predicate":"review:*"}]}`, expression))
	must.OK(t, err)
	return c
}

func (fx *fixture) setPolicy(c policy.Contract) {
	fx.T.Helper()
	_, err := fx.SetPolicy(fx.T.Context(), "acme", "api", c, 0, "host")
	must.OK(fx.T, err)
}

// attestNoted records a pass of test:go with an annotation.
func (fx *fixture) attestNoted(s *storetest.Signer, sha, note string) {
	fx.T.Helper()
	fx.Clock.Tick()
	a, version := s.Sign(sha, "test:go", ledger.Pass, note)
	_, _, err := fx.Record(fx.T.Context(), "acme", "api", a, version)
	must.OK(fx.T, err)
}

// reasonOf returns why the first requirement of a commit is met or not.
func (fx *fixture) reasonOf(sha string) string { return fx.ReadCommit(sha).Requirements[0].Reason }

func (fx *fixture) wantReason(sha, want string) {
	fx.T.Helper()
	if got := fx.reasonOf(sha); !strings.Contains(got, want) {
		fx.T.Errorf("commit %s: the reason is %q, want %q", sha[:7], got, want)
	}
}

const isGood = `predicate.annotations.note == "good"`

func (s suite) TestWhereIsEvaluatedAtReceipt(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(whereContract(t, isGood))
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")

	fx.attestNoted(ci, sha(1), "bad")
	fx.WantState(sha(1), ledger.Validating)
	fx.wantReason(sha(1), "where")
	fx.attestNoted(ci, sha(1), "good")
	fx.WantState(sha(1), ledger.Attested)
	ci.Attest(sha(1), "review:code", ledger.Pass) // is not about the expression
	fx.WantState(sha(1), ledger.Promotable)
	if got, want := storetest.Path(fx.ReadCommit(sha(1))), toPromotable; got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}

	// The verdicts are of the statement, not of the process.
	must.OK(t, fx.Close())
	fx.Open(store.Options{})
	fx.WantState(sha(1), ledger.Promotable)
	fx.wantReason(sha(1), "met by")
}

func (s suite) TestWhereWithAnErrorDoesNotCount(t *testing.T) {
	fx := s.newFixture(t)
	fx.setPolicy(whereContract(t, `predicate.annotations.missing == "good"`))
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	fx.attestNoted(ci, sha(1), "good")
	fx.WantState(sha(1), ledger.Validating)
	fx.wantReason(sha(1), "no such key: missing")
}

// After a policy change, commits keep their state until the expressions were evaluated.
func (s suite) TestWhereIsEvaluatedAfterAPolicyChange(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	const commits = 250
	note := func(i int) string { return []string{"good", "bad"}[i%2] }
	for i := range commits {
		fx.attestNoted(ci, sha(i), note(i))
	}

	draft := whereContract(t, isGood)
	simulated, err := fx.Simulate(t.Context(), "acme", "api", draft)
	must.OK(t, err)
	if simulated.Evaluated != commits || len(simulated.Moves) != commits/2 {
		t.Fatalf("simulate evaluated %d and moves %d, want %d and %d", simulated.Evaluated, len(simulated.Moves),
			commits, commits/2)
	}
	fx.setPolicy(draft)
	for i := range 2 { // settled before
		fx.WantState(sha(i), ledger.Attested)
		fx.wantReason(sha(i), "not evaluated yet")
	}

	must.OK(t, fx.Settle(t.Context()))
	for i := range commits {
		want := map[string]ledger.State{"good": ledger.Attested, "bad": ledger.Validating}[note(i)]
		fx.WantState(sha(i), want)
		if c := fx.ReadCommit(sha(i)); c.PolicyVersion != 2 || want == ledger.Attested && len(c.Transitions) != 2 {
			t.Fatalf("commit %s: policy %d, transitions %s", sha(i)[:7], c.PolicyVersion, storetest.Path(c))
		}
	}
	for _, move := range simulated.Moves {
		fx.WantState(move.Commit, move.To)
	}
	again, err := fx.Simulate(t.Context(), "acme", "api", draft)
	must.OK(t, err)
	if len(again.Moves) != 0 {
		t.Errorf("simulate after the change moves %d", len(again.Moves))
	}
}

// A commit that gets an attestation before the background has reached it does not lose its state
// in between.
func (s suite) TestWhereOfACommitThatEvaluateHasNotReached(t *testing.T) {
	fx := s.newFixture(t)
	ci, ann := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=ann,ou=people,o=acme")
	for i := range 3 {
		fx.attestNoted(ci, sha(i), "good")
	}
	fx.setPolicy(whereContract(t, isGood))

	ann.Attest(sha(1), "review:code", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)
	if got, want := storetest.Path(fx.ReadCommit(sha(1))), toPromotable; got != want {
		t.Errorf("transitions %s, want %s", got, want)
	}
	// A registration cannot wait for an evaluation. The background derives the state.
	_, _, err := fx.Register(t.Context(), "acme", "api", sha(2), ledger.Registration{Branch: "topic"})
	must.OK(t, err)
	fx.WantState(sha(2), ledger.Attested)
	must.OK(t, fx.Settle(t.Context()))
	for i, want := range []ledger.State{ledger.Attested, ledger.Promotable, ledger.Attested} {
		fx.WantState(sha(i), want)
		if c := fx.ReadCommit(sha(i)); c.PolicyVersion != 2 || strings.Contains(storetest.Path(c), "ATTESTED>VALIDATING") {
			t.Errorf("commit %d: policy %d, transitions %s", i, c.PolicyVersion, storetest.Path(c))
		}
	}
}

// An evaluation that a restart interrupts goes on where it was.
func (s suite) TestWhereContinuesAfterARestart(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	const commits = 230
	for i := range commits {
		fx.attestNoted(ci, sha(i), []string{"good", "bad"}[i%2])
	}
	fx.setPolicy(whereContract(t, isGood))

	for stopped := 0; ; stopped++ { // after more and more commits
		ctx, stop := context.WithCancel(t.Context())
		var settling sync.WaitGroup
		settling.Go(func() { _ = fx.Settle(ctx) })
		for seen := 0; seen < stopped*20 && seen < commits; seen++ {
			fx.ReadCommit(sha(seen))
		}
		stop()
		settling.Wait()
		must.OK(t, fx.Close())
		fx.Open(store.Options{})
		if fx.ReadCommit(sha(commits-1)).PolicyVersion == 2 && fx.reasonOf(sha(commits-1)) != "" && stopped > 3 {
			break
		}
		if stopped == 20 {
			must.OK(t, fx.Settle(t.Context()))
		}
	}
	must.OK(t, fx.Settle(t.Context()))
	for i := range commits {
		fx.WantState(sha(i), []ledger.State{ledger.Attested, ledger.Validating}[i%2])
	}
}

// Two processes share the verdicts: one changes the policy, the other one records and
// settles.
func (s suite) TestWhereInTwoProcesses(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	other := fx.Database.Open(t, store.Options{Now: fx.Clock.Now})
	t.Cleanup(func() { other.Close() })

	for i, round := range []struct{ expression, note string }{
		{isGood, "good"}, {`predicate.annotations.note == "better"`, "better"}, {isGood, "good"},
	} {
		fx.attestNoted(ci, sha(0), fmt.Sprint(round.note, i))
		_, err := other.SetPolicy(t.Context(), "acme", "api", whereContract(t, round.expression), 0, "host")
		must.OK(t, err)
		fx.attestNoted(ci, sha(i+1), round.note) // this process has not seen the new policy
		fx.WantState(sha(i+1), ledger.Attested)
		fx.wantReason(sha(i+1), "met by")

		var wg sync.WaitGroup
		wg.Go(func() {
			if err := fx.Settle(t.Context()); err != nil {
				t.Error(err)
			}
		})
		must.OK(t, other.Settle(t.Context()))
		wg.Wait()
		fx.WantState(sha(0), ledger.Validating)
		if c := fx.ReadCommit(sha(0)); c.PolicyVersion != i+2 {
			t.Errorf("round %d: policy %d", i, c.PolicyVersion)
		}
	}
}

// Attestations that are recorded while the policy changes again and again are derived
// under the policy that is active in the end.
func (s suite) TestWhereWhileThePolicyChanges(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	const commits, changes = 60, 12
	var list []*attestation.Attestation
	var version int64
	for i := range commits {
		a, v := ci.Sign(sha(i/2), fmt.Sprint("test:", i%2), ledger.Pass, "good")
		list, version = append(list, a), v
	}

	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range changes {
			fx.setPolicy(whereContract(t, fmt.Sprintf(`predicate.annotations.note == "good" && %d > 0`, i)))
		}
	})
	wg.Go(func() {
		for range changes {
			if err := fx.Settle(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	for part := range slices.Chunk(list, commits/4) {
		wg.Go(func() {
			for _, a := range part {
				var err error
				for range 10 { // a busy machine may answer that the statement is to be sent again
					_, _, err = fx.Record(t.Context(), "acme", "api", a, version)
					if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.CodeStorageUnavailable {
						break
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	must.OK(t, fx.Settle(t.Context()))
	for i := range commits / 2 {
		fx.WantState(sha(i), ledger.Attested)
		if c := fx.ReadCommit(sha(i)); c.PolicyVersion != changes+1 || len(c.Requirements[0].SignersCounted) != 1 {
			t.Errorf("commit %d: policy %d, %+v", i, c.PolicyVersion, c.Requirements[0])
		}
	}
}
