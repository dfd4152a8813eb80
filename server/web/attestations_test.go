package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// run records a result with an annotation run_url.
func (e *env) run(s *signer, commit, predicate string, status ledger.Status, runURL string) ledger.AttestationRecord {
	e.t.Helper()
	return e.send(s, func() ([]byte, error) {
		return attestation.NewStatement("git+https://git.example/acme/api", commit, attestation.ResultPredicate{
			Predicate: predicate, Result: ledger.Result{Status: status},
			Annotations: map[string]string{attestation.RunURL: runURL},
		})
	})
}

// The checks of a commit are one row each, failed first, with the key that signed.
func TestChecksOfCommit(t *testing.T) {
	e := newEnv(t)
	ci, mac := e.signer("cn=ci,ou=build,o=acme"), e.signer("cn=mac,ou=build,o=acme")
	e.attest(ci, commitID(1), "lint:go", ledger.Pass)
	e.attest(ci, commitID(1), "test:go", ledger.Fail)
	last := e.attest(ci, commitID(1), "test:go", ledger.Pass)
	e.attest(mac, commitID(1), "test:go", ledger.Fail)

	p := e.signIn(e.reader).get(commitPath(commitID(1))).want(200)
	var rows []string
	for _, n := range p.elements("ul", "class", "rows results") {
		for row := range n.ChildNodes() {
			if row.Data == "li" {
				rows = append(rows, textOf(row))
			}
		}
	}
	if len(rows) != 2 || !strings.HasPrefix(rows[0], "fail test:go 1 fail, 1 pass by mac , ci") ||
		!strings.Contains(rows[0], "1 earlier attestation") || !strings.HasPrefix(rows[1], "pass lint:go by ci") {
		t.Errorf("rows %q", rows)
	}
	record, err := e.host.Attestation(t.Context(), "acme", "api", last.ID)
	must.OK(t, err)
	p.has("signature verified with key " + record.Verification.Key[:16])
	if len(p.elements("a", "href", apiPath+"/attestations/"+last.ID+"#verify")) != 1 {
		t.Error("no link to how to verify")
	}
	e.signIn(e.reader).get(apiPath+"/attestations/"+last.ID).want(200).has("verified with key "+
		record.Verification.Key[:16], "A key that acme trusts", "Verify it yourself")
}

// A run is a link only if its address is http or https.
func TestRunLinks(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	w := e.signIn(e.reader)
	const run = "https://ci.acme.example/runs/7?a=1&b=2"
	good := e.run(ci, commitID(1), "test:go", ledger.Fail, run)
	const list = apiPath + "/attestations"
	for _, path := range []string{commitPath(commitID(1)), list, list + "/" + good.ID} {
		links := w.get(path).want(200).elements("a", "href", run)
		if len(links) == 0 {
			t.Errorf("%s has no link to the run", path)
		}
		for _, n := range links {
			if rel := attribute(n, "rel"); rel != "noopener noreferrer" {
				t.Errorf("%s: rel %q", path, rel)
			}
		}
	}

	for n, hostile := range []string{"javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "//evil.example",
		"https://u:p@evil.example", "vbscript:x", "\tjavascript:alert(1)", "http:evil"} {
		bad := e.run(ci, commitID(10+n), "test:go", ledger.Pass, hostile)
		for _, path := range []string{commitPath(commitID(10 + n)), apiPath + "/attestations/" + bad.ID} {
			p := w.get(path).want(200).hasNot("Logs")
			for _, n := range p.elements("a") {
				href := attribute(n, "href")
				if u, err := url.Parse(href); err != nil || u.Scheme != "" || u.Host != "" {
					t.Errorf("%s links to %q", path, href)
				}
			}
		}
	}
}

// A state that a failure keeps the commit from is marked. A move to a lower state looks
// different from one to a higher.
func TestFailingStep(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"},{"state":"PROMOTABLE","predicate":"review:*"}]}`)
	ci := e.signer("cn=ci,ou=build,o=acme")
	w := e.signIn(e.reader)
	failing := func(want ...string) page {
		t.Helper()
		p := w.get(commitPath(commitID(1))).want(200)
		var got []string
		for _, class := range []string{"s-attested failing", "s-promotable failing", "s-attested reached failing"} {
			got = append(got, p.texts("li", "class", class)...)
		}
		wantEqual(t, "failing steps", got, want)
		return p
	}

	e.attest(ci, commitID(1), "test:go", ledger.Pass)
	if p := failing(); len(p.elements("div", "class", "grow move down")) != 0 {
		t.Error("a promotion is drawn like a demotion")
	}
	e.attest(ci, commitID(1), "review:code", ledger.Fail)
	failing("Promotable · failing")
	e.clock.advance(time.Minute)
	e.attest(ci, commitID(1), "test:go", ledger.Fail)
	p := failing("Attested · failing", "Promotable · failing").has("Moved back Attested → to Validating")
	if len(p.elements("div", "class", "grow move down")) != 1 {
		t.Error("a demotion is drawn like a promotion")
	}
	svg := p.elements("svg", "role", "img")
	if len(svg) != 1 || attribute(svg[0], "aria-label") !=
		"States over time: Attested for 1 min 0 s, back to Validating for 0 ms." {
		t.Errorf("axis: %d pictures, %q", len(svg), attribute(svg[0], "aria-label"))
	}
}

// The list of attestations has filters, and pages.
func TestAttestationsPage(t *testing.T) {
	e := newEnv(t)
	ci, ann := e.signer("cn=ci,ou=build,o=acme"), e.signer("cn=ann,ou=people,o=acme")
	list := apiPath + "/attestations"
	w := e.signIn(e.reader)
	w.get(list).want(200).has("No attestations yet")
	w.get(list + "?status=fail").want(200).has("No matches")

	e.attest(ann, commitID(1), "review:code", ledger.Pass)
	e.clock.advance(48 * time.Hour)
	w = e.signIn(e.reader)
	e.attest(ci, commitID(2), "test:go", ledger.Fail)
	for n := range 105 {
		e.attest(ci, commitID(3), fmt.Sprintf("test:shard-%03d", n), ledger.Pass)
	}
	rows := func(query string) int {
		t.Helper()
		p := w.get(list + query).want(200)
		return strings.Count(p.body, `class="of"`)
	}
	for query, want := range map[string]int{
		"": 50, "?predicate=review:*": 1, "?predicate=test:go": 1, "?signer=ann": 1,
		"?signer=cn%3Dann,ou%3Dpeople,o%3Dacme": 1,
		"?status=fail":                          1, "?since=2030-12-01&signer=ann": 0, "?since=2030-11-30&signer=ann": 1,
		"?commit=" + commitID(2)[:30]: 0, "?commit=" + commitID(2): 1, "?commit=" + commitID(2) + "&status=pass": 0,
	} {
		if query == "?commit="+commitID(2)[:30] {
			w.get(list+query).want(409).hasError("commit", "matches several commits")
			continue
		}
		if got := rows(query); got != want {
			t.Errorf("%s: %d rows, want %d", query, got, want)
		}
	}
	next := w.get(list).want(200).elements("a", "rel", "next")
	if len(next) != 1 || strings.Count(w.get(attribute(next[0], "href")).want(200).body, `class="of"`) != 50 {
		t.Errorf("%d links to the next page, which has 50 rows", len(next))
	}

	w.get(list+"?since=soon").want(422).hasError("since", "soon")
	w.get(list+"?predicate=a*b").want(400).hasError("predicate", "a*b")
	w.get(list+"?signer=cn%3D").want(400).hasError("signer", "cn=")
	w.get(list+"?commit=ffffffffff").want(404).hasError("commit", "not found")
	w.get(list+"?commit=xyz").want(400).hasError("commit", "xyz")
	w.get("/orgs/acme/repos/nope/attestations").want(404)
	w.get(list + "?predicate=" + url.QueryEscape(nasty)).want(200).noMarkup()
	w.get(list + "?signer=" + url.QueryEscape(nasty)).want(400).noMarkup()
}

// The page of a commit leads to the forge of its repo, if that is known.
func TestForgeLinksOfCommit(t *testing.T) {
	e := newEnv(t)
	e.push(commitID(1), ledger.Registration{Branch: "fix/a#b", Message: "One"})
	w := e.signIn(e.reader)
	w.get(commitPath(commitID(1))).want(200).hasNot("Source", "Pull request")

	_, err := e.host.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{WebURL: new("https://github.com/acme/api")})
	must.OK(t, err)
	p := w.get(commitPath(commitID(1))).want(200).has("Source", "Pull request")
	for _, href := range []string{"/commit/" + commitID(1), "/tree/fix/a%23b", "/pulls?q=is%3Apr+head%3Afix%2Fa%23b"} {
		if links := p.elements("a", "href", "https://github.com/acme/api"+href); len(links) != 1 ||
			attribute(links[0], "rel") != "noopener noreferrer" {
			t.Errorf("%d links to %s", len(links), href)
		}
	}
}

// A commit with many checks and shards shows the first ones, and leads to the others.
func TestManyChecks(t *testing.T) {
	e := newEnv(t)
	for n := range 12 {
		e.attest(e.signer(fmt.Sprintf("cn=ci-%02d,ou=build,o=acme", n)), commitID(1), "test:go", ledger.Pass)
	}
	ci := e.signer("cn=ci,ou=build,o=acme")
	for n := range 41 {
		e.attest(ci, commitID(1), fmt.Sprintf("lint:%02d", n), ledger.Pass)
	}
	p := e.signIn(e.reader).get(commitPath(commitID(1))).want(200).has("2 more checks")
	if n := strings.Count(p.body, `<details id="check-`); n != 40 {
		t.Errorf("%d checks are shown, want 40", n)
	}
	e.attest(e.signer("cn=last,ou=build,o=acme"), commitID(1), "test:go", ledger.Fail)
	p = e.signIn(e.reader).get(commitPath(commitID(1))).want(200).has("test:go 1 fail, 12 pass by last", "and others",
		"3 more")
	if n := len(p.elements("a", "href", apiPath+"/attestations?commit="+commitID(1))); n != 2 {
		t.Errorf("%d links to all attestations, want 2", n)
	}
}

// The page of an attestation whose envelope was pruned shows the record, and says so.
func TestPrunedAttestation(t *testing.T) {
	e := newEnv(t)
	a := e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go", ledger.Pass)
	_, err := e.host.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{
		Retention: &ledger.RetentionChange{Envelopes: new(ledger.MinRetention), Events: new(ledger.MinRetention)}})
	must.OK(t, err)
	e.clock.advance(25 * time.Hour)
	must.OK(t, e.db.Settle(t.Context()))

	w := e.signIn(e.reader)
	w.get(apiPath+"/attestations/"+a.ID).want(200).has(
		"pruned by the retention of api: only its digest is kept", a.PayloadDigest,
		"Signature verified with key").hasNot("Download envelope", "Corruption check")
	w.get(apiPath + "/attestations/" + a.ID + "/envelope").want(410)
	w.get(commitPath(commitID(1))).want(200).has("test:go")
	w.get("/orgs/acme/activity").want(200).hasNot("test:go")
}
