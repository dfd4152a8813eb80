package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

func radarEvent(paths ...RadarEventPath) RadarEvent {
	return RadarEvent{
		ID: "evt_4", Org: "acme", Repo: "api", Commit: "6e61", Level: High, Timestamp: 1795424400123, Paths: paths,
		Other: RadarOther{Commit: "8dd9", Branch: "feature/x", Author: Author{"Ada", "ada@acme.example"}},
	}
}

func TestRenderRadarEvent(t *testing.T) {
	const want = `{"id":"evt_4","type":"radar","org":"acme","repo":"api","commit":"6e61","level":"HIGH",` +
		`"other":{"commit":"8dd9","branch":"feature/x","author":{"name":"Ada","email":"ada@acme.example"}},` +
		`"paths":[{"path":"cmd/root.go","level":"HIGH","reason":"same_lines"}],"timestamp":"2026-11-23T09:00:00.123Z","paths_total":1}`
	if got := string(Render(radarEvent(RadarEventPath{"cmd/root.go", High, SameLines}))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// However many paths there are and however long, the body stays under 256 KiB,
// the strongest paths are kept, and it tells how many there were.
func TestRadarEventIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		path        func(i int) string
		total, kept int
	}{
		"one":                     {func(int) string { return "a" }, 1, 1},
		"100":                     {func(i int) string { return fmt.Sprintf("dir/%d", i) }, 100, 100},
		"10,000":                  {func(i int) string { return fmt.Sprintf("dir/%d", i) }, 10_000, 100},
		"long ones":               {func(i int) string { return fmt.Sprintf("%d/%s", i, strings.Repeat("p", 4000)) }, 10_000, 48},
		"long ones, all escapes":  {func(i int) string { return fmt.Sprintf("%d/%s", i, strings.Repeat("\x01", 4090)) }, 10_000, 7},
		"the longest that can be": {func(int) string { return strings.Repeat("\x01", 4096) }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := radarEvent()
			for i := range test.total {
				e.Paths = append(e.Paths, RadarEventPath{test.path(i), High, SameLines})
			}
			e.Other.Branch, e.Other.Author = strings.Repeat("b", 255), Author{strings.Repeat("\"", 320), strings.Repeat("\"", 320)}
			body := Render(e)
			if len(body) >= 256<<10 {
				t.Errorf("%d bytes", len(body))
			}
			var got RadarEvent
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			if got.PathsTotal != test.total || len(got.Paths) != test.kept || got.Paths[0].Path != test.path(0) {
				t.Errorf("%d paths of %d, want %d", len(got.Paths), got.PathsTotal, test.kept)
			}
		})
	}
}

func TestRadarEventKeepsATotalThatIsGiven(t *testing.T) {
	e := radarEvent(RadarEventPath{"a", High, AddAdd})
	e.PathsTotal = 300
	if !strings.HasSuffix(string(Render(e)), `"paths_total":300}`) {
		t.Errorf("got %s", Render(e))
	}
}

func TestStreamDataOfRadarEvent(t *testing.T) {
	const want = `{"commit":"6e61","level":"HIGH","other":{"commit":"8dd9","branch":"feature/x","author":{"name":"Ada","email":"ada@acme.example"}},` +
		`"paths":[{"path":"d/","level":"LOW","reason":"sibling_files"}],"repo":"api","timestamp":"2026-11-23T09:00:00.123Z","paths_total":1}`
	got, err := StreamData(EventRadar, Render(radarEvent(RadarEventPath{"d/", Low, SiblingFiles})))
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestRadarRecordsAreJSON(t *testing.T) {
	pair := RadarPair{
		Level: High, Since: 1795424400123, SameAuthor: true, PathsTotal: 1,
		Commit: RadarCommit{SHA: "6e61", Branch: "x", Author: Author{"Ada", ""}, Subject: "Count"},
		Other:  RadarCommit{SHA: "8dd9"},
		Paths:  []RadarPath{{"a.go", High, SameLines, RadarRanges{[]LineRange{{5, 1}}, nil}}},
	}
	for name, test := range map[string]struct {
		record any
		want   string
	}{
		"a pair": {pair, `{"level":"HIGH","since":"2026-11-23T09:00:00.123Z","commit":{"sha":"6e61","branch":"x","author":{"name":"Ada","email":""},"subject":"Count"},` +
			`"other":{"sha":"8dd9"},"same_author":true,"paths":[{"path":"a.go","level":"HIGH","reason":"same_lines","ranges":{"commit":[{"start":5,"lines":1}],"other":[]}}],"paths_total":1}`},
		"nothing": {RadarResult{}, `{"level":"none","overlaps":[],"truncated":false}`},
		"a question": {RadarQuery{Commit: "6e61", Registration: Registration{Branch: "x", Changes: []Change{}}},
			`{"commit":"6e61","branch":"x","changes":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(mustMarshal(test.record)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	wantFieldFault(t, RadarQuery{Commit: "6e61"}.Check(), "commit")
	wantFieldFault(t, RadarQuery{Registration: Registration{Changes: []Change{{Path: "../x", Status: "M"}}}}.Check(), "changes[0].path")
}

func TestSubject(t *testing.T) {
	for message, want := range map[string]string{
		"":                             "",
		"Count\n\nin base 16":          "Count",
		"\n\nCount \r\n":               "Count",
		strings.Repeat("s", 200):       strings.Repeat("s", 200),
		strings.Repeat("ü", 101):       strings.Repeat("ü", 100) + "…",
		"s" + strings.Repeat("ü", 100): "s" + strings.Repeat("ü", 99) + "…",
	} {
		if got := Subject(message); got != want {
			t.Errorf("Subject(%q) = %q, want %q", message, got, want)
		}
	}
}

func TestSameAuthor(t *testing.T) {
	for _, test := range []struct {
		a, b Author
		want bool
	}{
		{Author{"Ada", "ada@acme.example"}, Author{"A. L.", "Ada@Acme.example"}, true},
		{Author{"Ada", "ada@acme.example"}, Author{"Ada", "ada@other.example"}, false},
		{Author{"Ada", ""}, Author{"Ada", "ada@acme.example"}, true},
		{Author{"Ada", ""}, Author{"Bob", ""}, false},
		{Author{}, Author{}, false},
	} {
		if got := test.a.SameAs(test.b); got != test.want || test.b.SameAs(test.a) != got {
			t.Errorf("%v and %v: %t", test.a, test.b, got)
		}
	}
}

func TestRadarBlock(t *testing.T) {
	c := mustParse(t, `{"state":"ATTESTED","predicate":"test:*"}`)
	high := OpenOverlap{Level: High, Commit: "8dd9", Branch: "feature/x", Path: "cmd/root.go", Reason: SameLines}
	medium := OpenOverlap{Level: Medium, Commit: "0a0a", Path: "go.mod", Reason: SameFile}
	for name, test := range map[string]struct {
		block    Level
		overlaps []OpenOverlap
		want     State
		reason   string
	}{
		"no level blocks":         {NoLevel, []OpenOverlap{high}, Promotable, ""},
		"nothing overlaps":        {High, nil, Promotable, "no open overlap of level HIGH with a commit registered before"},
		"a lower level":           {High, []OpenOverlap{medium}, Promotable, "no open overlap of level HIGH with a commit registered before"},
		"nothing of many levels":  {Low, nil, Promotable, "no open overlap of level LOW or above with a commit registered before"},
		"the level that blocks":   {High, []OpenOverlap{medium, high}, Attested, "overlaps with what was registered before: HIGH with 8dd9 of feature/x at cmd/root.go (same_lines): rebase onto it once it has landed, and push anew"},
		"that and a higher level": {Medium, []OpenOverlap{medium, high}, Attested, "overlaps with what was registered before: HIGH with 8dd9 of feature/x at cmd/root.go (same_lines); MEDIUM with 0a0a at go.mod (same_file): rebase onto it once it has landed, and push anew"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Radar.Block = test.block
			f := attested(said(ci, "test:go", Pass))
			f.Overlaps = test.overlaps
			d := c.Derive(f, policyNow)
			if d.State != test.want {
				t.Errorf("state %s, want %s", d.State, test.want)
			}
			last := d.Requirements[len(d.Requirements)-1]
			if test.reason != "" && (last.Predicate != "radar:"+test.block.String() || last.State != Promotable || last.Reason != test.reason) {
				t.Errorf("got %+v, want the reason %q", last, test.reason)
			}
			f.Branch, f.Target = "main", "main"
			if d := c.Derive(f, policyNow); d.State != Promotable || test.block != NoLevel && d.Requirements[len(d.Requirements)-1].Applies {
				t.Errorf("a commit of its target branch is %s, %+v", d.State, d.Requirements)
			}
			if f.Deployed = true; c.Derive(f, policyNow).State != Deployed {
				t.Error("what is DEPLOYED does not stay so")
			}
			if c.Radar.Enabled = false; len(c.Derive(f, policyNow).Requirements) != 1 {
				t.Error("it is told of a radar that is off")
			}
			c.Radar.Enabled = true
		})
	}
}

func TestWhatTheRadarSeesWithOtherSettings(t *testing.T) {
	now := RadarSettings{Enabled: true, Ignore: []string{"go.sum"}, MaxAge: Duration(time.Hour)}
	for name, test := range map[string]struct {
		change func(*RadarSettings)
		all    bool
	}{
		"the same":               {func(*RadarSettings) {}, true},
		"other events":           {func(r *RadarSettings) { r.Notify, r.Block = High, Low }, true},
		"less age":               {func(r *RadarSettings) { r.MaxAge-- }, true},
		"more age: older ones":   {func(r *RadarSettings) { r.MaxAge++ }, false},
		"other paths":            {func(r *RadarSettings) { r.Ignore = []string{"go.mod"} }, false},
		"on, after it was off":   {func(r *RadarSettings) { r.Enabled = false }, false},
		"more paths than before": {func(r *RadarSettings) { r.Ignore = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := now
			test.change(&other)
			if got := now.SeesAll(other); got != test.all {
				t.Errorf("sees all: %t, want %t", got, test.all)
			}
		})
	}
}

// typicalRecord is one of 20 files and 60 hunks.
func typicalRecord(side int) []Change {
	var changes []Change
	for f := range 20 {
		c := edited(fmt.Sprintf("services/payments/%d/handler.go", f), f*10+side%2, 1000+f*10+side)
		for h := range 3 {
			hunk := put(100*h+10+side*7, 6, a1).in(fmt.Sprintf("func (s *Server) handle%d(w http.ResponseWriter, r *http.Request) {", h))
			for g := range hunk.Far {
				n := ((side*20+f)*3+h)*7 + g + 1
				hunk.Far[g], hunk.Near[g] = fmt.Sprintf("%016x", n*0x9e3779b9), fmt.Sprintf("%016x", n*0x85ebca6b)
			}
			c.Hunks = append(c.Hunks, hunk)
		}
		changes = append(changes, c)
	}
	return changes
}

func BenchmarkRadar(b *testing.B) {
	r := RadarSettings{Ignore: []string{"**/go.sum", "docs/**", "*.lock"}}.Radar()
	record := typicalRecord(0)
	one, sameBase, otherBase := r.Footprint(record), r.Footprint(typicalRecord(2)), r.Footprint(typicalRecord(1))
	apart := r.Footprint([]Change{edited("elsewhere/f", 1, 2)})
	b.Run("footprint", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Footprint(record)
		}
	})
	packed := []PackedChange{AppendPacked(nil, &record[0])}
	b.Run("unpack-one-path", func(b *testing.B) {
		b.ReportAllocs()
		b.ReportMetric(float64(len(packed[0])), "bytes")
		for b.Loop() {
			r.FootprintOfPacked(packed)
		}
	})
	for _, test := range []struct {
		name  string
		other *Footprint
	}{{"compare-same-base", sameBase}, {"compare-other-base", otherBase}, {"compare-nothing-shared", apart}} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Compare(one, test.other, CompareOptions{})
			}
		})
	}
	b.Run("compare-one-path", func(b *testing.B) {
		o := CompareOptions{Only: []string{"services/payments/7/handler.go"}}
		b.ReportAllocs()
		for b.Loop() {
			Compare(one, otherBase, o)
		}
	})
}
