package web_test

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// commitID returns the SHA of the n-th test commit.
func commitID(n int) string { return fmt.Sprintf("%040x", 0xc0ffee0000+n) }

func TestOrgPage(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	w.get("/orgs/acme").want(200).has("api", "No commits yet", "ledgerd commit register acme/api HEAD", "No activity yet")

	ci := e.signer("cn=ci,ou=build,o=acme")
	for n := range 3 {
		e.push(commitID(n), ledger.Registration{Branch: fmt.Sprintf("topic-%d", n),
			Message: fmt.Sprintf("Change %d\n\nmore", n)})
	}
	e.attest(ci, commitID(0), "test:go", ledger.Pass)
	e.attest(ci, commitID(1), "test:go", ledger.Fail)
	p := w.get("/orgs/acme").want(200).has(
		"1 Attested 1 Validating 1 Draft", "Failing 1", "Blocked 2",
		"Needs attention Failed 1 Waiting for review 1 Failed api Change 1 topic-1 test:go failed (ci)",
		"fail test:go by ci on api@ "+commitID(1)[:12], "Attested api@ "+commitID(0)[:12]+" Validating → to Attested",
	)
	if rects := p.elements("rect"); len(rects) != 3 {
		t.Errorf("%d bars, want 3", len(rects))
	}
	if live := attribute(p.elements("main")[0], "data-live"); live !=
		"/orgs/acme/events?types=attestation%2Cstate%2Cpolicy%2Cradar%2Cviolation%2Ccommit%2Ckey%2Cidentity%2Cstanding" {
		t.Errorf("data-live: %q", live)
	}
	if since := attribute(p.elements("main")[0], "data-live-since"); since != e.newestEvent() {
		t.Errorf("the stream starts after %q, want the newest event %s", since, e.newestEvent())
	}
}

func (e *env) newestEvent() string {
	e.t.Helper()
	list, err := e.host.EventsPage(e.t.Context(), "acme", client.EventFilter{NewestFirst: true}, client.Query{Limit: 1})
	must.OK(e.t, err)
	var newest struct {
		ID string `json:"id"`
	}
	must.OK(e.t, ledger.DecodeOpen(list.Data[0], &newest))
	return newest.ID
}

// Only admins see that a token expires.
func TestNeedsForAdmins(t *testing.T) {
	e := newEnv(t)
	_, err := e.host.CreateToken(t.Context(), "acme",
		ledger.NewToken{Name: "brief", Scope: ledger.Read, ExpiresAt: e.clock.time().Add(24 * time.Hour)})
	must.OK(t, err)
	e.signIn(e.admin).get("/orgs/acme").want(200).has("Expiring brief token expires")
	e.signIn(e.writer).get("/orgs/acme").want(200).hasNot("token expires", "Needs attention")
}

// Further pages of repos are linked.
func TestRepoPagination(t *testing.T) {
	e := newEnv(t)
	for n := range 60 {
		_, err := e.host.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: fmt.Sprintf("repo-%02d", 59-n)})
		must.OK(t, err)
	}
	w := e.signIn(e.reader)
	p := w.get("/orgs/acme").want(200).has("api", "repo-48").hasNot("repo-49")
	next := p.elements("a", "rel", "next")
	if len(next) != 1 {
		t.Fatal("no link to the next page")
	}
	w.get(attribute(next[0], "href")).want(200).has("repo-49", "repo-59").hasNot("repo-48")
}

// The table of repos is sorted and filtered by the API, over all repos.
func TestReposAreSorted(t *testing.T) {
	e := newEnv(t)
	for n := range 60 {
		_, err := e.host.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: fmt.Sprintf("repo-%02d", n)})
		must.OK(t, err)
	}
	e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go", ledger.Fail)
	w := e.signIn(e.reader)
	names := func(path string) []string {
		t.Helper()
		return w.get(path).want(200).texts("th", "scope", "row")
	}

	for path, want := range map[string][2]string{ // the first and the last
		"/orgs/acme":                           {"api", "repo-48"},
		"/orgs/acme?reverse=true":              {"repo-59", "repo-10"},
		"/orgs/acme?sort=failing":              {"api", "repo-48"},
		"/orgs/acme?sort=failing&reverse=true": {"repo-59", "repo-10"},
		"/orgs/acme?sort=none":                 {"api", "repo-48"},
		"/orgs/acme?name=PO-5":                 {"repo-50", "repo-59"},
		"/orgs/acme?name=A&sort=activity":      {"api", "api"},
	} {
		if got := names(path); len(got) == 0 || got[0] != want[0] || got[len(got)-1] != want[1] {
			t.Errorf("%s: %q, want from %s to %s", path, got, want[0], want[1])
		}
	}

	p := w.get("/orgs/acme?sort=failing&name=o").want(200)
	wantEqual(t, "sorted columns", p.texts("th", "aria-sort", "descending"), []string{"Failing ↓"})
	for label, want := range map[string]string{
		"Repo":       "/orgs/acme?name=o",
		"Failing ↓":  "/orgs/acme?name=o&reverse=true&sort=failing",
		"Production": "/orgs/acme?name=o&sort=production",
	} {
		if got := p.elements("a", "href", want); len(got) != 1 || textOf(got[0]) != label {
			t.Errorf("%d links %s", len(got), want)
		}
	}
	w.get("/orgs/acme?name=%25").want(200).has("No matching repos")
}

// Markup in texts is escaped.
func TestTextIsEscaped(t *testing.T) {
	e := newEnv(t)
	const nasty = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>{{.}}&amp;`
	ci := e.signer(`cn=\<i\>ci\</i\>\,\"x\",ou=build,o=acme`)
	e.push(commitID(1), ledger.Registration{Branch: "<u>main</u>", Message: nasty,
		Author: ledger.Author{Name: nasty, Email: "a@example.com"}})
	e.attest(ci, commitID(1), "test:go", ledger.Fail)
	token, err := e.host.CreateToken(t.Context(), "acme",
		ledger.NewToken{Name: `<b>"boss"</b>`, Scope: ledger.Admin, ExpiresAt: e.clock.time().Add(time.Hour)})
	must.OK(t, err)

	w := e.signIn(token.Secret)
	for path, shown := range map[string][]string{
		"/orgs/acme":                     {nasty, `<b>"boss"</b>`, `by <i>ci</i>,"x"`},
		"/orgs/acme/repos/api":           {nasty, "<u>main</u>", `failed by <i>ci</i>,"x"`},
		"/orgs/acme/repos/api?view=list": {nasty, "<u>main</u>", `failed by <i>ci</i>,"x"`},
	} {
		p := w.get(path).want(200).has(shown...)
		for name, most := range map[string]int{"img": 0, "i": 0, "u": 0, "script": 1} {
			if n := len(p.elements(name)); n > most {
				t.Errorf("%s: text became %d %s elements", path, n, name)
			}
		}
	}
}

// The stream works with a session.
func TestEventStream(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	w := e.signIn(e.reader)
	req, err := http.NewRequestWithContext(t.Context(), "GET", e.url+"/orgs/acme/events?types=state&repo=api", nil)
	must.OK(t, err)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := w.client.Do(req)
	must.OK(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}

	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "id: ") {
	}
	e.attest(ci, commitID(1), "test:go", ledger.Pass)
	for lines.Scan() && lines.Text() != "event: state" {
		if strings.HasPrefix(lines.Text(), "event: ") {
			t.Fatal(lines.Text())
		}
	}
	if lines.Text() != "event: state" {
		t.Errorf("the stream ended at %q: %v", lines.Text(), lines.Err())
	}
}

// Bidirectional control characters are isolated in an element of their own, and
// removed from titles and labels, which cannot have elements.
func TestBidiText(t *testing.T) {
	e := newEnv(t)
	const bidi = "a\u202eb\u2067c"
	signer := e.signer("cn=ci,ou=build,o=acme")
	e.push(commitID(1), ledger.Registration{Branch: bidi, Message: bidi + "\n\n" + bidi,
		Author: ledger.Author{Name: bidi, Email: bidi + "@example.com"}})
	record := e.attest(signer, commitID(1), "lint:go", ledger.Pass)
	e.attest(signer, commitID(1), "test:go", ledger.Fail)

	w := e.signIn(e.admin)
	for _, path := range []string{
		"/orgs/acme", "/orgs/acme/activity", "/orgs/acme/repos/api", "/orgs/acme/repos/api?view=list",
		"/orgs/acme/repos/api/commits/" + commitID(1),
		"/orgs/acme/repos/api/attestations/" + record.ID, "/orgs/acme/settings/identities",
	} {
		for n := range w.get(path).want(200).tree().Descendants() {
			for _, a := range n.Attr {
				if (a.Key == "title" || a.Key == "aria-label") && strings.ContainsRune(a.Val, '\u202e') {
					t.Errorf("%s: the %s %+q of <%s> has a bidirectional control character", path, a.Key, a.Val, n.Data)
				}
			}
			if n.Type == html.TextNode && strings.ContainsRune(n.Data, '\u202e') && !within(n, "bdi", "pre") {
				t.Errorf("%s: %+q in <%s> is not isolated", path, n.Data, n.Parent.Data)
			}
		}
	}
}

// within reports whether a node has an ancestor with one of the names.
func within(n *html.Node, names ...string) bool {
	for a := range n.Ancestors() {
		if slices.Contains(names, a.Data) {
			return true
		}
	}
	return false
}

// The page shows the first needs, and links to all.
func TestManyNeeds(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	for n := range 14 {
		e.push(commitID(n), ledger.Registration{Branch: fmt.Sprintf("topic-%d", n), Message: "Change"})
		e.attest(ci, commitID(n), "test:go", ledger.Fail)
	}
	w := e.signIn(e.admin)
	p := w.get("/orgs/acme").want(200)
	if n := len(p.elements("span", "class", "need-kind bad")); n != 6 {
		t.Errorf("%d needs are shown, want 6", n)
	}
	rest := p.elements("a", "href", "/orgs/acme/attention")
	rest = slices.DeleteFunc(rest, func(n *html.Node) bool { return textOf(n) == "Attention" }) // the tab
	if len(rest) != 1 || textOf(rest[0]) != "8 more" {
		t.Fatalf("%d links to all needs, want one", len(rest))
	}
	p = w.get(attribute(rest[0], "href")).want(200).has("All 14", "Failed 14").hasNot("more")
	if n := len(p.elements("span", "class", "need-kind bad")); n != 14 {
		t.Errorf("%d needs are shown, want all 14", n)
	}
}

// Blocking needs come first.
func TestBlockingNeedsFirst(t *testing.T) {
	e := newEnv(t)
	first := e.rootPEM()
	e.clock.advance(10 * 24 * time.Hour)
	for _, root := range []string{e.rootPEM(), first} {
		_, err := e.host.AddIdentity(t.Context(), "acme", identity.NewIdentity{Kind: identity.RootIdentity, PEM: root})
		must.OK(t, err)
	}
	e.clock.advance(360 * 24 * time.Hour) // the first root expired five days ago, the other expires in five days
	p := e.signIn(e.admin).get("/orgs/acme").want(200).has("Expiring 2 Expiring cn=acme root,o=acme root expired")
	wantEqual(t, "other needs", p.texts("span", "class", "need-kind"), []string{"Expiring"})
}
