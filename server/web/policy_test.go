package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const policyPath = "/orgs/acme/repos/api/policy"

// etagOf returns the ETag in the policy editor.
func etagOf(w *browser) string {
	w.t.Helper()
	return hidden(w.get(policyPath+"/edit").want(200), "etag")
}

// hidden returns the value of a hidden field, or an empty string if the page has no such field.
func hidden(p page, name string) string {
	for _, n := range p.elements("input", "name", name) {
		return attribute(n, "value")
	}
	return ""
}

// document returns the content of the editor.
func document(p page) string {
	p.t.Helper()
	area := p.elements("textarea")
	if len(area) != 1 || area[0].FirstChild == nil {
		p.t.Fatalf("%s: no document to edit", p.what)
	}
	return area[0].FirstChild.Data
}

// edit submits the editor of a page, with some fields replaced.
func (w *browser) edit(p page, do string, fields ...string) page {
	w.t.Helper()
	form := url.Values{"do": {do}, "document": {document(p)}}
	for _, name := range []string{"etag", "version", "seen"} {
		if value := hidden(p, name); value != "" {
			form.Set(name, value)
		}
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return w.post(policyPath+"/edit", form)
}

const (
	strict = `{"requirements":[{"state":"ATTESTED","predicate":"test:*","signers":["cn=*,ou=build,o=acme"]},` +
		`{"state":"PROMOTABLE","predicate":"review:*","threshold":2,"exclude_author":true}],"radar":{"block":"HIGH"}}`
	lax = `{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`
)

func TestPolicyPage(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	p := w.get(policyPath).want(200).has(
		"Version 1, by host",
		"Attested tests : Any test:* passes, signed by any trusted identity. Carries from commits with the same tree.",
		"Promotable review : Any review:* passes, signed by any trusted identity. Not by the author "+
			"or people needed for Attested. Carries from commits with the same tree.",
		"Deployed deploy : deploy:prod passes, signed by any trusted identity. "+
			"Not by people needed for Promotable.",
		"Overlaps do not keep commits from becoming Promotable.", "predicate: test:*",
		"ledgerd policy simulate acme/api -f policy.yaml",
	).hasNot("Saved version")
	if len(p.elements("a", "href", policyPath+"/edit")) > 0 {
		t.Error("a reader sees a link to the editor")
	}
	if live := attribute(p.elements("main")[0], "data-live"); live != "/orgs/acme/events?repo=api&types=policy" {
		t.Errorf("data-live: %q", live)
	}

	e.signIn(e.admin).edit(e.signIn(e.admin).get(policyPath+"/edit"), "save", "document",
		`{"requirements":[]}`).redirectsTo(policyPath + "?saved=2")
	w.get(policyPath).want(200).has(
		"Version 2, by admin of acme", "No requirements: the first attestation makes a commit Attested.",
		"No requirements: every Attested commit is Promotable.", "No requirements: no commit becomes Deployed.",
	)
	w.get("/orgs/acme/repos/none/policy").want(404)
}

// The policy page and the editor's preview show what lint finds.
func TestPolicyFindings(t *testing.T) {
	e := newEnv(t)
	const open = `{"requirements":[{"state":"ATTESTED","predicate":"test:*","signers":["ou=build"]},` +
		`{"state":"PROMOTABLE","predicate":"review:*"},{"state":"DEPLOYED","predicate":"deploy:prod","signers":["o=acme"]}]}`
	const finding = "requirements[1].signers : review:*: any trusted identity satisfies it, CI's key too . " +
		"Fix: name the signers, add distinct_from, or limit what identities may attest ."
	e.signer("cn=ci,ou=build,o=acme")
	e.signer("cn=ada,ou=review,o=acme")

	w := e.signIn(e.admin)
	w.edit(w.get(policyPath+"/edit"), "preview", "document", open).want(200).has("Probable mistakes", finding)
	w.edit(w.get(policyPath+"/edit"), "preview", "document", `{"requirements":[]}`).want(200).has(
		"requirements : no commit becomes DEPLOYED: there is no requirement for it")
	w.edit(w.get(policyPath+"/edit"), "save", "document", open).redirectsTo(policyPath + "?saved=2")
	e.signIn(e.reader).get(policyPath).want(200).has("Probable mistakes", finding, "ledgerd policy lint acme/api -f")

	closed := strings.Replace(open, `"review:*"`, `"review:*","signers":["ou=review"]`, 1)
	w.edit(w.get(policyPath+"/edit"), "preview", "document", closed).want(200).hasNot("Probable mistakes")
	w.edit(w.get(policyPath+"/edit"), "save", "document", closed).redirectsTo(policyPath + "?saved=3")
	w.get(policyPath).want(200).hasNot("Probable mistakes")
}

// Only maintainers see and can use the policy editor.
func TestPolicyEditorNeedsMaintainer(t *testing.T) {
	e := newEnv(t)
	for scope, token := range map[string]string{"read": e.reader, "write": e.writer} {
		w := e.signIn(token)
		for _, path := range []string{"", "/versions", "/versions/1"} {
			p := w.get(policyPath + path).want(200)
			if len(p.elements("a", "href", policyPath+"/edit")) > 0 || len(p.elements("textarea")) > 0 {
				t.Errorf("%s: an editor with scope %s", path, scope)
			}
		}
		w.get(policyPath + "/edit").want(403).has("scope maintain required: your API token has scope " + scope)
		w.post(policyPath+"/edit", url.Values{"do": {"save"}, "document": {lax}}).want(403)
	}
	e.signIn(e.admin).get(policyPath).want(200).has("Version 1")
}

func TestEditPolicy(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	editor := w.get(policyPath + "/edit").want(200).has("Creates version 2 when you save.")
	if text := document(editor); !strings.HasPrefix(text, "rules: 4\nrequirements:\n  - name: tests\n    state: "+
		"ATTESTED\n"+
		"    predicate: test:*\n    threshold: 1\n") {
		t.Errorf("the document is %s", text)
	}
	w.edit(editor, "save").want(422).has("No changes: this is the active version 1.")

	p := w.edit(editor, "preview", "document", strict).want(200).has(
		"0 commits checked, 0 would change state .", "Changed lines",
		"+ signers: ['cn=*,ou=build,o=acme']", "- carry: [tree]")
	if document(p) != strict {
		t.Errorf("the preview has the document %s", document(p))
	}
	// Browsers submit forms with CRLF.
	lines := strings.ReplaceAll(strict, `,"`, ",\r\n\"")
	w.edit(p, "save", "document", lines).redirectsTo(policyPath + "?saved=2")
	w.get(policyPath+"?saved=2").want(200).has("Saved version 2. It is now active.",
		"signed by 2 distinct signers. Not by the author",
		"HIGH overlaps keep the later commit from becoming Promotable.")
	w.edit(w.get(policyPath+"/edit"), "save", "document", lines).want(422).has(
		"No changes: this is the active version 2.").hasNot("\r")

	// YAML as in the docs, with comments.
	const yaml = "# Two reviewers.\nrequirements:\n  - {state: ATTESTED, predicate: \"test:*\"} # CI\n" +
		"  - state: PROMOTABLE\n    predicate: review:*\n    threshold: 2\n"
	p = w.edit(w.get(policyPath+"/edit"), "preview", "document", yaml).want(200).has("Changed lines")
	if document(p) != yaml {
		t.Errorf("the preview has the document %s", document(p))
	}
	w.edit(p, "save", "document", yaml).redirectsTo(policyPath + "?saved=3")
	w.get(policyPath).want(200).has("signed by 2 distinct signers").hasNot("Two reviewers.")
	w.edit(w.get(policyPath+"/edit"), "save", "document", yaml).want(422).has("No changes: this is the active version 3.")

	// The API's policy resource can be pasted whole.
	w.edit(w.get(policyPath+"/edit"), "save", "document",
		`{"org":"acme","repo":"api","version":7,"requirements":[]}`).redirectsTo(
		policyPath + "?saved=4")
}

// Errors are shown with their lines, and the document stays in the editor.
func TestPolicyErrors(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	editor := w.get(policyPath + "/edit")

	for _, do := range []string{"preview", "save"} {
		for name, test := range map[string]struct {
			document string
			status   int
			want     []string
		}{
			"not JSON": {"{\n  \"requirements\": [\n    {\"state\": \"ATTESTED\"\n     \"predicate\": \"a\"}\n  ]\n}",
				400, []string{"Line 4", `"predicate": "a"}`, "1 error. Nothing was saved.", "1 error: see the list above"}},
			"unexpected end": {"{\n  \"requirements\": [\n", 400, []string{"Line 3"}},
			"duplicate":      {"{\"requirements\": [],\n\"requirements\": []}", 400, []string{"Line 2"}},
			"fields": {"{\n\"requirements\": [\n{\"state\": \"ATESTED\",\n\"predicate\": \"a\"},\n{\"state\": " +
				"\"DEPLOYED\",\n\"threshold\": 0}],\n\"radar\": {\n\"notify\": \"LOUD\"}\n}", 422, []string{
				"Line 3 requirements[0].state : ", `"ATESTED" is not a state`, "Line 5 requirements[1].predicate : ",
				"Line 6 requirements[1].threshold : ", "Line 8 radar.notify : ", `"LOUD" is not a level`,
				"4 errors. Nothing was saved.", "4 errors: see the list above",
			}},
			"unknown field": {"{\"requirements\": [\n{\"state\": \"ATTESTED\", \"predicate\": \"a\",\n\"treshold\": 2}]}",
				400, []string{"Line 3", "treshold"}},
			"wrong type": {"{\"requirements\":\n7}", 422, []string{"Line 1 requirements : must be a list of objects"}},
			"empty":      {"", 422, []string{"no contract found"}},
			"list":       {"[]", 422, []string{"Line 1 : a contract must be a mapping"}},
			"YAML": {"requirements:\n  - state: ATESTED\n    predicate: a\n  - state: DEPLOYED\n", 422, []string{
				"Line 2 requirements[0].state : ", `"ATESTED" is not a state`, "Line 4 requirements[1].predicate : "}},
			"not YAML": {"requirements:\n  - state: [ATTESTED\n    predicate: a\n", 422, []string{"invalid YAML: did not find"}},
			"duplicate in YAML": {"radar:\n  block: HIGH\n  block: LOW\n", 422, []string{
				"Line 3 radar.block : already defined in this mapping"}},
			"bomb": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
				"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]",
				422, []string{"too large with its aliases resolved"}},
			"large YAML": {"# " + strings.Repeat("x", 1<<20), 422, []string{"too large: at most 1048576 bytes"}},
			"hostile": {"{\"requirements\":[\n" +
				`{"state":"<script>alert(1)</script>","predicate":"</textarea><img src=x>"}]}`,
				422, []string{"Line 2", `"<script>alert(1)</script>"`}},
		} {
			p := w.edit(editor, do, "document", test.document).want(test.status).has(test.want...)

			if test.document != "" && document(p) != test.document {
				t.Errorf("%s: the document became %q", name, document(p))
			}
			if len(p.elements("img")) > 0 || len(p.elements("script")) != 1 {
				t.Errorf("%s: text became an element", name)
			}
			if area := p.elements("textarea"); attribute(area[0], "aria-invalid") != "true" {
				t.Errorf("%s: the field is not marked as invalid", name)
			}
		}
	}
	w.get(policyPath).want(200).has("Version 1")
}

// A preview lists the commits that would change state.
func TestPolicyPreview(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	for n := range 130 {
		e.attest(ci, commitID(n), "test:go", ledger.Pass)
	}
	e.push(commitID(0), ledger.Registration{Author: ledger.Author{Name: "Dora"}})
	e.attest(e.signer("cn=rita,ou=review,o=acme"), commitID(0), "review:code", ledger.Pass)

	w := e.signIn(e.admin)
	p := w.edit(w.get(policyPath+"/edit"), "preview", "document",
		`{"requirements":[{"state":"ATTESTED","predicate":"lint:*"}]}`).want(200).has(
		"130 commits checked, 130 would change state .", "129 Attested → to Validating", "1 Promotable → to Validating",
		"lint:*: 0 of 1 signatures", "First 100 shown. To list more:",
		"ledgerd policy simulate acme/api -f policy.yaml",
	)

	rows := 0
	for n := range 130 {
		rows += len(p.elements("a", "href", "/orgs/acme/repos/api/commits/"+commitID(n)))
	}
	if rows != 100 {
		t.Errorf("%d commits are listed, want 100", rows)
	}

	w.edit(p, "preview", "document", document(w.get(policyPath+"/edit"))).want(200).has(
		"130 commits checked, 0 would change state .", "The policy is unchanged.").hasNot("Changed lines")
	w.get(policyPath).want(200).has("Version 1")
}

// A version that was saved while the visitor was editing is replaced only after
// the visitor has seen it.
func TestConcurrentPolicyEdits(t *testing.T) {
	e := newEnv(t)
	w, other := e.signIn(e.admin), e.signIn(e.admin)
	editor := w.get(policyPath + "/edit").want(200)
	mine := `{"requirements":[{"state":"DEPLOYED","predicate":"deploy:production"}]}`
	other.edit(other.get(policyPath+"/edit"), "save", "document", lax).redirectsTo(policyPath + "?saved=2")

	preview := w.edit(editor, "preview", "document", mine).want(200).has(
		"Version 2 was saved while you were editing version 1", "Preview", "Replace version 2")
	stale := w.edit(editor, "save", "document", mine).want(412).has(
		"Version 2 was saved while you were editing version 1", "by admin of acme", "Changes in version 2",
		"state: PROMOTABLE", "Replace version 2",
	)
	for _, p := range []page{preview, stale} {
		if document(p) != mine || hidden(p, "version") != "1" || len(p.elements("button", "value", "save")) > 0 {
			t.Errorf("%s: not the edited document: %s", p.what, p.body)
		}
	}
	// Saving again does not replace it.
	w.edit(stale, "save").want(412).has("Version 2 was saved while you were editing")

	other.edit(other.get(policyPath+"/edit"), "save", "document", strict).redirectsTo(policyPath + "?saved=3")
	again := w.edit(stale, "replace").want(412).has("Version 3 was saved while you were editing version 1",
		"Changes in version 3", "+ block: HIGH")
	w.get(policyPath).want(200).has("Version 3")
	w.edit(again, "replace").redirectsTo(policyPath + "?saved=4")
	w.get(policyPath).want(200).has("deploy:production")

	// Two equal changes create one version.
	editor = w.get(policyPath + "/edit")
	other.edit(editor, "save", "document", lax).redirectsTo(policyPath + "?saved=5")
	w.edit(editor, "save", "document", lax).want(422).has("No changes: this is the active version 5.")
	for _, etag := range []string{"", "x\r\ny: z", `"v5-000000000000"`} {
		if p := w.edit(editor, "save", "document", mine, "etag", etag); p.status < 400 {
			t.Errorf("ETag %q: %d, want an error", etag, p.status)
		}
	}
}

// The editor accepts documents up to the API's limit. A document that is too long
// stays in the editor.
func TestLargePolicy(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	editor := w.get(policyPath + "/edit")
	padded := func(size int) string { return strict[:1] + strings.Repeat("\n", size-len(strict)) + strict[1:] }
	w.edit(editor, "preview", "document", padded(1<<20)).want(200).has("Changed lines")
	p := w.edit(editor, "save", "document", padded(1<<20+1)).want(413)
	if document(p) != padded(1<<20+1) {
		t.Error("the editor lost the document")
	}
	w.edit(editor, "save", "document", padded(5<<20)).want(413).has(
		"form too large: at most 4194304 bytes")

	// Errors are located quickly, even at the end of a long document.
	var many strings.Builder
	for n := range 190 {
		fmt.Fprintf(&many, ",{\"state\":\"PROMOTABLE\",\"predicate\":\"a%d\",\n\"branches\":[%s\"x\"]}", n,
			strings.Repeat("\"release/*\",\n", 90))
	}
	invalid := "{\"requirements\":[" + many.String()[1:] + ",\n{\"state\":\"X\",\"predicate\":\"a\"}]}"
	start := time.Now()
	w.edit(editor, "preview", "document", invalid).want(422).has(
		fmt.Sprintf("Line %d requirements[190].state", 2+strings.Count(many.String(), "\n")))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("locating an error in %d bytes took %s, want at most 5 s", len(invalid), took)
	}
}

// Pages are of bounded size, even for large contracts.
func TestLargePolicyPages(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	long := strings.Repeat("build", 50)
	large := func(version int) string {
		var many []string
		for n := range 50 {
			many = append(many, fmt.Sprintf(`{"state":"PROMOTABLE","predicate":"scan:%d-%d","signers":[%s"cn=last,o=acme"]}`,
				version, n, strings.Repeat(`"cn=*`+long+`,ou=`+long+`,o=acme",`, 4)))
		}
		return `{"requirements":[` + strings.Join(many, ",") + `]}`
	}

	for version := 2; version <= 4; version++ {
		w.edit(w.get(policyPath+"/edit"), "save", "document", large(version)).redirectsTo(
			fmt.Sprintf("%s?saved=%d", policyPath, version))
	}

	for path, want := range map[string]string{
		"":            "ledgerd policy show acme/api --version 4",
		"/versions":   "more changes",
		"/versions/4": "ledgerd policy show acme/api --version 4",
	} {
		if p := w.get(policyPath + path).want(200).has(want); len(p.body) > 300<<10 {
			t.Errorf("%s: %d bytes", path, len(p.body))
		}
	}
}

func TestPolicyVersions(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	for _, d := range []string{strict, lax, `{"requirements":[],"radar":{"enabled":false}}`} {
		w.edit(w.get(policyPath+"/edit"), "save", "document", d).want(303)
		e.clock.advance(time.Hour)
	}
	r := e.signIn(e.reader)
	p := r.get(policyPath+"/versions").want(200).has(
		"Version 4 by admin of acme", "Version 1 by host", "Initial version.",
		"Removed − Attested: tests : Any test:* passes, signed by any trusted identity. "+
			"Carries from commits with the same tree.",
		"Added + Promotable: Any review:* passes, signed by 2 distinct signers. Not by the author.",
		"Removed − Promotable: review : Any review:* passes, signed by any trusted identity. Not by the author "+
			"or people needed for Attested. Carries from commits with the same tree.", "1 more change",
		"Added + Radar: Conflict Radar is off",
	)
	if text := p.text(); strings.Index(text, "Version 4") > strings.Index(text, "Version 3") {
		t.Error("the newest version is not first")
	}
	r.get(policyPath+"/versions/3").want(200).has("Changes since version 2",
		"- signers: ['cn=*,ou=build,o=acme']", "Any test:* passes, signed by any trusted identity.")
	r.get(policyPath+"/versions/3?against=4").want(200).has("Changes since version 4", "- enabled: false")
	r.get(policyPath + "/versions/3?against=3").want(200).has("None: both are identical.")
	r.get(policyPath + "/versions/1").want(200).has("First version.")
	for _, path := range []string{"/versions/9", "/versions/0", "/versions/x", "/versions/3?against=9",
		"/versions/3?against=-1"} {
		r.get(policyPath + path).want(404)
	}

	// The list has pages. The last version of a page is compared with the first of
	// the next.
	for n := range 30 {
		w.edit(w.get(policyPath+"/edit"), "save", "document",
			fmt.Sprintf(`{"requirements":[{"state":"ATTESTED","predicate":"p%d"}]}`, n)).want(303)
	}
	p = r.get(policyPath+"/versions").want(200).has("Version 34", "Version 25", "p19 passes, signed by").
		hasNot("Version 24 ")
	r.get(attribute(p.elements("a", "rel", "next")[0], "href")).want(200).has("Version 24", "Version 15").hasNot(
		"Version 25 ", "Version 14 ")
}
