package web_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// The page of a commit names the commits from which evidence carries.
func TestCommitPageShowsWhatCarries(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","carry":["tree"]},` +
		`{"state":"PROMOTABLE","predicate":"review:*","carry":["tree"]}]}`)
	branch, object := storetest.Object(1, "Dora", 1)
	e.push(branch, ledger.Registration{Object: object})
	rec := e.attest(e.signer("cn=ci,ou=build,o=acme"), branch, "test:go", ledger.Pass)
	squash, object := storetest.Object(1, "Dora", 2)
	e.push(squash, ledger.Registration{Object: object})

	p := e.signIn(e.reader).get("/orgs/acme/repos/api/commits/" + squash).want(200)
	p.has("Carried: test:go of " + branch[:12] + " (the same tree)")
	e.attest(e.signer("cn=ann,ou=people,o=acme"), branch, "review:code", ledger.Pass)
	must.OK(t, e.db.Settle(t.Context()))
	e.signIn(e.reader).get("/orgs/acme/repos/api/commits/"+squash).want(200).has(
		"Attested → to Promotable due to evidence of another commit, which carries",
		"pass review:code carried by ann", "by ann Carried from").hasNot("due to carry", "No attestations yet")
	for _, href := range []string{"/commits/" + branch, "/attestations/" + rec.ID} {
		if !strings.Contains(p.body, `"/orgs/acme/repos/api`+href+`"`) {
			t.Errorf("no link to %s", href)
		}
	}
}
