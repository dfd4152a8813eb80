package web_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// sign signs and records a statement about a commit of acme/api.
func (e *env) sign(s *signer, payload string) ledger.AttestationRecord {
	e.t.Helper()
	envelope := must.Get(attestation.SignDSSE(s.key, []byte(payload)))(e.t)
	record, _, err := e.host.Record(e.t.Context(), "acme", "api", envelope)
	must.OK(e.t, err)
	return record
}

func TestAttestationPage(t *testing.T) {
	e := newEnv(t)
	a := e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go", ledger.Pass)
	path := apiPath + "/attestations/" + a.ID
	w := e.signIn(e.reader)
	p := w.get(path).want(200).has("test:go pass", "Signed by ci cn=ci,ou=build,o=acme", "Duration 1.2 s",
		"Recorded 30 Nov 2030 09:00 UTC",
		a.PayloadDigest, a.ID, "ledgerd attestation envelope acme/api "+a.ID)
	if links := p.elements("a", "href", commitPath(commitID(1))); len(links) != 1 {
		t.Error("no link to the commit")
	}
	// The statement is indented.
	statement := p.elements("pre")[0].FirstChild.Data
	for _, line := range []string{"{\n", "\n  \"predicateType\": ", "\n        \"gitCommit\": \"" + commitID(1) + "\"\n",
		"\n      \"status\": \"pass\",\n"} {
		if !strings.Contains(statement, line) {
			t.Errorf("%q is not in the statement:\n%s", line, statement)
		}
	}

	w.get(apiPath + "/attestations/att_01ARZ3NDEKTSV4RRFFQ69G5FAV").want(404)
	w.get(apiPath + "/attestations/att_01ARZ3NDEKTSV4RRFFQ69G5FAV/envelope").want(404)
	w.get("/orgs/acme/repos/nope/attestations/" + a.ID).want(404)
	other := e.signIn(e.token(e.otherOrg(), ledger.Admin).Secret)
	other.get(path).want(403)
	other.get(path + "/envelope").want(403).hasNot("payload")
}

func TestEnvelopeDownload(t *testing.T) {
	e := newEnv(t)
	a := e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go", ledger.Pass)
	want, err := e.host.Envelope(t.Context(), "acme", "api", a.ID)
	must.OK(t, err)
	w := e.signIn(e.reader)
	path := apiPath + "/attestations/" + a.ID
	if links := w.get(path).want(200).elements("a", "href", path+"/envelope"); len(links) != 1 {
		t.Error("no download link")
	}
	p := w.get(path + "/envelope").want(200)
	if p.body != string(want) {
		t.Errorf("got\n%s\nwant\n%s", p.body, want)
	}
	if got := p.header.Get("Content-Disposition"); got != "attachment; filename="+a.ID+".json" {
		t.Errorf("Content-Disposition: %s", got)
	}
	if got := p.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type: %s", got)
	}
}

// Statements are untrusted: they must not become markup or make pages large.
func TestHostileStatements(t *testing.T) {
	e := newEnv(t)
	s := e.signer("cn=ci,ou=build,o=acme")
	of := func(predicate string) string {
		return `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"x","digest":{"gitCommit":"` + commitID(1) +
			`"}}],` +
			`"predicateType":"https://example.com/sbom/v1","predicate":` + predicate + `}`
	}

	w := e.signIn(e.reader)
	show := func(predicate string) page {
		return w.get(apiPath + "/attestations/" + e.sign(s, of(predicate)).ID).want(200)
	}

	p := show(`{"a":"</pre><script>alert(1)</script><b>","b":"\u202egnp.exe` + "\u202e" + `"}`).has(
		"</pre><script>alert(1)</script><b>").hasNot("\u202e")
	p.noMarkup()

	p = show(`{"long":"` + strings.Repeat("y", 200_000) + `"}`).has("Only the beginning is shown.")
	if len(p.body) > 120_000 {
		t.Errorf("the page has %d bytes", len(p.body))
	}

	// Deeply nested JSON is not indented: it would be mostly spaces.
	p = show(strings.Repeat("[", 500) + strings.Repeat("]", 500)).has(strings.Repeat("[", 500))
	if len(p.body) > 10_000 {
		t.Errorf("the page has %d bytes", len(p.body))
	}
}

const sbomStatement = `{"_type":"https://in-toto.io/Statement/v1",
"predicateType":"https://spdx.dev/Document","predicate":{},
"subject":[{"digest":{"gitCommit":"` + sbomCommit + `"}},{"name":"image","digest":{"sha256":"` + sbomDigest + `"}}]}`

const (
	sbomCommit = "abcdef0123456789abcdef0123456789abcdef01"
	sbomDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// An attestation without an outcome has a badge of its own, and one about an artifact
// shows it: shortened in lists, in full on its page.
func TestRecordedAttestation(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","type":"https://spdx.dev/*","accept":["recorded"]}]}`)
	a := e.sign(e.signer("cn=ci,ou=build,o=acme"), sbomStatement)
	w := e.signIn(e.reader)

	p := w.get(apiPath+"/attestations/"+a.ID).want(200).has("sbom:spdx recorded", "Slot sha256:"+sbomDigest)
	if badges := p.texts("span", "class", "status r-recorded"); len(badges) != 1 || badges[0] != "recorded" {
		t.Errorf("badges: %q", badges)
	}

	p = w.get(commitPath(sbomCommit)).want(200)
	wantEqual(t, "met", p.texts("li", "class", "check met"), []string{"https://spdx.dev/* Met, 1 of 1 Signed by ci"})
	const moment = "recorded sbom:spdx for sha256:9f86d081884c by ci 30 Nov 2030 09:00 UTC"
	if got := p.moments(); !slices.Contains(got, moment) {
		t.Errorf("timeline: %q, want %q in it", got, moment)
	}
	if got := p.elements("code", "title", "sha256:"+sbomDigest); len(got) != 2 {
		t.Errorf("%d elements have the whole slot as their title, want 2", len(got))
	}
	linked := false
	for n := range p.elements("li", "class", "check met")[0].Descendants() {
		linked = linked || n.Data == "a" && attribute(n, "href") == apiPath+"/attestations/"+a.ID
	}
	if !linked {
		t.Error("the requirement does not link the attestation")
	}
	w.get(apiPath + "/policy").want(200).has("Any type https://spdx.dev/* is recorded, signed by any trusted identity.")

	w = e.signIn(e.admin)
	const byType = `{"requirements":[{"state":"ATTESTED","type":"https://slsa.dev/provenance/v1"}]}`
	w.edit(w.get(policyPath+"/edit"), "save", "document", byType).redirectsTo(policyPath + "?saved=3")
}
