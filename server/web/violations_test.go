package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// Violations are first under what needs attention, and have a banner on the pages of the
// org, the repo and the commit.
func TestViolationPages(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*"},` +
		`{"state":"DEPLOYED","predicate":"deploy:prod","signers":["cn=cd"]}]}`)
	cd, mallory := e.signer("cn=cd,ou=x,o=acme"), e.signer("cn=mallory,ou=x,o=acme")
	e.push(commitID(1), ledger.Registration{Branch: "one", Message: "One"})
	e.push(commitID(2), ledger.Registration{Branch: "two", Message: "Two"})
	e.attest(cd, commitID(2), "review:code", ledger.Fail)
	w := e.signIn(e.reader)
	const org, repo = "/orgs/acme", "/orgs/acme/repos/api"
	one := repo + "/commits/" + commitID(1)
	for _, path := range []string{org, repo, one} {
		w.get(path).want(200).hasNot("open violation", "Violation")
	}
	for _, path := range []string{org, repo} {
		w.get(path+"/violations").want(200).has("No open violations", "ledgerd deploy ORG/REPO prod")
	}

	e.attest(mallory, commitID(1), "deploy:prod", ledger.Pass)
	p := w.get(org).want(200).has("Violations 1", "Violation api One one deploy:prod recorded in DRAFT, by mallory",
		"Violation opened: deploy:prod by mallory on api@ "+commitID(1)[:12])
	if text := p.text(); strings.Index(text, "Violation api") > strings.Index(text, "Failed api") {
		t.Errorf("the violation is not first under what needs attention: %s", text)
	}
	w.get(repo).want(200).has("1 open violation.", "Show them")
	w.get(repo + "?view=list").want(200).has("1 open violation.")
	w.get(one).want(200).has("Violation: deploy:prod by mallory does not count",
		"review:*: 0 of 1 signatures", "deploy:prod: 0 of 1 signatures matching cn=cd")
	w.get(repo + "/commits/" + commitID(2)).want(200).hasNot("Violation")
	for _, path := range []string{org, repo} {
		w.get(path+"/violations").want(200).has("Open deploy:prod by mallory on api@ "+commitID(1)[:12], "which was Draft")
	}
	for _, path := range []string{org, repo, one, org + "/violations"} {
		live := attribute(w.get(path).elements("main")[0], "data-live")
		if !strings.Contains(live, "violation") {
			t.Errorf("%s is refreshed by %s, which has no violations", path, live)
		}
	}

	e.attest(cd, commitID(1), "review:code", ledger.Pass)
	e.attest(cd, commitID(1), "deploy:prod", ledger.Pass)
	for _, path := range []string{org, repo, one} {
		w.get(path).want(200).hasNot("open violation", "does not count")
	}
	for _, path := range []string{org, repo} {
		w.get(path + "/violations").want(200).has("No open violations")
		w.get(path+"/violations?status=all").want(200).has("Closed deploy:prod by mallory", "Closed by a deployment")
	}
	w.get(one).want(200).has("Violation closed by a deployment", "deploy:prod by mallory did not count").
		hasNot("More closed")
	w.get(repo + "/commits/" + commitID(2)).want(200).hasNot("Violation closed")
}

// The pages show a limited number of violations, and link to the others.
func TestManyViolations(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:*","signers":["cn=cd"]}]}`)
	mallory := e.signer("cn=mallory,ou=x,o=acme")
	for n := range 25 {
		e.attest(mallory, commitID(1), fmt.Sprintf("deploy:%d", n), ledger.Pass)
	}
	for n := range 80 {
		e.attest(mallory, commitID(n+2), "deploy:prod", ledger.Pass)
	}

	w := e.signIn(e.reader)
	w.get("/orgs/acme").want(200).has("Violations 105", "99 more")
	w.get("/orgs/acme/attention?kind=violation").want(200).has("All 105", "Violations 105", "Open and closed violations")
	w.get("/orgs/acme/repos/api").want(200).has("105 open violations.")
	w.get("/orgs/acme/repos/api/commits/"+commitID(1)).want(200).has("deploy:24", "deploy:5", "5 more open violations")
	p := w.get("/orgs/acme/violations").want(200)
	next := p.elements("a", "rel", "next")
	if len(next) != 1 || strings.Count(p.text(), "by mallory on") != 50 {
		t.Fatalf("the list has %d rows and %d links to the next page", strings.Count(p.text(), "by mallory on"), len(next))
	}
	if n := strings.Count(w.get(attribute(next[0], "href")).want(200).text(), "by mallory on"); n != 50 {
		t.Errorf("the second page has %d rows, want 50", n)
	}
}

// The page of environments has a row for each repo with deployments.
func TestEnvironmentsPage(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*"},` +
		`{"state":"DEPLOYED","predicate":"deploy:prod","signers":["cn=cd"]}]}`)
	cd, mallory := e.signer("cn=cd,ou=x,o=acme"), e.signer("cn=mallory,ou=x,o=acme")
	w := e.signIn(e.reader)
	const page = "/orgs/acme/environments"
	w.get("/orgs/acme").want(200).has("Environments")
	w.get(page).want(200).has("No deployments yet", "ledgerd deploy acme/REPO prod").hasNot("Others")

	for n := 1; n <= 2; n++ {
		e.push(commitID(n), ledger.Registration{Branch: "one", Message: fmt.Sprint("Commit ", n)})
		e.attest(cd, commitID(n), "review:code", ledger.Pass)
	}
	e.attest(cd, commitID(1), "deploy:prod", ledger.Pass)
	e.attest(mallory, commitID(2), "deploy:staging", ledger.Pass)
	e.attest(mallory, commitID(2), "deploy:prod", ledger.Pass)
	short := func(n int) string { return commitID(n)[:12] }
	p := w.get(page).want(200).has("Repo prod staging api prod "+short(1)+" Deployed", "1 behind",
		"1 open violation : "+short(2), "staging "+short(2)+" Promotable", "not required").hasNot("Others")
	live := attribute(p.elements("main")[0], "data-live")
	for _, name := range []string{"attestation", "state", "violation"} {
		if !strings.Contains(live, name) {
			t.Errorf("the page is refreshed by %s, which has no %s", live, name)
		}
	}

	e.attest(cd, commitID(2), "deploy:prod", ledger.Pass)
	w.get(page).want(200).has("prod "+short(2)+" Deployed").hasNot(" behind", "open violation", "standing Attested")
	e.attest(cd, commitID(2), "review:code", ledger.Fail)
	w.get(page).want(200).has("prod " + short(2) + " Deployed standing Attested")
	w.get("/orgs/acme/activity?type=standing").want(200).has("Standing api@ " + short(2) +
		" , which runs, lapsed : Promotable → to Attested")
	w.get("/orgs/acme/attention?kind=lapsed").want(200).has("Lapsed 1", "review:code failed (cd)")
	w.get("/orgs/acme/repos/api?view=list").want(200).has("Deployed would not be deployed now")
	e.attest(cd, commitID(2), "deploy:prod", ledger.Fail)
	w.get(page).want(200).has("prod "+short(1)+" Deployed", "rolled back from "+short(2))
	e.attest(cd, commitID(1), "deploy:prod", ledger.Fail)
	w.get(page).want(200).has("prod Unknown rolled back from " + short(1))

	e.send(cd, func() ([]byte, error) {
		return attestation.NewBaselineStatement(commitID(2), attestation.Baseline{Repo: "acme/api", Environment: "prod",
			Reason: "by hand"})
	})
	w.get(page).want(200).has("prod "+short(2)+" baseline", "by hand", "rolled back from "+short(1)).hasNot("Unknown")

	for n := range 110 {
		e.attest(mallory, commitID(2), fmt.Sprint("deploy:preview-", n), ledger.Pass)
	}
	w.get(page).want(200).has("Others", "preview-109", "preview-60").hasNot("preview-59")
}
