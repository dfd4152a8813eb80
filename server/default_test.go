package server

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// Under the contract of a new repo, one key takes a commit to ATTESTED and no further,
// whatever it signs, and the record says why. Nobody may review what they wrote, or deploy
// what they alone reviewed.
func TestDefaultContractNeedsSeveralPeople(t *testing.T) {
	b := newBackend(t)
	ci, ada, rita := b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=Ada,ou=dev,o=acme"),
		b.signer("cn=rita,ou=review,o=acme")
	b.put(commitPath(commitID(1)), `{"branch":"feature/x","author":{"name":"Ada"}}`).want(201)

	for n, step := range []struct {
		by        *signer
		predicate string
		state     ledger.State
		missing   string // in the reason of the requirement of the next state
	}{
		{ci, "test:go", ledger.Attested, "review:*: 0 of 1 signatures"},
		{ci, "review:code", ledger.Attested, "1 more person is needed, who is not needed for ATTESTED"},
		{ci, "deploy:prod", ledger.Attested, "1 more person is needed, who is not needed for ATTESTED"},
		{ci, "test:js", ledger.Attested, "1 more person is needed, who is not needed for ATTESTED"},
		{ada, "review:code", ledger.Attested, "author: review:code passed (cn=Ada,ou=dev,o=acme)"},
		{rita, "review:code", ledger.Promotable, "deploy:prod: 0 of 1 signatures"},
		{rita, "deploy:prod", ledger.Promotable, "1 more person is needed, who is not needed for PROMOTABLE"},
		{ci, "deploy:staging", ledger.Promotable, "1 more person is needed, who is not needed for PROMOTABLE"},
		{ci, "deploy:prod", ledger.Deployed, ""},
	} {
		b.attest(step.by.statement(t, commitID(1), step.predicate, ledger.Pass, n)).want(201)
		c := decode[ledger.Commit](b.get(commitPath(commitID(1))).want(200))
		if c.State != step.state {
			t.Fatalf("state after %s by %s: %s, want %s", step.predicate, step.by.dn, c.State, step.state)
		}
		for _, r := range c.Requirements {
			if r.State == c.State+1 && (r.Met || !strings.Contains(r.Reason, step.missing)) {
				t.Errorf("after %s by %s: %q, want %q", step.predicate, step.by.dn, r.Reason, step.missing)
			}
		}
	}
}
