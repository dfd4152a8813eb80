package demo

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// Nobody in the list can be mistaken for another: a review of one's own commit would not
// count.
func TestPeopleList(t *testing.T) {
	list := peopleList{names: make(map[string]bool)}
	for _, a := range []ledger.Author{
		{Name: "Ann", Email: "ann@example.org"},
		{Name: "ANN", Email: "ann@other.example"},
		{Name: "Bob", Email: "Ann@example.org"},
		{Name: "ann@example.org", Email: "cid@example.org"},
		{Name: "Dee", Email: ""},
		{Name: "", Email: "dee@example.org"},
		{Name: "D\u200bee", Email: "dee@example.org"},
		{Name: "Eve, Jr.", Email: "eve@example.org"},
	} {
		list.add(a)
	}
	for range castSize {
		for _, a := range samplePeople() {
			list.add(a)
		}
	}

	var names []string
	for _, a := range list.people {
		names = append(names, a.Name)
	}
	const want = "Ann|Eve, Jr.|Mara Lindqvist|Tomasz Zieliński|Ines Duarte|Jonas Weber"
	if got := strings.Join(names, "|"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRepoName(t *testing.T) {
	for folder, want := range map[string]string{
		"api": "api", "My Project": "My-Project", "été": "-t-", "..": "repo", "/": "repo",
		strings.Repeat("a", 120): strings.Repeat("a", 90),
	} {
		if got := repoName(folder); got != want || ledger.CheckRepo(got+"-deploy") != nil {
			t.Errorf("repoName(%q) = %q, want %q", folder, got, want)
		}
	}
}

func TestBranchName(t *testing.T) {
	for subject, want := range map[string]string{
		"fix(api): don't charge twice":                "dont-charge-twice",
		"Round rates half up, as the carriers do":     "round-rates-half-up-as-the",
		"This is a sentence, and not a prefix: of it": "this-is-a-sentence-and-not-a",
		"été":                    "t",
		"修正":                     "",
		strings.Repeat("x", 100): "",
	} {
		if got := branchName(subject); got != want {
			t.Errorf("branchName(%q) = %q, want %q", subject, got, want)
		}
	}
}

// A work tree with too few files of its own gets those of the sample.
func TestSpots(t *testing.T) {
	all := serviceFiles()
	at, ok := all.spots()
	if !ok || at.busy != "rates/quote.go" || at.sibling != "rates/zones.go" || at.doomed != "labels/format.go" {
		t.Errorf("spots of the sample: %+v, enough: %t", at, ok)
	}
	for _, path := range append(at.others, at.doomed) {
		if strings.HasPrefix(path, "rates/") {
			t.Errorf("%s is in the folder of the busy file", path)
		}
	}

	few := maps.Clone(all)
	for _, path := range at.others[minOthers-1:] {
		delete(few, path)
	}
	if _, ok := few.spots(); ok {
		t.Errorf("%d files are enough", len(few))
	}
	for _, path := range []string{at.busy, at.doomed} { // one is not enough, the other one is
		text := files{path: all[path], "a/b.go": "package a\n"}
		if _, ok := text.spots(); ok {
			t.Errorf("%s is enough", path)
		}
	}
}

// The clock never goes back, and never passes the system clock.
func TestClock(t *testing.T) {
	c := newClock(day)
	start := c.now()
	c.advanceTo(start.Add(-hour))
	if got := c.now().Sub(start); got < 0 || got > hour {
		t.Errorf("the clock moved by %v", got)
	}
	c.advanceTo(start.Add(2 * hour))
	if got := c.now().Sub(start); got < 2*hour || got > 3*hour {
		t.Errorf("the clock moved by %v, want 2 hours", got)
	}
	if wall := c.now().Round(0).Sub(start.Round(0)); wall < 2*hour || wall > 3*hour {
		t.Errorf("the wall clock moved by %v, want 2 hours", wall)
	}
	c.advanceTo(time.Now().Add(hour))
	if got := c.lag.Load(); got != 0 {
		t.Errorf("the clock is %v behind", time.Duration(got))
	}
}
