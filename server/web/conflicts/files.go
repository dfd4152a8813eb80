package conflicts

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/commitview"
)

const (
	filesShown   = 20 // on a page
	touchesShown = 4  // commits of a file
)

// A file is a path at which commits overlap.
type file struct {
	Path  string
	Level radar.Level // of the strongest overlap there
	// Reason says why they overlap there most strongly.
	Reason string
	// Commits are the first commits that change the file; More counts the others.
	Commits []ledger.RadarCommit
	More    int
	Pairs   int
}

// filesOf returns the paths of pairs: those with the strongest overlaps first, then those
// that most commits change.
func filesOf(pairs []ledger.RadarPair) []file {
	index := make(map[string]int)
	seen := make(map[[2]string]bool) // path and commit
	var files []file
	for _, p := range pairs {
		for _, path := range p.Paths {
			i, ok := index[path.Path]
			if !ok {
				i = len(files)
				index[path.Path] = i
				files = append(files, file{Path: path.Path})
			}
			f := &files[i]
			f.Pairs++
			if path.Level > f.Level {
				f.Level, f.Reason = path.Level, commitview.ReasonInWords(path.Reason)
			}
			for _, side := range []ledger.RadarCommit{p.Other, p.Commit} {
				if key := [2]string{path.Path, side.SHA}; !seen[key] {
					seen[key] = true
					f.Commits = append(f.Commits, side)
				}
			}
		}
	}

	slices.SortStableFunc(files, func(a, b file) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(len(b.Commits), len(a.Commits)),
			cmp.Compare(b.Pairs, a.Pairs), cmp.Compare(a.Path, b.Path))
	})
	for i := range files {
		f := &files[i]
		f.More = max(len(f.Commits)-touchesShown, 0)
		f.Commits = f.Commits[:len(f.Commits)-f.More]
	}
	return files
}
