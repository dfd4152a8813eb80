package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// builtBy returns a contract that needs SLSA provenance of a builder for ATTESTED.
func builtBy(builder string) string {
	where := fmt.Sprintf(`type == "https://slsa.dev/provenance/v1" && predicate.runDetails.builder.id == %q`, builder)
	return fmt.Sprintf(`{"requirements":[{"state":"ATTESTED","predicate":"build:*","where":%q}]}`, where)
}

// Provenance counts only if it names the builder that the contract asks for: at receipt,
// and after each change of the policy, as simulated.
func TestWhere(t *testing.T) {
	const builder = "https://ci.example/runner"
	b := newBackend(t)
	b.trustCosign()
	b.setContract(builtBy("https://evil.example/runner"))
	b.attest(cosignFile(t, "v2-p256-provenance.dsse.json")).want(201)
	want := func(state ledger.State, reason string) {
		t.Helper()
		c := decode[ledger.Commit](b.get("/v1/orgs/acme/repos/api/commits/" + cosignCommit).want(200))
		if r := c.Requirements[0]; c.State != state || !strings.Contains(r.Reason, reason) {
			t.Errorf("the commit is %s because %q, want %s because %q", c.State, r.Reason, state, reason)
		}
	}
	want(ledger.Validating, "where is false")

	for _, change := range []struct {
		builder string
		state   ledger.State
		reason  string
	}{
		{builder, ledger.Promotable, "met by"}, {"x", ledger.Validating, "where is false"},
		{builder, ledger.Promotable, "met by"},
	} {
		contract := builtBy(change.builder)
		sim := decode[ledger.Simulation](b.post(policyPath+"/simulate", contract).want(200))
		if len(sim.Moves) != 1 || sim.Moves[0].To != change.state {
			t.Errorf("the simulation moves %+v, want one commit to %s", sim.Moves, change.state)
		}
		b.setContract(contract)
		want(change.state, change.reason)
	}

	b.setContract(`{"requirements":[{"state":"ATTESTED","predicate":"build:*","where":"predicate.missing.id == 'x'"}]}`)
	want(ledger.Validating, "no such key: missing")
}
