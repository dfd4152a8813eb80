package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func radarEvent(paths ...RadarEventPath) RadarEvent {
	return RadarEvent{
		ID: "evt_4", Org: "acme", Repo: "api", Commit: "6e61", Level: radar.High, Timestamp: 1795424400123, Paths: paths,
		Other: RadarOther{Commit: "8dd9", Branch: "feature/x", Author: Author{"Ada", "ada@acme.example"}},
	}
}

func TestRenderRadarEvent(t *testing.T) {
	const want = `{"id":"evt_4","type":"radar","org":"acme","repo":"api","commit":"6e61","level":"HIGH",` +
		`"other":{"commit":"8dd9","branch":"feature/x","author":{"name":"Ada","email":"ada@acme.example"}},` +
		`"paths":[{"path":"cmd/root.go","level":"HIGH","reason":"same_lines"}],"timestamp":"2026-11-23T09:00:00.123Z",` +
		`"paths_total":1}`
	if got := string(Render(radarEvent(RadarEventPath{"cmd/root.go", radar.High, radar.SameLines}))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The body stays below 256 KiB for any number and length of paths. It has the strongest
// paths and the total.
func TestRadarEventIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		path        func(i int) string
		total, want int
	}{
		"one":    {func(int) string { return "a" }, 1, 1},
		"100":    {func(i int) string { return fmt.Sprintf("dir/%d", i) }, 100, 100},
		"10,000": {func(i int) string { return fmt.Sprintf("dir/%d", i) }, 10_000, 100},
		"long paths": {func(i int) string { return fmt.Sprintf("%d/%s", i, strings.Repeat("p", 4000)) }, 10_000,
			48},
		"long paths of escapes": {func(i int) string { return fmt.Sprintf("%d/%s", i, strings.Repeat("\x01", 4090)) },
			10_000, 7},
		"the longest path": {func(int) string { return strings.Repeat("\x01", 4096) }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := radarEvent()
			for i := range test.total {
				e.Paths = append(e.Paths, RadarEventPath{test.path(i), radar.High, radar.SameLines})
			}
			e.Other.Branch, e.Other.Author = strings.Repeat("b", 255),
				Author{strings.Repeat("\"", 320), strings.Repeat("\"", 320)}

			body := Render(e)
			if len(body) >= 256<<10 {
				t.Errorf("%d bytes", len(body))
			}
			var got RadarEvent
			must.OK(t, json.Unmarshal(body, &got))
			if got.PathsTotal != test.total || len(got.Paths) != test.want || got.Paths[0].Path != test.path(0) {
				t.Errorf("got %d paths of %d, want %d of %d", len(got.Paths), got.PathsTotal, test.want, test.total)
			}
		})
	}
}

func TestRadarEventPreservesTotal(t *testing.T) {
	e := radarEvent(RadarEventPath{"a", radar.High, radar.AddAdd})
	e.PathsTotal = 300
	if !strings.HasSuffix(string(Render(e)), `"paths_total":300}`) {
		t.Errorf("got %s", Render(e))
	}
}

func TestRadarJSON(t *testing.T) {
	pair := RadarPair{
		Level: radar.High, Since: 1795424400123, SameAuthor: true, PathsTotal: 1,
		Commit: RadarCommit{SHA: "6e61", Branch: "x", Author: Author{"Ada", ""}, Subject: "Count"},
		Other:  RadarCommit{SHA: "8dd9"},
		Paths: []radar.Path{
			{Path: "a.go", Level: radar.High, Reason: radar.SameLines,
				Ranges: radar.Ranges{Commit: []radar.LineRange{{Start: 5, Lines: 1}}, Other: nil}}},
	}

	for name, test := range map[string]struct {
		record any
		want   string
	}{
		"a pair": {pair, `{"level":"HIGH","since":"2026-11-23T09:00:00.123Z","commit":{"sha":"6e61","branch":"x",` +
			`"author":{"name":"Ada","email":""},"subject":"Count"},` +
			`"other":{"sha":"8dd9"},"same_author":true,"paths":[{"path":"a.go","level":"HIGH","reason":"same_lines",` +
			`"ranges":{"commit":[{"start":5,"lines":1}],"other":[]}}],"paths_total":1}`},
		"an empty result": {RadarResult{}, `{"level":"none","overlaps":[],"truncated":false}`},
		"a query": {RadarQuery{Commit: "6e61", Registration: Registration{Branch: "x", Changes: []radar.Change{}}},
			`{"commit":"6e61","branch":"x","changes":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(text.JSON(test.record)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	wantFieldFault(t, RadarQuery{Commit: "6e61"}.Check(), "commit")
	wantFieldFault(t, RadarQuery{Registration: Registration{Changes: []radar.Change{{Path: "../x", Status: "M"}}}}.Check(),
		"changes[0].path")
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
		{Author{"-", "-"}, Author{"-", "-"}, false}, // both unknown
		{Author{"Ada", "-"}, Author{"Ada", "ada@acme.example"}, true},
	} {
		if got := test.a.SameAs(test.b); got != test.want || test.b.SameAs(test.a) != got {
			t.Errorf("%v and %v: got %t, want %t", test.a, test.b, got, test.want)
		}
	}
}
