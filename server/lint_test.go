package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
)

const lintPath = policyPath + "/lint"

// lint returns the findings about a contract, or about the active one if it is empty, as
// "code field".
func (b *backend) lint(contract string) string {
	b.t.Helper()
	resp := b.send(request{method: "POST", path: lintPath, token: b.reader, body: contract}).want(200)
	review := decode[lint.Review](resp)
	if review.Unchecked != "" {
		b.t.Errorf("unchecked: %s", review.Unchecked)
	}
	list := []string{}
	for _, f := range review.Findings {
		list = append(list, string(f.Code)+" "+f.Field)
	}
	return strings.Join(list, ", ")
}

func (b *backend) wantLint(contract, want string) {
	b.t.Helper()
	if got := b.lint(contract); got != want {
		b.t.Errorf("findings: %s\nwant:     %s", got, want)
	}
}

// If all CI jobs send commit objects, nobody needs to trust a registration.
func TestLintRecommendsProvenAuthors(t *testing.T) {
	b := newBackend(t)
	b.signer("cn=ci,ou=build,o=acme")
	b.signer("cn=ada,ou=review,o=acme")
	contract := func(rule string) string {
		return `{"requirements":[{"state":"ATTESTED","predicate":"test:*","signers":["ou=build"]},` +
			`{"state":"PROMOTABLE","predicate":"review:*","signers":["ou=review"],"exclude_author":` + rule + `},` +
			`{"state":"DEPLOYED","predicate":"deploy:*","signers":["ou=build"]}]}`
	}
	b.register(commitID(1), `{}`).want(201)
	for i := range 19 {
		raw := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", strings.Repeat("x", i+1))
		b.register(raw.sha, raw.body("")).want(201)
	}
	b.wantLint(contract("true"), "")

	raw := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", "the 20th")
	b.register(raw.sha, raw.body("")).want(201)
	b.wantLint(contract("true"), "author_claimed requirements[1].exclude_author")
	b.wantLint(contract(`"proven"`), "")
	b.wantLint(contract("false"), "")
	b.register(commitID(2), `{}`).want(201)
	b.wantLint(contract("true"), "")
}

// What lint says of a contract follows the identities of the org and what was signed.
func TestLintPolicy(t *testing.T) {
	const contract = `{"requirements":[{"state":"ATTESTED","predicate":"test:*","signers":["ou=build"]},` +
		`{"state":"PROMOTABLE","predicate":"review:*","threshold":2,"signers":["ou=review"]},` +
		`{"state":"DEPLOYED","predicate":"deploy:*","signers":["ou=build"]}]}`
	b := newBackend(t)
	b.wantLint(contract, "no_identities requirements")

	ci := b.signer("cn=ci,ou=build,o=acme")
	b.wantLint(contract, "nobody_matches requirements[1].signers")
	ada := b.signer("cn=ada,ou=review,o=acme")
	b.wantLint(contract, "threshold_too_high requirements[1].threshold")
	b.signer("cn=Ada,ou=review,o=acme") // the same person
	b.wantLint(contract, "threshold_too_high requirements[1].threshold")
	bob := b.signer("cn=bob,ou=review,o=acme")
	b.wantLint(contract, "")

	b.attest(ci.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	b.attest(ada.statement(t, commitID(1), "review:code", ledger.Pass, 1)).want(201)
	b.wantLint(contract, "never_signed requirements[2].predicate")
	b.attest(ci.statement(t, commitID(1), "deploy:prod", ledger.Pass, 1)).want(201)
	b.wantLint(contract, "")
	b.attest(ci.statement(t, commitID(1), "deploy:staging", ledger.Pass, 1)).want(201)
	b.wantLint(contract, "mixed_environments requirements[2].predicate")

	b.delete("/v1/orgs/acme/identities/" + bob.id).want(204)
	b.wantLint(contract, "threshold_too_high requirements[1].threshold, mixed_environments requirements[2].predicate")
}

// Without a body, lint reviews the active policy. A draft is parsed as for a simulation.
func TestLintOfActivePolicy(t *testing.T) {
	b := newBackend(t)
	b.signer("cn=ci,ou=build,o=acme")
	b.signer("cn=ada,ou=review,o=acme")
	tag := b.get(policyPath).header.Get("ETag")
	b.putPolicy(tag, `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","branches":["main"]}],`+
		`"targets":"claimed"}`).want(200)
	before := string(b.get("/v1/orgs/acme/events").body)
	const want = "no_deployment requirements, any_signer requirements[0].signers, claimed_targets targets"
	b.wantLint("", want)
	b.wantLint(string(b.get(policyPath).want(200).body), want) // a policy as it is read
	if after := string(b.get("/v1/orgs/acme/events").body); after != before {
		t.Errorf("events after a review: %s", after)
	}

	post := func(path, body string) response {
		return b.send(request{method: "POST", path: path, token: b.reader, body: body})
	}
	post(lintPath, `{"requirements":[{"state":"X","predicate":"a"}]}`).wantFields(422, ledger.CodeInvalidContract,
		"requirements[0].state")
	post(lintPath, `{"requirements":[],"more":1}`).wantFields(400, ledger.CodeUnknownField, "more")
	post("/v1/orgs/acme/policies/none/lint", "").wantProblem(404, ledger.CodeNotFound)
	post("/v1/orgs/acme/policies/none/lint", `{"requirements":[]}`).wantProblem(404, ledger.CodeNotFound)
	b.send(request{method: "POST", path: lintPath, token: b.reader, body: `{"requirements":[]}`,
		header: map[string]string{"Content-Type": "text/plain"}}).
		wantProblem(http.StatusUnsupportedMediaType, ledger.CodeUnsupportedMediaType)
}

// At most one review runs at a time, so that an org cannot take all CPUs. The orgs take
// turns.
func TestReviewsTakeTurns(t *testing.T) {
	b := newBackend(t)
	busy := b.server.budgets.reviews.Lease("busy")
	must.OK(t, busy.Grow(t.Context(), 1))
	reviewed := make(chan response)
	go func() { reviewed <- b.send(request{method: "POST", path: lintPath, token: b.reader}) }()
	select {
	case resp := <-reviewed:
		t.Errorf("a second review ran: status %d", resp.status)
		busy.Release()
	case <-time.After(100 * time.Millisecond):
		b.get(policyPath).want(200) // other reads go on
		busy.Release()
		(<-reviewed).want(200)
	}
}
