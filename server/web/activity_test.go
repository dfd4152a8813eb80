package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

const activityPath = "/orgs/acme/activity"

// rawEvents returns the raw events of a page, in the order of the page.
func rawEvents(p page) []string {
	var bodies []string
	for _, n := range p.elements("pre") {
		bodies = append(bodies, n.FirstChild.Data)
	}
	return bodies
}

func TestActivityPage(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	w.get(activityPath).want(200).has(
		"No activity yet", "ledgerd attest acme/REPO --commit HEAD --predicate test:go --key ci.key -- go test ./...")

	_, err := e.host.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "docs"})
	must.OK(t, err)
	ci := e.signer("cn=ci,ou=build,o=acme")
	e.branch(1, "one", "ada", lineEdit("cmd/root.go", 100))
	e.branch(2, "two", "ada", lineEdit("cmd/root.go", 101))
	e.clock.advance(time.Second)
	e.attest(ci, commitID(1), "test:go", ledger.Pass)
	e.clock.advance(time.Second)
	admin := e.signIn(e.admin)
	admin.edit(admin.get(policyPath+"/edit"), "save", "document", lax).want(303)

	p := w.get(activityPath).want(200).has(
		"api version 2 by admin of acme", "Attested api@ "+commitID(1)[:12]+" Validating → to Attested",
		"pass test:go by ci on api@ "+commitID(1)[:12], "HIGH api@ "+commitID(2)[:12]+" overlaps with one api@ "+
			commitID(1)[:12]+" in 1 path",
	)
	var want []string
	for body, err := range e.host.Events(t.Context(), "acme",
		client.EventFilter{Types: ledger.EventTypesFor(ledger.Read)}) {
		must.OK(t, err)
		want = append([]string{string(body)}, want...)
	}
	if got := rawEvents(p); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("raw events:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if live := attribute(p.elements("main")[0], "data-live"); live !=
		"/orgs/acme/events?types=attestation%2Cstate%2Cpolicy%2Cradar%2Cviolation%2Ccommit%2Ckey%2Cidentity%2Cstanding" {
		t.Errorf("data-live: %q", live)
	}

	for query, n := range map[string]int{
		"?type=policy":                    1,
		"?type=radar":                     1,
		"?type=radar&type=policy":         2,
		"?type=policy&type=policy&repo=":  1,
		"?repo=api":                       len(want) - 1, // without the identity of the org
		"?repo=api&type=attestation":      1,
		"?repo=docs":                      0,
		"?repo=api&type=state&type=radar": len(want) - 5,
	} {
		p := w.get(activityPath + query).want(200)
		if got := len(rawEvents(p)); got != n {
			t.Errorf("%s: %d events, want %d", query, got, n)
		}
		if n == 0 {
			p.has("No matching events", "ledgerd events acme --follow")
		}
		values, err := url.ParseQuery(query[1:])
		must.OK(t, err)
		for _, kind := range values["type"] {
			if box := p.elements("input", "value", kind); len(box) != 1 ||
				!strings.Contains(p.body, `value="`+kind+`" checked`) {
				t.Errorf("%s: the checkbox of %s is not checked", query, kind)
			}
		}
	}
	w.get(activityPath + "?type=weather").want(422).has("weather")
	admin.get(activityPath + "?type=audit").want(422).has("Audit of the settings")
	w.get(activityPath + "?repo=none").want(404)
}

// Older events are on further pages, newest first and each once.
func TestActivityPagination(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	for n := range 130 {
		e.attest(ci, commitID(n), "test:go", ledger.Pass)
	}

	w := e.signIn(e.reader)
	seen := make(map[string]bool)
	p := w.get(activityPath + "?type=attestation").want(200).hasNot("Newest")
	for {
		for _, body := range rawEvents(p) {
			if want := fmt.Sprintf(`"commit":"%s"`, commitID(129-len(seen))); !strings.Contains(body, want) {
				t.Fatalf("event %d is %s, want one with %s", len(seen), body, want)
			}
			seen[body] = true
		}
		next := p.elements("a", "rel", "next")
		if len(next) == 0 {
			break
		}
		p = w.get(attribute(next[0], "href")).want(200).has("Newest")
		if live := attribute(p.elements("main")[0], "data-live"); live != "" {
			t.Errorf("an older page is live: %s", live)
		}
	}

	if len(seen) != 130 {
		t.Errorf("%d events, want 130", len(seen))
	}
}

// The page limits the size of raw events. It shows commands that print the
// others.
func TestActivityLargeEvents(t *testing.T) {
	e := newEnv(t)
	var changes []radar.Change
	for n := range 300 {
		changes = append(changes, lineEdit(fmt.Sprintf("services/a-directory-of-some-length/and-another-one/file-%03d.go", n),
			10))
	}
	for n := range 6 {
		for i := range changes {
			changes[i].Blob = fmt.Sprintf("%040x", n*1000+i)
			changes[i].Hunks[0].Text = fmt.Sprintf("%016x", n*1000+i)
		}
		e.branch(n, fmt.Sprintf("topic-%d", n), "ada", changes...)
	}
	p := e.signIn(e.reader).get(activityPath).want(200).has("is too large to show here", "--limit 1 -o json")
	if len(p.body) > 300<<10 {
		t.Errorf("the page has %d bytes, want at most 300 KiB", len(p.body))
	}
	if n := len(p.elements("pre")); n == 0 || n >= 50 {
		t.Errorf("%d raw events on the page, want some but not all", n)
	}
}

func TestActivityHostileTexts(t *testing.T) {
	e := newEnv(t)
	const nasty = `</pre><script>alert(1)</script>"'><img/src=x>`
	ci := e.signer(`cn=\<i\>ci\</i\>\,\"x\",ou=build,o=acme`)
	e.push(commitID(1), ledger.Registration{Branch: nasty, Message: nasty,
		Changes: []radar.Change{lineEdit("a"+nasty, 5)}})
	e.push(commitID(2), ledger.Registration{Branch: "\u202Eother", Message: nasty,
		Changes: []radar.Change{lineEdit("a"+nasty, 6)}})
	e.attest(ci, commitID(1), "test:go", ledger.Fail)
	p := e.signIn(e.reader).get(activityPath).want(200).has("overlaps with "+nasty, `by <i>ci</i>,"x" on`)
	for _, name := range []string{"img", "i"} {
		if len(p.elements(name)) > 0 {
			t.Errorf("text became a %s element", name)
		}
	}
	if len(p.elements("script")) != 1 {
		t.Error("text became a script element")
	}
}

// An event of the org has no repo: it is in the activity, and search leads to it.
func TestActivityOfTheOrg(t *testing.T) {
	e := newEnv(t)
	id, err := e.db.LogKey(t.Context(), "acme", ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog,
		Key: strings.Repeat("0a", 32), Reason: "restored from a backup"})
	must.OK(t, err)

	w := e.signIn(e.reader)
	for query, want := range map[string]int{"": 1, "?type=key": 1, "?type=policy": 0, "?repo=api": 0} {
		if got := rawEvents(w.get(activityPath + query).want(200)); len(got) != want {
			t.Errorf("%q: %q, want %d events", query, got, want)
		}
	}
	w.get(activityPath).has("Key log key 0a0a0a0a0a0a added: restored from a backup", "key event, ").hasNot("key event of")
	if to := w.get("/orgs/acme/search?q=" + id).want(303).header.Get("Location"); to != activityPath+"?type=key" {
		t.Errorf("search leads to %s", to)
	}

	_, err = e.db.LogKey(t.Context(), "acme", ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog,
		Key: strings.Repeat("0a", 32), PublicKey: make([]byte, 128<<10)})
	must.OK(t, err)
	w.get(activityPath).want(200).has("ledgerd events acme --types key --since-id " + id + " --limit 1 -o json")
}
