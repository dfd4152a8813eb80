package states

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// deployable returns a fixture in which only cd may deploy, and the signers cd and mallory.
func (s suite) deployable(t *testing.T) (fx *fixture, cd, mallory *storetest.Signer) {
	t.Helper()
	fx = s.newFixture(t)
	contract, err := policy.Parse([]byte(
		`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:*","signers":["cn=cd"]}]}`))
	must.OK(t, err)
	_, err = fx.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))
	return fx, fx.NewSigner("cn=cd,ou=x,o=acme"), fx.NewSigner("cn=mallory,ou=x,o=acme")
}

// wantViolations checks how many violations there are of each status, in lists, counters
// and events.
func (fx *fixture) wantViolations(open, closed int) {
	fx.T.Helper()
	ctx := fx.T.Context()
	q := store.Query{Limit: 500}
	for status, want := range map[ledger.ViolationStatus]int{
		ledger.ViolationOpen: open, ledger.ViolationClosed: closed, "": open + closed,
	} {
		list, err := fx.Violations(ctx, "acme", store.ViolationFilter{Query: q, Repo: "api", Status: status})
		must.OK(fx.T, err)
		if len(list.Data) != want {
			fx.T.Errorf("%d violations with status %q, want %d", len(list.Data), status, want)
		}
	}

	repo, err := fx.Repo(ctx, "acme", "api")
	must.OK(fx.T, err)
	counts, err := fx.ViolationCounts(ctx)
	must.OK(fx.T, err)
	all := store.OrgViolations{Org: "acme", Opened: int64(open + closed), Open: int64(open)}
	if repo.OpenViolations != int64(open) || !slices.Equal(counts, []store.OrgViolations{all}) {
		fx.T.Errorf("counted %d in the repo and %+v, want %d open of %d", repo.OpenViolations, counts, open, open+closed)
	}

	seen := make(map[string]int)
	for _, e := range storetest.EventsOf[ledger.ViolationEvent](fx.Fixture) {
		seen[fmt.Sprint(e.Status, e.Attestation)]++
		seen[string(e.Status)]++
		if n := seen[fmt.Sprint(e.Status, e.Attestation)]; n > 1 {
			fx.T.Errorf("%s has %d events that it was %s", e.Attestation, n, e.Status)
		}
	}
	if seen["opened"] != open+closed || seen["closed"] != closed {
		fx.T.Errorf("%d events of opened and %d of closed violations, want %d and %d", seen["opened"], seen["closed"],
			open+closed, closed)
	}
}

// One deployment closes many violations: some in its own write, the others later, even
// after a restart. It does not close those that were opened after it.
func (s suite) TestManyViolationsAreClosed(t *testing.T) {
	const many, atOnce = 130, 50
	fx, cd, mallory := s.deployable(t)
	for n := range many {
		mallory.Attest(sha(n), "deploy:prod", ledger.Pass)
	}
	fx.wantViolations(many, 0)
	cd.Attest(sha(many), "test:go", ledger.Pass)
	closing := cd.Attest(sha(many), "deploy:prod", ledger.Pass)
	fx.wantViolations(many-atOnce, atOnce)

	// Another deployment closes nothing again, and closed violations do not hide new ones.
	cd.Attest(sha(many), "deploy:prod", ledger.Pass)
	fx.wantViolations(many-atOnce, atOnce)
	mallory.Attest(sha(many-1), "deploy:prod", ledger.Pass)
	mallory.Attest(sha(0), "deploy:prod", ledger.Pass)
	mallory.Attest(sha(0), "deploy:prod", ledger.Pass)
	fx.wantViolations(many-atOnce+2, atOnce)

	must.OK(t, fx.Close())
	fx.Open(store.Options{})
	must.OK(t, fx.Settle(t.Context()))
	fx.wantViolations(2, many)
	must.OK(t, fx.Settle(t.Context()))
	fx.wantViolations(2, many)
	list, err := fx.Violations(t.Context(), "acme",
		store.ViolationFilter{Query: store.Query{Limit: 500}, Status: ledger.ViolationClosed})
	must.OK(t, err)
	for _, v := range list.Data {
		if *v.ClosedBy != (ledger.Closing{Type: ledger.ClosedByDeployment, ID: closing.ID}) ||
			v.ClosedAt != closing.RecordedAt {
			t.Fatalf("the violation of %s was closed by %v at %s, want %s", v.Commit, *v.ClosedBy, v.ClosedAt, closing.ID)
		}
	}
}

// Processes on the same database see each other's violations.
func (s suite) TestViolationsOfTwoProcesses(t *testing.T) {
	fx, cd, mallory := s.deployable(t)
	one, other := fx.Store, *fx
	other.Open(store.Options{})
	two := other.Store
	in := func(process *store.Store) *fixture { fx.Store = process; return fx }

	in(one)
	mallory.Attest(sha(1), "deploy:prod", ledger.Pass)
	in(two)
	if r := mallory.Attest(sha(1), "deploy:prod", ledger.Pass); r.Violation == nil {
		t.Error("the second deployment is no violation")
	}
	fx.wantViolations(1, 0)
	cd.Attest(sha(2), "test:go", ledger.Pass)
	cd.Attest(sha(2), "deploy:prod", ledger.Pass)
	in(one).wantViolations(0, 1)
	mallory.Attest(sha(1), "deploy:prod", ledger.Pass)
	in(two).wantViolations(1, 1)
	cd.Attest(sha(2), "deploy:prod", ledger.Fail)
	in(one).wantViolations(0, 2)
}
