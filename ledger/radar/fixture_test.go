package radar

import (
	"compress/gzip"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A radarFixture is a file in testdata: the open pull requests of a public repository,
// and the pairs that git cannot merge.
type radarFixture struct {
	Repo      string        `json:"repo"`
	Mainline  string        `json:"mainline"`
	Commits   []radarCommit `json:"commits"`
	Conflicts [][2]string   `json:"conflicts"`
	Skipped   [][2]string   `json:"skipped"`
}

type radarCommit struct {
	SHA     string   `json:"sha"`
	Base    string   `json:"base"`
	Changes []Change `json:"changes"`
}

func readRadarFixture(t testing.TB, name string) (f radarFixture) {
	t.Helper()
	file := must.Get(os.Open("testdata/" + name + ".json.gz"))(t)
	defer file.Close()
	text := must.Get(gzip.NewReader(file))(t)
	must.OK(t, json.UnmarshalRead(text, &f, json.RejectUnknownMembers(true)))
	return f
}

// HIGH means exactly that git could not merge a pair.
func TestRadarOnOpenPullRequests(t *testing.T) {
	for name, want := range map[string]string{
		"cobra-open": `
115 commits, 6555 pairs, 138 that git could not merge
HIGH precision 1.00 recall 1.00
HIGH     138
  same_lines       137
  add_add            1
MEDIUM  1570
  same_function    270
  near_lines        82
  same_file       1218
LOW       91
  sibling_files     91
none    4756`,
		"caddy-open": `
49 commits, 1176 pairs, 3 that git could not merge
HIGH precision 1.00 recall 1.00
HIGH       3
  same_lines         3
MEDIUM    42
  same_function     17
  near_lines         1
  same_file         24
LOW       92
  sibling_files     92
none    1039`,
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeFixture(t, readRadarFixture(t, name))
			t.Logf("%s\n%s", name, got)
			if got != strings.TrimSpace(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A radarTable counts pairs by correctness, level, and reason of the strongest path.
type radarTable struct {
	pairs, correct, wrong, missed int
	levels                        map[Level]int
	reasons                       map[Reason]int
}

func judgeFixture(t *testing.T, f radarFixture) string {
	git, skipped := bothWays(f.Conflicts), bothWays(f.Skipped)
	radar := New(nil)
	var prints []*Footprint

	for _, c := range f.Commits {
		if field, fault := CheckChanges(c.Changes); fault != "" {
			t.Errorf("%s: %s: %s", c.SHA, field, fault)
		}
		prints = append(prints, radar.Footprint(c.Changes))
	}
	table := radarTable{levels: map[Level]int{}, reasons: map[Reason]int{}}

	for i, a := range f.Commits {
		for j, b := range f.Commits[:i] {
			if pair := [2]string{a.SHA, b.SHA}; !skipped[pair] {
				o := Compare(prints[i], prints[j], Options{})
				if fault := table.add(o, git[pair]); fault != "" {
					t.Errorf("%v: %s: %+v", pair, fault, o.Paths)
				}
			}
		}
	}
	return fmt.Sprintf("%d commits, %s", len(f.Commits), table)
}

func bothWays(pairs [][2]string) map[[2]string]bool {
	set := map[[2]string]bool{}
	for _, p := range pairs {
		set[p], set[[2]string{p[1], p[0]}] = true, true
	}
	return set
}

// add counts a pair. It returns a fault if the radar and git disagree.
func (r *radarTable) add(o Overlap, conflict bool) (fault string) {
	r.pairs++
	r.levels[o.Level]++
	if len(o.Paths) > 0 {
		r.reasons[o.Paths[0].Reason]++
	}
	switch {
	case o.Level == High && conflict:
		r.correct++
	case o.Level == High:
		r.wrong++
		return "git merges them"
	case conflict:
		r.missed++
		return "git could not merge them"
	}
	return ""
}

func (r radarTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d pairs, %d that git could not merge\n", r.pairs, r.correct+r.missed)
	fmt.Fprintf(&b, "HIGH precision %.2f recall %.2f\n", float64(r.correct)/float64(r.correct+r.wrong),
		float64(r.correct)/float64(r.correct+r.missed))
	for _, l := range []Level{High, Medium, Low} {
		fmt.Fprintf(&b, "%-6s %5d\n", l, r.levels[l])
		for _, reason := range reasons {
			if reason.Level() == l && r.reasons[reason] > 0 {
				fmt.Fprintf(&b, "  %-14s %5d\n", reason, r.reasons[reason])
			}
		}
	}
	fmt.Fprintf(&b, "%-6s %5d", NoLevel, r.levels[NoLevel])
	return b.String()
}
