package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/idp/idptest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// A person signs in with a provider and approves a commit, which becomes PROMOTABLE in front of them. A
// sign-in that is too old is not enough. A key and approvals on the page count as one person.
func TestPersonSignsInAndApproves(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	o, provider := newOrg(t), idptest.New(t)
	o.withProvider("okta", provider)
	o.ledgerd("identity", "people-ca", "create", "--org", "acme")
	o.start()
	o.createRule(`{"issuer": "` + provider.URL + `", "claim": "groups", "value": "dev", "role": "contributor",
		"dn": "cn={login},ou=people-dev,o=acme"}`)
	o.requireReviews("threshold: 1")
	first, second := strings.Repeat("a", 40), strings.Repeat("b", 40)
	api := o.attested(first, "First")

	// The provider has authenticated ann 20 minutes ago.
	ann := map[string]any{"sub": "00u1", "groups": []string{"dev"}, "login": "ann"}
	provider.SignInAs(idptest.Person{Claims: ann, AuthTime: time.Now().Add(-20 * time.Minute)})
	v := newBrowser(t).visitor(t, o.url)
	v.open("/login?next=/orgs/acme")
	v.press("Sign in with Okta")
	v.sees("Waiting for your review", "review:*: 0 of 1", "First")
	v.press("api First")
	v.sees("Blocked by:", "Request changes")
	v.click("button", "Approve")
	v.sees("you must have signed in during the last 15 minutes", "Sign in again")

	// The provider authenticates her again, because the page requests it.
	v.press("Sign in again")
	v.press("Sign in with Okta")
	v.sees("Blocked by:", "Request changes")
	v.click("button", "Approve")
	v.sees("This is what you sign", "Commit "+first, "Verdict Approve")
	v.click("button", "Confirm")
	v.sees("Recorded: review:code pass", "Moved to Promotable", "All requirements are met.")
	if got := stateOf(t, api, first); got.State != ledger.Promotable {
		t.Errorf("the commit is %s", got.State)
	}
	v.open("/orgs/acme")
	v.sees("Recent activity")
	if read := v.read(); strings.Contains(read, "Waiting for your review") {
		t.Errorf("the commit still waits for ann: %s", read)
	}

	// With a key of her own that is registered under her DN, ann is still one person.
	o.requireReviews("threshold: 2")
	o.attested(second, "Second")
	key := filepath.Join(o.folder, "ann")
	o.ledgerd("keygen", "--dn", annDN, "--out", key)
	o.ledgerd("identity", "add", "--org", "acme", "--cert", key+".crt", "--may", "review:*")
	v.open("/orgs/acme/repos/api/commits/" + second)
	v.sees("Request changes")
	v.click("button", "Approve")
	v.sees("This is what you sign")
	v.click("button", "Confirm")
	v.sees("Recorded: review:code pass")
	o.reviews(second, key)
	if got := stateOf(t, api, second); got.State != ledger.Attested || !hasReviews(got, 1) {
		t.Errorf("with a key and an approval on the page, the commit is %s: %+v", got.State, got.Requirements)
	}

	other := filepath.Join(o.folder, "bob")
	o.ledgerd("keygen", "--dn", "cn=bob,ou=people-dev,o=acme", "--out", other)
	o.ledgerd("identity", "add", "--org", "acme", "--cert", other+".crt", "--may", "review:*")
	o.reviews(second, other)
	if got := stateOf(t, api, second); got.State != ledger.Promotable || !hasReviews(got, 2) {
		t.Errorf("with another person, the commit is %s: %+v", got.State, got.Requirements)
	}
	v.checkConsole(t)
}

// requireReviews sets a policy that needs reviews, with a condition.
func (o *org) requireReviews(condition string) {
	o.t.Helper()
	file := filepath.Join(o.folder, "policy.yaml")
	must.OK(o.t, os.WriteFile(file, []byte("requirements:\n- {state: ATTESTED, predicate: test:*}\n"+
		"- {state: PROMOTABLE, predicate: 'review:*', "+condition+"}\n"), 0o600))
	o.ledgerd("policy", "apply", "acme/api", "-f", file)
}

// attested registers a commit that reaches ATTESTED, on a branch of its own. It returns a client.
func (o *org) attested(sha, name string) *client.Client {
	o.t.Helper()
	api, err := client.New(o.url, client.Options{Token: o.token})
	must.OK(o.t, err)
	_, _, err = api.Register(o.t.Context(), "acme", "api", sha, ledger.Registration{Branch: name, Message: name})
	must.OK(o.t, err)
	o.ledgerd("attest", "acme/api", "--commit", sha, "--predicate", "test:go", "--status", "pass", "--key", o.keyFile)
	return api
}

// reviews approves a commit in a terminal.
func (o *org) reviews(sha, key string) {
	o.t.Helper()
	o.ledgerd("review", "approve", "acme/api", "--commit", sha, "--key", key+".key")
}

func stateOf(t *testing.T, api *client.Client, sha string) ledger.Commit {
	t.Helper()
	commit := must.Get(api.Commit(t.Context(), "acme", "api", sha))(t)
	return commit
}

// hasReviews reports whether a number of people count for the requirement of reviews.
func hasReviews(c ledger.Commit, want int) bool {
	for _, r := range c.Requirements {
		if r.Predicate == "review:*" {
			return r.Have == want
		}
	}
	return false
}
