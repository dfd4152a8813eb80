package web_test

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// The pages show an exception where its requirement is, and mark it a day before its end.
func TestExceptionIsShown(t *testing.T) {
	e := newEnv(t)
	_, etag, err := e.host.Policy(t.Context(), "acme", "api")
	must.OK(t, err)
	_, err = e.host.SetPolicy(t.Context(), "acme", "api", []byte(`{"requirements":[`+
		`{"name":"tests","state":"ATTESTED","predicate":"test:*"},{"state":"PROMOTABLE","predicate":"review:*"}],`+
		`"exceptions":{"signers":["ou=security"]}}`), etag)
	must.OK(t, err)
	ci, sue := e.signer("cn=ci,ou=build,o=acme"), e.signer("cn=sue,ou=security,o=acme")
	e.push(commitID(1), ledger.Registration{Branch: "main", Message: "Change"})
	e.attest(ci, commitID(1), "test:go", ledger.Fail)
	e.grant(sue, commitID(1), "tests", "<b>INC-42</b>", 48*time.Hour)

	w := e.signIn(e.reader)
	const commit, repo, org = "/orgs/acme/repos/api/commits/", "/orgs/acme/repos/api", "/orgs/acme"
	w.get(commit+commitID(1)).want(200).has("Exception by sue until", ": <b>INC-42</b>", "due to an exception").
		hasNot("ends soon")
	for _, path := range []string{repo, repo + "?view=list", org} {
		w.get(path).want(200).hasNot("INC-42")
	}

	e.clock.advance(24 * time.Hour)
	w = e.signIn(e.reader)
	w.get(commit + commitID(1)).want(200).has("(ends soon)")
	w.get(repo).want(200).has("Exceptions that end soon", "tests of "+commitID(1)[:12],
		"by sue : <b>INC-42</b> ends 2 Dec 2030")
	w.get(org).want(200).has("Expiring api", "exception for tests ends: <b>INC-42</b>, by sue")
	e.clock.advance(23*time.Hour + 30*time.Minute)
	w = e.signIn(e.reader)
	w.get(repo + "?view=list").want(200).has("by sue : <b>INC-42</b>")

	e.clock.advance(30 * time.Minute)
	w = e.signIn(e.reader)
	w.get(commit+commitID(1)).want(200).hasNot("Exception by sue", "ends in")
	for _, path := range []string{repo, org} {
		w.get(path).want(200).hasNot("INC-42")
	}
}

// grant records an exception that lasts for some time.
func (e *env) grant(s *signer, commit, requirement, reason string, lasts time.Duration) {
	e.t.Helper()
	payload, err := attestation.NewExceptionStatement(commit, attestation.Exception{Repo: "acme/api",
		Requirement: requirement, Reason: reason, Until: e.clock.time().Add(lasts)})
	must.OK(e.t, err)
	envelope, err := attestation.SignDSSE(s.key, payload)
	must.OK(e.t, err)
	_, _, err = e.host.Record(e.t.Context(), "acme", "api", envelope)
	must.OK(e.t, err)
}
