package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestSearchPage(t *testing.T) {
	e := newEnv(t)
	e.push(commitID(1), ledger.Registration{Branch: "feature/<login>", Message: "Add the <b>login</b> form",
		Author: ledger.Author{Name: "Ann"}})
	a := e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:login", ledger.Pass)
	hook := e.webhook("https://ci.example.com")
	w := e.signIn(e.reader)

	found := w.get("/orgs/acme/search?q=LOGIN").want(200)
	found.has("Search: LOGIN", "Commits 1", "Add the <b>login</b> form", "Branches 1", "feature/<login>", "Predicates 1",
		"Attested")
	for _, link := range []string{
		"/orgs/acme/repos/api/commits/" + commitID(1), "/orgs/acme/repos/api?branch=feature%2F%3Clogin%3E",
		"/orgs/acme/repos/api/attestations?predicate=test%3Alogin",
	} {
		if len(found.elements("a", "href", link)) != 1 {
			t.Errorf("no link to %s", link)
		}
	}
	if box := found.elements("input", "id", "find"); len(box) != 1 || attribute(box[0], "value") != "LOGIN" {
		t.Error("the search box does not have the query")
	}

	signer := w.get("/orgs/acme/search?q="+url.QueryEscape("cn=ci")).want(200).elements("a", "href",
		"/orgs/acme/repos/api/attestations?signer="+url.QueryEscape("cn=ci,ou=build,o=acme"))
	if len(signer) != 1 {
		t.Fatal("no link to the attestations of the signer")
	}
	w.get(attribute(signer[0], "href")).want(200).has("test:login", "Clear")

	w.get("/orgs/acme/search?q=" + commitID(1)).redirectsTo("/orgs/acme/repos/api/commits/" + commitID(1))
	w.get("/orgs/acme/search?q=" + strings.ToLower(a.ID)).redirectsTo("/orgs/acme/repos/api/attestations/" + a.ID)
	w.get("/orgs/acme/search?q=" + a.PayloadDigest).redirectsTo("/orgs/acme/repos/api/attestations/" + a.ID)
	w.get("/orgs/acme/search?q=" + commitID(1)[:12]).want(200).has("Commits 1")
	w.get("/orgs/acme/search?q=" + hook.ID).want(200).has("Nothing found")
	e.signIn(e.admin).get("/orgs/acme/search?q=" + hook.ID).redirectsTo("/orgs/acme/repos/api/webhooks/" + hook.ID)

	w.get("/orgs/acme/search").want(200).has("What to search for")
	w.get("/orgs/acme/search?q=nothing").want(200).has("Nothing found")
	w.get("/orgs/acme/search?q=a%00b").want(422).has("control characters")
	w.get("/orgs/acme/search?q=a&cursor=x").want(400)
}

func TestInsightsPage(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	w.get("/orgs/acme/insights").want(200).has("Lead time", "no commit was deployed", "No deployments in this time.",
		"No commit reached Deployed in this time.", "No commit left a state in this time.", "No results in this time")

	e.push(commitID(1), ledger.Registration{Branch: "main", Message: "one"})
	e.clock.advance(90 * time.Minute)
	ci := e.signer("cn=ci,ou=build,o=acme")
	e.attest(ci, commitID(1), "test:go", ledger.Fail)
	e.attest(ci, commitID(1), "deploy:eu", ledger.Pass)
	p := w.get("/orgs/acme/insights?repo=api&days=7").want(200)
	p.has("0 of 1 failed", "1 h 30 min · 90 % within 1 h 30 min", "test:go", "deploy:eu", "100 %", "0 %",
		"1 deployment in")
	if len(p.elements("rect", "class", "bar-good")) != 1 || len(p.elements("rect", "class", "bar-bad")) != 0 {
		t.Error("the chart has not one deployment")
	}

	w.get("/orgs/acme/insights?days=0").want(422)
	w.get("/orgs/acme/insights?repo=none").want(404)
}
