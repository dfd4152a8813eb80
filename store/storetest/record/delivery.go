package record

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// newDelivery returns a mainline m0, m1, m2 of which m0 runs in prod, and all are tested.
func (s suite) newDelivery(t *testing.T) (g *graph, rita, ops *storetest.Signer) {
	t.Helper()
	g = &graph{s.newFixture(t), make(map[string]string), make(map[string][]byte)}
	g.SetContract(`{"requirements":[
	{"state":"ATTESTED","predicate":"test:*"},
	{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"covers":"change"},
	{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true}],"radar":{"enabled":false}}`)
	ci := g.NewSigner("cn=ci,ou=build,o=acme")
	rita, ops = g.NewSigner("cn=rita,ou=dev,o=acme"), g.NewSigner("cn=ops,ou=platform,o=acme")
	g.commit("m0", "Max")
	g.commit("m1", "Max", "m0")
	g.commit("m2", "Max", "m1")
	g.register("m0", "m1", "m2")
	for _, name := range []string{"m0", "m1", "m2"} {
		ci.Attest(g.ids[name], "test:go", ledger.Pass)
	}
	return g, rita, ops
}

// gate returns the answer of the gate of a commit for prod.
func (g *graph) gate(name string) ledger.Gate {
	g.T.Helper()
	state := ledger.Promotable
	return must.Get(g.Gate(g.T.Context(), store.DecisionQuery{Org: "acme", Repo: "api", Commit: g.ids[name], State: &state,
		Environment: "prod"}))(g.T)
}

// A deployment counts only if all commits since what runs are covered.
func (s suite) TestADeploymentShipsAllSinceWhatRuns(t *testing.T) {
	g, rita, ops := s.newDelivery(t)
	rita.Attest(g.ids["m0"], "review:code", ledger.Pass)
	ops.Attest(g.ids["m0"], "deploy:prod", ledger.Pass)
	g.want("once it is deployed", "m0", ledger.Deployed)

	g.review(rita, "m2", "m1")
	if gate := g.gate("m2"); gate.Reached || len(gate.Reasons) != 1 || !strings.Contains(gate.Reasons[0], ledger.Short(g.ids["m1"])) {
		t.Errorf("with m1 below, which nobody has reviewed, the gate says %+v", gate)
	}
	ops.Attest(g.ids["m2"], "deploy:prod", ledger.Pass)
	g.want("after a deployment over the gap", "m2", ledger.Promotable)

	g.review(rita, "m2", "m0")
	if gate := g.gate("m2"); !gate.Reached {
		t.Errorf("with a review of all, the gate says %+v", gate)
	}
	g.want("since that changes no deployment", "m2", ledger.Promotable)
	ops.Attest(g.ids["m2"], "deploy:prod", ledger.Pass)
	g.want("once it is deployed again", "m2", ledger.Deployed)
}
