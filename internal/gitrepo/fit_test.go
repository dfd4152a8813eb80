package gitrepo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A large change record is cut to the size that a server accepts, evenly across its
// hunks.
func TestFit(t *testing.T) {
	record := func(paths, hunks, gaps int) []radar.Change {
		id, hash := strings.Repeat("a", 40), strings.Repeat("b", 16)
		changes := make([]radar.Change, paths)
		for i := range changes {
			changes[i] = radar.Change{Path: fmt.Sprintf("some/folder/file %d", i), Status: "M", OldMode: "100644",
				Mode: "100644", OldBlob: id, Blob: id}
			for range hunks {
				changes[i].Hunks = append(changes[i].Hunks, radar.Hunk{Start: 100_000, Lines: gaps - 1, Added: 100_000, Text: hash,
					Function: `func (s *Server) Say("something") {`,
					Near:     slices.Repeat([]string{hash}, gaps), Far: slices.Repeat([]string{hash}, gaps)})
			}
		}
		return changes
	}

	for name, test := range map[string]struct {
		changes []radar.Change
		gaps    int // per hunk, after the cut; -1: no record
	}{
		"no changes":                       {[]radar.Change{}, 0},
		"an ordinary commit":               {record(500, 3, 4), 4},
		"100 rewritten files":              {record(100, 1, 512), 512},
		"1,000 rewritten files":            {record(1000, 1, 512), 64},
		"one line in each of 8,000 files":  {record(8000, 1, 2), 1},
		"more hunks than a server accepts": {record(9000, 3, 2), -1},
		"10,000 files without hunks":       {record(10_000, 0, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := fit(test.changes)
			if (got == nil) != (test.gaps < 0) {
				t.Fatalf("has a record: %v", got != nil)
			}
			for _, c := range got {
				for _, h := range c.Hunks {
					if len(h.Near) != test.gaps || len(h.Far) != test.gaps {
						t.Fatalf("%d near and %d far hashes, want %d", len(h.Near), len(h.Far), test.gaps)
					}
				}
			}
			text, err := json.Marshal(got)
			if err != nil || len(text) > maxRecord {
				t.Errorf("%d bytes of JSON (%v)", len(text), err)
			}
		})
	}
}

// A commit that changes more paths than a server accepts has no change record, and
// the reason says why.
func TestTooManyPaths(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	most, more := gitrepotest.Tree{}, gitrepotest.Tree{}
	for i := range maxChanges + 1 {
		path := fmt.Sprintf("folder-%d/file-%d", i%100, i)
		if more[path] = gitrepotest.TextFile("x\n"); i > 0 {
			most[path] = more[path]
		}
	}
	g, commits := newGitRepo(t, nil, gitrepotest.Tree{}, most, more)
	objects, err := g.objects(t.Context())
	must.OK(t, err)
	defer objects.close()
	for i, want := range map[int]error{1: nil, 2: errTooManyPaths} {
		changes, reason, err := g.changes(t.Context(), objects, commits[0], commits[i])
		if err != nil || reason != want || (reason == nil) != (len(changes) == maxChanges) {
			t.Errorf("%d changes, reason %v (%v), want %v", len(changes), reason, err, want)
		}
	}
}
