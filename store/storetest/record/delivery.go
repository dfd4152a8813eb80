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
func (s suite) newDelivery(t testing.TB) (g *graph, rita, ops *storetest.Signer) {
	t.Helper()
	g = &graph{s.newFixture(t), make(map[string]string), make(map[string][]byte)}
	g.SetContract(`{"requirements":[
	{"state":"ATTESTED","predicate":"test:*"},
	{"name":"review","state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"covers":"change"},
	{"name":"ship","state":"DEPLOYED","predicate":"deploy:*","accept":["pass","warn"],"delivery":true}],
	"radar":{"enabled":false},"exceptions":{"signers":["cn=boss"],"max_duration":"1d"}}`)
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
	gate := g.gate("m2")
	if gate.Reached || len(gate.Reasons) != 1 || !strings.Contains(gate.Reasons[0], ledger.Short(g.ids["m1"])) {
		t.Errorf("with m1 below, which nobody has reviewed, the gate says %+v", gate)
	}
	ops.Attest(g.ids["m2"], "deploy:prod", ledger.Pass)
	g.want("after a deployment over the gap", "m2", ledger.Promotable)

	g.review(rita, "m2", "m0")
	if gate = g.gate("m2"); !gate.Reached {
		t.Errorf("with a review of all, the gate says %+v", gate)
	}
	g.want("since that changes no deployment", "m2", ledger.Promotable)
	g.wantOpen(1)
	ops.Attest(g.ids["m2"], "deploy:prod", ledger.Pass)
	g.want("once it is deployed again", "m2", ledger.Deployed)
	g.wantOpen(0)
}

// wantOpen checks how many violations are open.
func (g *graph) wantOpen(n int64) {
	g.T.Helper()
	repo := must.Get(g.Repo(g.T.Context(), "acme", "api"))(g.T)
	if repo.OpenViolations != n {
		g.T.Errorf("%d violations are open, want %d", repo.OpenViolations, n)
	}
}

// No deployment counts over a gap: not by an exception for the deployment, with a warning, or to no environment.
func (s suite) TestNothingPassesAGap(t *testing.T) {
	g, rita, ops := s.newDelivery(t)
	boss := g.NewSigner("cn=boss,ou=dev,o=acme")
	rita.Attest(g.ids["m0"], "review:code", ledger.Pass)
	ops.Attest(g.ids["m0"], "deploy:prod", ledger.Pass)
	g.review(rita, "m2", "m1")

	warned := ops.Attest(g.ids["m2"], "deploy:prod", ledger.Warn)
	g.want("after a deployment with a warning", "m2", ledger.Promotable)
	const notice = "it does not count as a deployment: "
	if warned.Violation != nil || !strings.HasPrefix(warned.Notice, notice+ledger.Short(g.ids["m1"])) {
		t.Errorf("a deployment with a warning has the notice %q", warned.Notice)
	}
	ops.Attest(g.ids["m2"], "deploy:", ledger.Pass)
	g.want("after a deployment to an environment without a name", "m2", ledger.Promotable)
	ops.Attest(g.ids["m2"], "deploy:prod", ledger.Pass)
	g.wantOpen(2)
	boss.Except(g.ids["m2"], "ship")
	g.want("after an exception for the deployment", "m2", ledger.Promotable)
	g.wantOpen(2)

	boss.Except(g.ids["m1"], "review")
	ops.Attest(g.ids["m2"], "deploy:prod", ledger.Pass)
	g.want("after an exception for the review of what was not covered", "m2", ledger.Deployed)
	g.wantOpen(1)
}

// Neither an exception for another requirement that is about the deployment makes it count, nor what the commit did in
// another environment.
func (s suite) TestNoExceptionMovesTheBase(t *testing.T) {
	const start = `{"requirements":[{"state":"ATTESTED","predicate":"test:*"},
	{"name":"review","state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"covers":"change"},`
	const end = `"radar":{"enabled":false},"exceptions":{"signers":["cn=boss"],"max_duration":"1d"}}`
	for name, ask := range map[string]string{
		"any": `{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true},
			{"name":"any","state":"DEPLOYED","predicate":"deploy:*"}],`,
		"ship": `{"name":"ship","state":"DEPLOYED","predicate":"deploy:*","delivery":true}],`,
	} {
		t.Run(name, func(t *testing.T) {
			g, rita, ops := s.newDelivery(t)
			rita.Attest(g.ids["m0"], "review:code", ledger.Pass)
			ops.Attest(g.ids["m0"], "deploy:prod", ledger.Pass)
			g.review(rita, "m2", "m1")
			g.SetContract(start + strings.Replace(ask, `,"delivery":true`, "", 1) + end)
			ops.Attest(g.ids["m2"], "deploy:staging", ledger.Pass)
			g.SetContract(start + ask + end)
			ops.Attest(g.ids["m2"], "deploy:prod", ledger.Pass)
			g.wantOpen(1)

			g.NewSigner("cn=boss,ou=dev,o=acme").Except(g.ids["m2"], name)
			g.wantOpen(1)
			if gate := g.gate("m2"); gate.Reached {
				t.Errorf("after an exception for the deployment, the gate says %+v", gate)
			}
		})
	}
}

// A hotfix of what ran ships nothing else, and neither does what ran. What never ran is shipped with all below.
func (s suite) TestWhatRanIsNotShippedAgain(t *testing.T) {
	g, rita, ops := s.newDelivery(t)
	ci := g.NewSigner("cn=ci,ou=build,o=acme")
	rita.Attest(g.ids["m0"], "review:code", ledger.Pass)
	ops.Attest(g.ids["m0"], "deploy:prod", ledger.Pass)
	g.commit("m3", "Max", "m2")
	g.commit("h", "Max", "m0")
	g.register("m3", "h")
	for _, name := range []string{"m3", "h"} {
		ci.Attest(g.ids[name], "test:go", ledger.Pass)
	}
	g.review(rita, "m3", "m0")
	ops.Attest(g.ids["m3"], "deploy:prod", ledger.Pass)
	g.want("with a review of all", "m3", ledger.Deployed)

	g.review(rita, "h", "m0")
	g.review(rita, "m2", "m1")
	for name, want := range map[string]bool{"h": true, "m0": true, "m2": false} {
		if gate := g.gate(name); gate.Reached != want {
			t.Errorf("the gate of %s says %+v, want %t", name, gate, want)
		}
	}
}
