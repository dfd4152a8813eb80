package web_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

const apiPath = "/orgs/acme/repos/api"

// textOf returns the text of an element, with single spaces.
func textOf(n *html.Node) string {
	var words []string
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			words = append(words, strings.Fields(d.Data)...)
		}
	}
	return strings.Join(words, " ")
}

// texts returns the texts of the elements.
func (p page) texts(name string, attributes ...string) []string {
	p.t.Helper()
	var list []string
	for _, n := range p.elements(name, attributes...) {
		list = append(list, textOf(n))
	}
	return list
}

// wantEqual checks that the lists are equal.
func wantEqual(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBoard(t *testing.T) {
	e := newEnv(t)
	ci, alice := e.signer("cn=ci,ou=build,o=acme"), e.signer("cn=alice,ou=people,o=acme")
	e.push(commitID(0), ledger.Registration{Branch: "draft", Message: "Nothing yet",
		Author: ledger.Author{Name: "Ada", Email: "ada@acme.example"}})
	e.clock.advance(time.Minute)
	e.push(commitID(1), ledger.Registration{Branch: "red", Message: "Fails\n\nand more",
		Author: ledger.Author{Email: "bob@acme.example"}})
	e.attest(ci, commitID(1), "test:go", ledger.Fail)
	e.push(commitID(2), ledger.Registration{
		Branch: "one", Message: "One", Changes: []radar.Change{lineEdit("cmd/root.go", 10)}})
	e.attest(ci, commitID(2), "test:go", ledger.Pass)
	e.push(commitID(3), ledger.Registration{
		Branch: "two", Message: "Two", Changes: []radar.Change{lineEdit("cmd/root.go", 11)}})
	e.deploy(ci, alice, commitID(4))

	p := e.signIn(e.reader).get(apiPath).want(200).has("5 commits, 5 attestations")
	wantEqual(t, "columns", p.columns(), []string{
		"Draft 2 Two 30 Nov 2030 09:01 UTC " + commitID(3)[:8] + " two test:* 0 of 1 HIGH 1 overlap" +
			" Nothing yet Ada 30 Nov 2030 09:00 UTC " + commitID(0)[:8] + " draft test:* 0 of 1",
		"Validating 1 Fails bob 30 Nov 2030 09:01 UTC " + commitID(1)[:8] + " red test:* failed by ci",
		"Attested 1 One 30 Nov 2030 09:01 UTC " + commitID(2)[:8] + " one review:* 0 of 1 HIGH 1 overlap",
		"Promotable 0 None",
		"Deployed 1 No message Dora 30 Nov 2030 09:01 UTC " + commitID(4)[:8],
	})
	if links := p.elements("a", "href", apiPath+"/commits/"+commitID(1)); len(links) != 1 || textOf(links[0]) != "Fails" {
		t.Errorf("a card has %d links to its commit, want one with the subject", len(links))
	}
	if live := attribute(p.elements("main")[0], "data-live"); !strings.HasSuffix(
		live, "&types=attestation%2Cstate%2Cpolicy%2Cradar%2Cviolation%2Ccommit%2Ckey%2Cidentity%2Cstanding") ||
		!strings.Contains(live, "repo=api") {
		t.Errorf("data-live: %q", live)
	}
	e.signIn(e.reader).get("/orgs/acme/repos/nope").want(404)
	e.signIn(e.token(e.otherOrg(), ledger.Admin).Secret).get(apiPath).want(403)
}

// columns returns the texts of the columns of the board.
func (p page) columns() []string {
	p.t.Helper()
	var list []string
	for _, n := range p.elements("section") {
		if strings.HasPrefix(attribute(n, "class"), "column") {
			list = append(list, textOf(n))
		}
	}
	return list
}

// An overlap that blocks a commit is shown once on its card.
func TestCardShowsAnOverlapOnce(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"}],"radar":{"block":"HIGH"}}`)
	e.push(commitID(1), ledger.Registration{Branch: "one", Message: "x", Changes: []radar.Change{lineEdit("a.go", 10)}})
	e.push(commitID(2), ledger.Registration{Branch: "two", Message: "x", Changes: []radar.Change{lineEdit("a.go", 11)}})
	e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(2), "test:go", ledger.Pass)

	p := e.signIn(e.reader).get(apiPath).want(200).has("HIGH 1 overlap blocked")
	for _, column := range p.columns() {
		if strings.HasPrefix(column, "Attested") && strings.Count(column, "overlap") != 1 {
			t.Errorf("the card shows its overlap more than once: %s", column)
		}
	}
}

// The board has the filters of the list, folded columns, and one column for a phone, all
// without a script.
func TestBoardFilters(t *testing.T) {
	e := newEnv(t)
	ada, bob := ledger.Author{Name: "Ada", Email: "ada@acme.example"}, ledger.Author{Name: "Bob"}
	e.push(commitID(0), ledger.Registration{Branch: "main", Message: "Round amounts", Author: ada})
	e.push(commitID(1), ledger.Registration{Branch: "fix/round", Message: "Other", Author: bob})
	e.push(commitID(2), ledger.Registration{Branch: "main", Message: "Third", Author: bob})
	e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(2), "test:go", ledger.Pass)

	w := e.signIn(e.reader)
	for query, want := range map[string][]string{
		"":                       {"Other", "Round amounts", "Third"},
		"?text=ROUND":            {"Other", "Round amounts"},
		"?text=ada":              {"Round amounts"},
		"?branch=main":           {"Round amounts", "Third"},
		"?author=Bob":            {"Other", "Third"},
		"?author=Bob&text=third": {"Third"},
		"?text=nothing":          nil,
		"?folded=DRAFT":          {"Other", "Round amounts", "Third"},
		"?folded=GONE&column=X":  {"Other", "Round amounts", "Third"},
	} {
		p := w.get(apiPath + query).want(200)
		wantEqual(t, query, p.texts("a", "class", "subject"), want)
		if n := len(p.columns()); n != len(ledger.States()) {
			t.Errorf("%s: %d columns", query, n)
		}
	}

	// The default branch is not on the cards, and a filter stays in the links of the page.
	p := w.get(apiPath + "?author=Bob&folded=DRAFT&column=ATTESTED").want(200)
	if branches := p.texts("bdi", "class", "branch"); !slices.Equal(branches, []string{"fix/round"}) {
		t.Errorf("branches on cards: %v", branches)
	}
	folded := p.texts("section", "class", "column folded")
	if len(folded) != 1 || !strings.HasPrefix(folded[0], "Draft 1") {
		t.Errorf("folded: %v", folded)
	}
	chosen := p.texts("section", "class", "column chosen")
	if len(chosen) != 1 || !strings.HasPrefix(chosen[0], "Attested 1") {
		t.Errorf("chosen: %v", chosen)
	}
	for _, want := range []string{
		"?author=Bob&column=ATTESTED", "?author=Bob&column=ATTESTED&folded=DRAFT%2CATTESTED",
		"?author=Bob&column=DRAFT&folded=DRAFT", "?author=Bob&view=list",
	} {
		if len(p.elements("a", "href", apiPath+want)) != 1 {
			t.Errorf("no link to %s", want)
		}
	}
}

// Where people see the repo in a browser, its commits have links to it.
func TestBoardLinksOut(t *testing.T) {
	e := newEnv(t)
	e.push(commitID(1), ledger.Registration{Branch: "x", Message: "x"})
	w := e.signIn(e.reader)
	w.get(apiPath).want(200).hasNot("Open on")

	_, err := e.host.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{WebURL: new("https://github.com/acme/api")})
	must.OK(t, err)
	for _, query := range []string{"", "?view=list"} {
		p := w.get(apiPath + query).want(200).has("Open on GitHub")
		for _, at := range []string{"https://github.com/acme/api", "https://github.com/acme/api/commit/" + commitID(1)} {
			links := p.elements("a", "href", at)
			if len(links) != 1 || attribute(links[0], "rel") != "noopener noreferrer" {
				t.Errorf("%q: %d links to %s", query, len(links), at)
			}
		}
	}
}

// otherOrg creates another org.
func (e *env) otherOrg() string {
	e.t.Helper()
	_, err := e.host.CreateOrg(e.t.Context(), ledger.NewOrg{Name: "other"})
	must.OK(e.t, err)
	return "other"
}

// A column shows the newest commits, and links to the list of all.
func TestBoardLimit(t *testing.T) {
	e := newEnv(t)
	for n := range 60 {
		e.push(commitID(n), ledger.Registration{Message: fmt.Sprintf("Change %d.", n)})
	}
	w := e.signIn(e.reader)
	p := w.get(apiPath).want(200).has("Draft 60", "Change 59.", "Change 35.", "35 more").hasNot("Change 34.")
	all := attribute(p.elements("a", "class", "more")[0], "href")
	if all != apiPath+"?state=DRAFT" {
		t.Fatalf("the column links to %s", all)
	}
	p = w.get(all).want(200).has("Change 59.", "Change 10.").hasNot("Change 9.", "more")
	next := p.elements("a", "rel", "next")
	if len(next) != 1 {
		t.Fatal("no link to the next page")
	}
	w.get(attribute(next[0], "href")).want(200).has("Change 9.", "Change 0.").hasNot("Change 10.", "Older")
}

// A card lists only the first unmet requirements.
func TestCardNeedsLimit(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"test:a"},{"state":"ATTESTED","predicate":"test:b"},` +
		`{"state":"ATTESTED","predicate":"test:c"},` +
		`{"state":"ATTESTED","predicate":"test:d"},{"state":"ATTESTED","predicate":"test:e"}]}`)
	e.push(commitID(1), ledger.Registration{Message: "x"})
	e.signIn(e.reader).get(apiPath).want(200).has("test:a 0 of 1 test:b 0 of 1 3 more").hasNot("test:c")
}

func TestList(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	ada, bob := ledger.Author{Name: "Ada", Email: "ada@acme.example"},
		ledger.Author{Name: "Bob", Email: "bob@acme.example"}
	e.push(commitID(0), ledger.Registration{Branch: "main", Message: "Zero", Author: ada})
	e.push(commitID(1), ledger.Registration{Branch: "a&b", Message: "One", Author: bob})
	e.push(commitID(2), ledger.Registration{Branch: "main", Message: "Two", Author: bob})
	e.attest(ci, commitID(2), "test:go", ledger.Pass)

	w := e.signIn(e.reader)
	for query, want := range map[string][]string{
		"view=list":             {"Two", "One", "Zero"},
		"state=ATTESTED":        {"Two"},
		"state=PROMOTABLE":      nil,
		"view=list&branch=main": {"Two", "Zero"},
		"view=list&branch=" + url.QueryEscape("a&b"): {"One"},
		"view=list&author=Ada":                       {"Zero"},
		"view=list&author=bob%40acme.example":        {"Two", "One"},
		"view=list&text=tWo":                         {"Two"},
		"author=Bob&branch=main&state=ATTESTED":      {"Two"},
		"view=list&state=&branch=&author=":           {"Two", "One", "Zero"}, // as submitted by the form
		"view=board&state=DRAFT":                     {"One", "Zero"},
		"view=list&branch=mai":                       nil, // names are exact
	} {
		p := w.get(apiPath + "?" + query).want(200)
		wantEqual(t, query, p.texts("a", "class", "subject"), want)
		if want == nil {
			p.has("No matching commits", "The author may be a part", "Clear")
		}
	}

	p := w.get(apiPath+"?state=ATTESTED&branch=main&author=Bob").want(200).has("Two "+commitID(2)[:12]+" Bob main",
		"Attested review:* 0 of 1")
	if got := attribute(p.elements("input", "name", "branch")[0], "value") + attribute(
		p.elements("input", "name", "author")[0], "value"); got != "mainBob" {
		t.Errorf("filter fields: %q", got)
	}
	for _, option := range p.elements("option") {
		selected := slices.ContainsFunc(option.Attr, func(a html.Attribute) bool { return a.Key == "selected" })
		if selected != (textOf(option) == "Attested") {
			t.Errorf("state %s is selected: %t", textOf(option), selected)
		}
	}

	w.get(apiPath+"?state=GONE").want(422).has(
		"GONE", "is not a state", "use DRAFT, VALIDATING, ATTESTED, PROMOTABLE or DEPLOYED")
	w.get(apiPath + "?view=list&cursor=x").want(400).has("cursor")
	w.get("/orgs/acme/repos/nope?view=list").want(404)
}

// The pages of the list have the same filter.
func TestListPagination(t *testing.T) {
	e := newEnv(t)
	for n := range 130 {
		e.push(commitID(n), ledger.Registration{Branch: []string{"even&more", "odd"}[n%2],
			Message: fmt.Sprintf("Change %d.", n)})
	}
	w := e.signIn(e.reader)
	path, pages, seen := apiPath+"?view=list&branch="+url.QueryEscape("even&more"), 0, 0
	for path != "" {
		p := w.get(path).want(200).hasNot("odd")
		seen += len(p.elements("a", "class", "subject"))
		pages++
		path = ""
		for _, next := range p.elements("a", "rel", "next") {
			path = attribute(next, "href")
		}
	}
	if pages != 2 || seen != 65 {
		t.Errorf("%d commits on %d pages, want 65 on 2", seen, pages)
	}
}

func TestEmptyRepo(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	for _, query := range []string{"", "?view=list"} {
		w.get(apiPath+query).want(200).has("No commits yet", "ledgerd commit register acme/api HEAD")
	}
	// An empty repo is not blamed on the filter.
	w.get(apiPath + "?state=DRAFT").want(200).has("ledgerd commit register acme/api HEAD").hasNot("No matching commits")
}

func TestRepoHostileTexts(t *testing.T) {
	e := newEnv(t)
	e.hostile()
	w := e.signIn(e.reader)
	for _, query := range []string{"", "?view=list", "?branch=" + url.QueryEscape(nastyBranch), "?author=" +
		url.QueryEscape(nasty)} {
		p := w.get(apiPath + query).want(200)
		p.noMarkup()
		if len(p.body) > 60_000 {
			t.Errorf("%s: the page has %d bytes", query, len(p.body))
		}
	}
	w.get(apiPath + "?state=" + url.QueryEscape(nasty)).want(422).noMarkup()
}

const (
	nasty       = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>{{.}}&amp;`
	nastyBranch = `"'><img/src=x><u>main</u>&amp;` // valid in git
)

// hostile registers commits with hostile texts. It returns the one with an
// attestation.
func (e *env) hostile() string {
	e.t.Helper()
	s := e.signer(`cn=\<i\>ci\</i\>\,\"x\",ou=build,o=acme`)
	e.push(commitID(1), ledger.Registration{
		Branch: nastyBranch, Target: nastyBranch, Author: ledger.Author{Name: nasty, Email: "<b>@acme.example"},
		Message: nasty + "\n\n" + nasty,
		Changes: []radar.Change{lineEdit("<em>.go", 1)},
	})
	e.push(commitID(2), ledger.Registration{
		Branch: strings.Repeat("b", 200), Author: ledger.Author{Name: "\u202egnp.exe 🦊" + strings.Repeat("n", 200)},
		Message: strings.Repeat("👩‍👩‍👧 ", 1500) + "\n\n\u202e" + strings.Repeat("w", 10_000),
		Changes: []radar.Change{lineEdit("<em>.go", 1)},
	})
	e.attest(s, commitID(1), "test:go", ledger.Fail)
	return commitID(1)
}

// noMarkup checks that no text of the page became an element.
func (p page) noMarkup() {
	p.t.Helper()
	for _, name := range []string{"img", "i", "b", "u", "em", "style"} {
		if len(p.elements(name)) > 0 {
			p.t.Errorf("%s: text became a %s element", p.what, name)
		}
	}
	for _, script := range p.elements("script") { // ours, without text
		if script.FirstChild != nil || !strings.HasPrefix(attribute(script, "src"), "/static/") {
			p.t.Errorf("%s: text became a script", p.what)
		}
	}
}

// The page of a repo says so if states are still to be derived again.
func TestRepoSaysThatItIsUnsettled(t *testing.T) {
	e := newEnv(t)
	const notice = "States are being derived again"
	contract := must.Get(policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"lint:*"}]}`)))(t)
	must.Get(e.db.SetPolicy(t.Context(), "acme", "api", contract, 0, "host"))(t)
	b := e.signIn(e.reader)
	if p := b.get(apiPath); strings.Contains(p.body, notice) {
		t.Error("the page says at once that states are being derived again")
	}

	e.clock.advance(ledger.UnsettledAfter)
	if p := b.get(apiPath); !strings.Contains(p.body, notice) {
		t.Errorf("the page does not say that states are being derived again:\n%s", p.body)
	}
	must.OK(t, e.db.Settle(t.Context()))
	if p := b.get(apiPath); strings.Contains(p.body, notice) {
		t.Error("the page still says that states are being derived again")
	}
}
