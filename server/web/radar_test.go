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
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// branch pushes the n-th commit as the tip of a branch, one second later.
func (e *env) branch(n int, name, author string, changes ...radar.Change) {
	e.t.Helper()
	e.clock.advance(time.Second)
	e.push(commitID(n), ledger.Registration{
		Branch: name, Author: ledger.Author{Name: author, Email: author + "@acme.example"}, Message: "Work on " + name +
			"\n\nat length", Changes: changes,
	})
}

// pairsOf returns the overlaps of the page in their order, each as "LEVEL later/earlier".
// Those with commits of the same author, which are folded, end with an asterisk.
func pairsOf(p page) string {
	var pairs []string
	for _, item := range p.elements("li", "class", "card") {
		later := ""
		for n := range item.Descendants() {
			if n.Data == "h3" && later == "" {
				later = textOf(n.FirstChild)
			}
			if n.Data != "details" || attribute(n, "class") != "pair" {
				continue
			}

			words := strings.Fields(textOf(n)) // LEVEL onto NAME …
			pair := words[0] + " " + later + "/" + words[2]
			for at := n.Parent; at != nil; at = at.Parent {
				if attribute(at, "class") == "own" {
					pair += "*"
				}
			}
			pairs = append(pairs, pair)
		}
	}
	return strings.Join(pairs, ", ")
}

// isOpen reports whether a details element is open.
func isOpen(n *html.Node) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "open" })
}

const radarPath = "/orgs/acme/repos/api/radar"

func TestRadarPage(t *testing.T) {
	e := newEnv(t)
	e.branch(1, "one", "ada", lineEdit("cmd/root.go", 100))
	e.branch(2, "two", "grace", lineEdit("cmd/serve.go", 1), lineEdit("cmd/root.go", 110))
	e.branch(3, "three", "ada", lineEdit("cmd/root.go", 101))
	e.branch(4, "four", "ken", lineEdit("docs/a.md", 1))
	e.branch(5, "five", "ken", lineEdit("docs/b.md", 1))
	w := e.signIn(e.reader)

	const all = "MEDIUM three/two, HIGH three/one*, MEDIUM two/one, LOW five/four*"
	p := w.get(radarPath).want(200).has(
		"Overlaps at LOW or above create an event.",
		"HIGH 1 overlap MEDIUM 2 overlaps LOW 1 overlap", "Merge first: one (1 waits)",
		"three ada · Work on three", "1 overlap with commits of the same author",
		"HIGH onto one cmd/root.go Has priority api@ "+commitID(1)[:12]+" by ada · Work on one",
		"cmd/root.go both change the same lines: 101 (must rebase) · 100 (has priority)",
		"docs/ both change files in this directory", "Close, no conflict yet two grace · Work on two MEDIUM near one",
		"Same author 1 commit that overlaps only with commits of the same author five ken",
	).hasNot("at length", "more in the list", "next page", "Open on the forge")
	if got := pairsOf(p); got != all {
		t.Errorf("overlaps: %s, want %s", got, all)
	}
	if live := attribute(p.elements("main")[0], "data-live"); !strings.Contains(live, "repo=api") ||
		!strings.Contains(live, "radar") {
		t.Errorf("data-live: %q", live)
	}
	if dots, arcs := len(p.elements("g", "class", "node l-high"))+len(p.elements("g", "class", "node l-medium"))+len(
		p.elements("g", "class", "node l-low")), len(p.elements("path", "class", "edge l-high"))+len(
		p.elements("path", "class", "edge l-medium"))+len(p.elements("path", "class", "edge l-low")); dots != 5 || arcs != 4 {
		t.Errorf("the diagram has %d commits and %d overlaps, want 5 and 4", dots, arcs)
	}
	if label := attribute(p.elements("svg", "class", "picture")[0], "aria-label"); !strings.HasPrefix(
		label, "Arc diagram of 5 commits and 4 overlaps.") {
		t.Errorf("label of the diagram: %q", label)
	}

	if fold := p.elements("details", "id", "own"); len(fold) != 1 || isOpen(fold[0]) {
		t.Error("the commits that overlap only with their author's are not folded")
	}
	p = w.get(radarPath+"?level=HIGH").want(200).hasNot("Who must rebase", "Merge first")
	if fold := p.elements("details", "id", "own"); len(fold) != 1 || !isOpen(fold[0]) {
		t.Error("the only section of the page is folded")
	}

	for query, want := range map[string]string{
		"?level=HIGH":                                "HIGH three/one*",
		"?level=MEDIUM&branch=one":                   "MEDIUM two/one",
		"?branch=two":                                "MEDIUM two/one, MEDIUM three/two",
		"?commit=" + commitID(5):                     "LOW five/four*",
		"?level=&branch=&commit=" + commitID(1)[:39]: "",
		"?commit=+" + commitID(1) + "+":              "MEDIUM two/one, HIGH three/one*",
		"?commit=" + commitID(1) + "&branch=two":     "",
	} {
		p := w.get(radarPath + query)
		if got := pairsOf(p); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if len(p.elements("a", "href", radarPath)) < 2 { // the tab and the filter
			t.Errorf("%s: no link that clears the filter", query)
		}
	}
	w.get(radarPath+"?commit="+commitID(1)[:39]).want(409).has("Commit not found", "several commits")
	if value := attribute(w.get(radarPath+"?commit="+commitID(1)).elements("input", "id", "field-commit")[0],
		"value"); value != commitID(1) {
		t.Errorf("the commit in the filter: %q", value)
	}
}

// Pages without overlaps show why, and what to do next.
func TestRadarWithoutOverlaps(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	w.get(radarPath).want(200).has("No commits in flight", "ledgerd commit register acme/api HEAD")
	e.branch(1, "one", "ada", lineEdit("cmd/root.go", 100))
	w.get(radarPath).want(200).has("No overlaps", "ledgerd radar acme/api --dry-run")
	w.get(radarPath+"?level=HIGH&branch=x/y&commit="+commitID(1)).want(200).
		has("No matching overlaps", "ledgerd radar acme/api --level HIGH --commit "+commitID(1)+" --branch x/y")
	w.get(radarPath + "?branch=" + url.QueryEscape("$(rm -rf ~)")).want(200).hasNot("--branch")
	w.get(radarPath+"?commit="+strings.Repeat("f", 40)).want(404).has(
		"Commit not found", "ledgerd commit list acme/api --in-flight", strings.Repeat("f", 40))
	w.get(radarPath+"?commit=HEAD").want(400).has(
		"Commit not found", `"HEAD" is not a commit ID (use 7 to 64 lower-case hex digits)`)
	w.get(radarPath + "?level=NONE").want(422).has(`"NONE" is not a level (use LOW, MEDIUM or HIGH)`)
	w.get(radarPath + "?cursor=x").want(400)
	w.get(radarPath + "?cursor=x&commit=" + commitID(1)).want(400).hasNot("Commit not found")
	w.get("/orgs/acme/repos/none/radar").want(404)

	w.post("/orgs/acme/repos/api/policy/edit", url.Values{"do": {"save"}, "etag": {etagOf(w)},
		"document": {`{"requirements":[],"radar":{"enabled":false}}`}}).want(303)
	if p := w.get(radarPath).want(200).has("Conflict Radar is off", "sets radar.enabled to false",
		"ledgerd policy apply acme/api -f policy.yaml"); len(p.elements("form", "class", "filters")) > 0 {
		t.Error("the page has a filter")
	}
}

// The diagram shows only some of hundreds of overlaps, and says so. The pages of
// the list have every overlap once.
func TestRadarManyOverlaps(t *testing.T) {
	e := newEnv(t)
	const commits = 30
	for n := range commits {
		e.branch(n, fmt.Sprintf("topic/item-%02d", n), "ada", lineEdit(fmt.Sprintf("shared/file-%d.go", n%3), 10+n))
	}

	w := e.signIn(e.reader)
	p := w.get(radarPath).want(200).has(" more in the list; next page for the rest")
	if texts := p.elements("text"); len(texts) > 18+30 {
		t.Errorf("the diagram has %d texts", len(texts))
	}
	if len(p.body) > 200<<10 {
		t.Errorf("the page has %d bytes", len(p.body))
	}

	seen := make(map[string]int)
	strongest := radar.High
	for pages := 0; ; pages++ {
		weakest := strongest
		for _, pair := range strings.Split(pairsOf(p), ", ") {
			level, err := radar.ParseLevel(strings.Fields(pair)[0])
			must.OK(t, err)
			if level > strongest {
				t.Fatalf("%s is on the page after one with level %s", pair, strongest)
			}
			weakest = min(weakest, level)
			seen[pair]++
		}
		strongest = weakest
		next := p.elements("a", "rel", "next")
		if len(next) == 0 {
			break
		}
		p = w.get(attribute(next[0], "href")).want(200)
		if pages > 100 {
			t.Fatal("the list does not end")
		}
	}

	if want := commits * (commits - 1) / 2; len(seen) != want {
		t.Errorf("%d overlaps on the pages, want %d", len(seen), want)
	}
	for pair, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", pair, n)
		}
	}
}

// If a commit has more overlaps than are stored, every page that counts or lists
// its overlaps says so.
func TestTruncatedOverlaps(t *testing.T) {
	e := newEnv(t)
	const limit = "only the 200 strongest per registration are kept"
	const crowd = radar.MaxPairs + 10
	for n := range crowd {
		e.branch(n, fmt.Sprintf("topic-%d", n), "ada", lineEdit(fmt.Sprintf("crowd/file-%d.go", n), 1))
	}
	e.branch(crowd, "last", "grace", lineEdit("crowd/file-3.go", 2), lineEdit("crowd/file-4.go", 9))
	w := e.signIn(e.reader)

	w.get(apiPath).want(200).has("HIGH 1 overlap MEDIUM 1 overlap LOW 198 overlaps " + limit)
	w.get(apiPath + "?view=list&branch=last").want(200).has("HIGH 1 overlap MEDIUM 1 overlap LOW 198 overlaps " + limit)
	w.get(apiPath + "?view=list&branch=topic-0").want(200).has("LOW 200 overlaps").hasNot(limit)
	w.get(commitPath(commitID(crowd))).want(200).has("195 more overlaps Weaker overlaps are not stored: " + limit)
	w.get(commitPath(commitID(0))).want(200).has("195 more overlaps").hasNot("Weaker overlaps")
	w.get("/orgs/acme").want(200).has("conflicts with topic-3, and perhaps others")

	for query, want := range map[string]string{
		"": "Weaker overlaps of last , topic-209 , topic-208 and 7 other commits are not stored: " +
			limit,
		"?branch=last":             "Weaker overlaps of last are not stored: " + limit,
		"?level=HIGH&branch=last":  "Weaker overlaps of last are not stored: " + limit,
		"?commit=" + commitID(205): "Weaker overlaps of topic-205 are not stored: " + limit,
	} {
		w.get(radarPath + query).want(200).has(want)
	}
	w.get(radarPath + "?branch=topic-0").want(200).hasNot("Weaker overlaps")
	w.get(radarPath+"?level=HIGH&branch=topic-205").want(200).
		has("No matching overlaps", "Weaker overlaps are not stored: "+limit)
	w.get(radarPath+"?level=HIGH&commit="+commitID(205)).want(200).
		has("No matching overlaps", "Weaker overlaps are not stored: "+limit)
	w.get(radarPath + "?level=HIGH&branch=topic-0").want(200).has("No matching overlaps").hasNot("Weaker overlaps")

	// Stored overlaps can close while others, not stored, remain.
	for n := range crowd {
		_, err := e.host.Withdraw(t.Context(), "acme", "api", commitID(n))
		must.OK(t, err)
	}
	w.get(commitPath(commitID(crowd))).want(200).has("None left. Weaker overlaps are not stored: " + limit)
}

// Names of branches must not become markup, and must fit into the diagram.
func TestRadarHostileNames(t *testing.T) {
	e := newEnv(t)
	const nasty = `</text><script>alert(1)</script>"'><img/src=x>`
	for n, name := range []string{nasty, strings.Repeat("界", 80), "\u202Egnp.exe", strings.Repeat("W", 255)} {
		e.push(commitID(n), ledger.Registration{Branch: name, Message: nasty,
			Author: ledger.Author{Name: nasty, Email: nasty}, Changes: []radar.Change{lineEdit("a"+nasty, 5+n%2)}})
	}
	p := e.signIn(e.reader).get(radarPath).want(200).has(nasty, "a"+nasty)
	if len(p.elements("img")) > 0 || len(p.elements("script")) != 1 {
		t.Error("text became an element")
	}
	for _, name := range p.elements("text") {
		if text := name.FirstChild.Data; len([]rune(text)) > 24 || strings.Count(text, "界") > 12 {
			t.Errorf("the diagram has the name %q", text)
		}
	}
}

// The files view has a row for each path, with everybody who changes it. Filters stay in the
// links of both views.
func TestRadarByFile(t *testing.T) {
	e := newEnv(t)
	e.branch(1, "one", "ada", lineEdit("cmd/root.go", 100))
	e.branch(2, "two", "grace", lineEdit("cmd/serve.go", 1), lineEdit("cmd/root.go", 110))
	e.branch(3, "three", "ken", lineEdit("cmd/root.go", 101), lineEdit("cmd/serve.go", 2))
	w := e.signIn(e.reader)

	p := w.get(radarPath + "?view=files").want(200)
	wantEqual(t, "files", p.texts("tr"), []string{
		"File Level Why Who changes it",
		"cmd/root.go HIGH both change the same lines two grace three ken one ada",
		"cmd/serve.go HIGH both change the same lines two grace three ken",
	})
	p = w.get(radarPath + "?view=files&level=HIGH&branch=one&cursor=").want(200).hasNot("cmd/serve.go")
	for _, at := range []string{"?branch=one&level=HIGH", "?branch=one&level=HIGH&view=files", "?view=files"} {
		if len(p.elements("a", "href", radarPath+at)) != 1 {
			t.Errorf("no link to %s", at)
		}
	}
	w.get(radarPath + "?view=files&level=LOW&branch=one").want(200).has("No matching overlaps")

	// Many files: the strongest are shown, and the page says that there are more.
	var changes []radar.Change
	for n := range 80 {
		changes = append(changes, lineEdit(fmt.Sprintf("many/%02d.go", n), 1))
	}
	for n, name := range []string{"four", "five"} {
		e.branch(10+n, name, name, changes[40*n:40*n+40]...)
		e.branch(20+n, name+"-too", name+"-too", lineEditsAt(changes[40*n:40*n+40], 2)...)
	}
	p = w.get(radarPath + "?view=files").want(200)
	if rows := len(p.elements("tr")); rows > 21 {
		t.Errorf("%d rows, want at most 21", rows)
	}
}

// lineEditsAt returns changes of the same files at another line.
func lineEditsAt(changes []radar.Change, line int) []radar.Change {
	var moved []radar.Change
	for _, c := range changes {
		moved = append(moved, lineEdit(c.Path, line))
	}
	return moved
}

// The order: first who waits for nobody; of those that can go at the same time, the one with
// the fewest conflicts, then the oldest.
func TestRebaseOrder(t *testing.T) {
	e := newEnv(t)
	e.branch(1, "base-a", "ada", lineEdit("a/x.go", 100))
	e.branch(2, "base-b", "bob", lineEdit("b/x.go", 100))
	e.branch(3, "last", "cid", lineEdit("a/x.go", 101), lineEdit("c/x.go", 100)) // onto base-a
	e.branch(4, "both", "dan", lineEdit("a/y.go", 1), lineEdit("b/x.go", 101))   // onto base-b
	e.branch(5, "chain", "eve", lineEdit("c/x.go", 101))                         // onto last
	e.branch(6, "twice", "fay", lineEdit("a/x.go", 99), lineEdit("b/x.go", 99))  // onto base-a and base-b

	p := e.signIn(e.reader).get(radarPath + "?level=HIGH").want(200).has("Merge first: base-b (2 wait) base-a (2 wait)")
	order := []string{}
	for _, n := range p.elements("h3") {
		order = append(order, strings.Fields(textOf(n))[0])
	}
	wantEqual(t, "order", order, []string{"last", "both", "twice", "chain"})
}

// Where the repo has a forge, commits and files have links to it.
func TestRadarLinksOut(t *testing.T) {
	e := newEnv(t)
	e.branch(1, "one", "ada", lineEdit("cmd/a b.go", 100))
	e.branch(2, "two", "bob", lineEdit("cmd/a b.go", 101))
	_, err := e.host.ChangeRepo(t.Context(), "acme", "api",
		ledger.RepoChange{WebURL: new("https://codeberg.org/acme/api")})
	must.OK(t, err)
	p := e.signIn(e.reader).get(radarPath).want(200)
	for _, at := range []string{"/commit/" + commitID(2), "/src/commit/" + commitID(2) + "/cmd/a%20b.go"} {
		links := p.elements("a", "href", "https://codeberg.org/acme/api"+at)
		if len(links) != 1 || attribute(links[0], "rel") != "noopener noreferrer" {
			t.Errorf("%d links to %s", len(links), at)
		}
	}
}
