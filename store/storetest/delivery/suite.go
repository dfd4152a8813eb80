// Package delivery compares what deployments ship, in random histories, with a naive model.
package delivery

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A suite has the tests as its exported methods.
type suite storetest.Suite

// Tests returns a value whose exported methods are the tests.
func Tests(s storetest.Suite) any { return suite(s) }

// TestDeliveriesAgreeWithAModel draws random histories, each in a repo of its own. It compares what deployments ship,
// and which of that is not covered, with what a naive model says.
//
// The seed is the number of the first history. So '.ci/run full' runs a part of many:
//
//	LEDGERD_TEST_SEED=3000 LEDGERD_TEST_LEVEL=full go test ./store -run TestOnSQLite/DeliveriesAgreeWithAModel
func (s suite) TestDeliveriesAgreeWithAModel(t *testing.T) {
	fx := storetest.Suite(s).NewFixture(t)
	signers := make(map[string]*storetest.Signer)
	for _, name := range slices.Concat(people(), []string{"ops", "deb", boss, mainline}) {
		signers[name] = fx.NewSigner("cn=" + name + ",ou=dev,o=acme")
	}

	a := &agreement{}
	first := testenv.Seed(t)
	for n := first; n < first+uint64(testenv.Pick(50, 250, 500)); n++ {
		random := rand.New(rand.NewPCG(n, 0))
		told := newTeller(fx, signers, fmt.Sprint("r", n), drawRules(random))
		draw(told, random)
		a.compareAll(told, random)
		if t.Failed() {
			t.Fatalf("history %d:\n%s", n, strings.Join(told.log, "\n"))
		}
	}
	t.Logf("%+v", *a)
}

// An agreement counts what was compared.
type agreement struct {
	// Deliveries have Commits in all, of which some are Uncovered. Complete have no gap.
	Deliveries, Commits, Uncovered, Complete int
	Counted, Violations                      int // deployments
}

// compareAll compares what deployments of the newest and of some other commits ship to each environment.
func (a *agreement) compareAll(t *teller, random *rand.Rand) {
	t.fx.T.Helper()
	must.OK(t.fx.T, t.fx.Settle(t.fx.T.Context()))
	compared := 0
	for n := len(t.commits); n > 0; n-- {
		head := fmt.Sprint("c", n)
		if !t.commits[head].registered || compared >= 2 && random.IntN(4) > 0 {
			continue
		}
		compared++
		for _, env := range environments() {
			a.compare(t, head, env)
		}
	}

	for _, s := range t.said {
		switch {
		case s.verb != deploys && s.verb != redeploys:
		case s.counts:
			a.Counted++
		default:
			a.Violations++
		}
	}
}

// A shown is what is compared of a delivery.
type shown struct {
	Base               string
	Commits, Uncovered int
	Standing           ledger.State
	Gaps               string
}

// compare compares what a deployment of a commit to an environment ships with the model.
func (a *agreement) compare(t *teller, head, env string) {
	t.fx.T.Helper()
	t.fx.Turn()
	s := t.ships(head, env)
	gaps := s.gaps()
	base, _ := t.running(env)
	want := shown{base, len(s.commits), len(gaps), s.standing(), inOrder(gaps)}

	c := must.Get(t.fx.CommitFor(t.fx.T.Context(), "acme", t.repo, t.ids[head], "", env))(t.fx.T)
	got := shown{"", c.Delivery.Commits, c.Delivery.Uncovered, max(c.Delivery.Standing, ledger.Validating), ""}
	if c.Delivery.Base != nil {
		got.Base = t.names[c.Delivery.Base.Commit]
	}
	listed := make(set)
	for _, gap := range c.Delivery.Gaps {
		listed[t.names[gap.Commit]] = true
	}
	got.Gaps = inOrder(listed)
	if len(gaps) > ledger.MaxGaps && len(listed) == ledger.MaxGaps && len(without(listed, gaps)) == 0 {
		got.Gaps = want.Gaps // the first of them
	}

	if got != want {
		t.fx.T.Errorf("%s for %s: %+v, want %+v; %+v", head, env, got, want, c.Delivery.Gaps)
	}
	a.Deliveries++
	a.Commits += len(s.commits)
	a.Uncovered += len(gaps)
	if len(gaps) == 0 {
		a.Complete++
	}
}

// inOrder returns the names of a set as text.
func inOrder(s set) string { return strings.Join(slices.Sorted(maps.Keys(s)), " ") }
