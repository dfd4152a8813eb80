package web

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
)

const (
	overlapsShown     = 5 // of a commit
	overlapPathsShown = 5 // of an overlap
	overlapLinesShown = 3 // ranges of lines of one side at one path
)

// An overlap is one of a commit with another, seen from its side.
type overlap struct {
	Level ledger.Level
	Since ledger.Time
	// Commit is the commit itself.
	Commit ledger.RadarCommit
	// Other is the commit that it overlaps with.
	Other ledger.RadarCommit
	// First tells that Other was registered first, so that it may go first.
	First      bool
	SameAuthor bool
	Paths      []overlapPath
	MorePaths  int
}

// An overlapPath is a place where two commits overlap.
type overlapPath struct {
	Path   string
	Level  ledger.Level
	Reason string
	// Ours and Theirs are the lines concerned; empty where it is not about lines.
	Ours, Theirs string
}

// overlapsOf returns the strongest overlaps of a commit, and how many more
// there are.
func overlapsOf(v *visit, c ledger.Commit) ([]overlap, int, error) {
	total := 0
	for _, n := range c.Overlaps {
		total += n
	}
	if total == 0 {
		return nil, 0, nil
	}
	page, err := v.api.OverlapsPage(v.ctx(), v.org, v.repo, client.OverlapFilter{Commit: c.SHA}, client.Query{Limit: overlapsShown})
	if err != nil {
		return nil, 0, err
	}
	var overlaps []overlap
	for _, pair := range page.Data {
		overlaps = append(overlaps, overlapOf(c.SHA, pair))
	}
	return overlaps, max(total-len(overlaps), 0), nil
}

// overlapOf looks at a pair from the side of the commit.
func overlapOf(sha string, pair ledger.RadarPair) overlap {
	o := overlap{Level: pair.Level, Since: pair.Since, Commit: pair.Commit, Other: pair.Other, First: true, SameAuthor: pair.SameAuthor}
	if pair.Commit.SHA != sha {
		o.Commit, o.Other, o.First = pair.Other, pair.Commit, false
	}
	for _, p := range pair.Paths[:min(len(pair.Paths), overlapPathsShown)] {
		ours, theirs := p.Ranges.Commit, p.Ranges.Other
		if !o.First {
			ours, theirs = theirs, ours
		}
		o.Paths = append(o.Paths, overlapPath{format.Clip(p.Path, 300), p.Level, reasonInWords(p.Reason), linesInWords(ours), linesInWords(theirs)})
	}
	o.MorePaths = max(pair.PathsTotal, len(pair.Paths)) - len(o.Paths)
	return o
}

// linesInWords names the first ranges of lines.
func linesInWords(ranges []ledger.LineRange) string {
	var words []string
	for i, r := range ranges {
		if i == overlapLinesShown {
			words = append(words, fmt.Sprintf("%d more", len(ranges)-i))
			break
		}
		switch {
		case r.Lines == 0:
			words = append(words, fmt.Sprintf("behind %d", r.Start))
		case r.Lines == 1:
			words = append(words, fmt.Sprint(r.Start))
		default:
			words = append(words, fmt.Sprintf("%d–%d", r.Start, r.Start+r.Lines-1))
		}
	}
	return strings.Join(words, ", ")
}

var reasonWords = map[ledger.RadarReason]string{
	ledger.SameLines:     "both change the same lines",
	ledger.DeleteEdit:    "one deletes what the other changes",
	ledger.RenameRename:  "both rename it, to different names",
	ledger.RenameDelete:  "one renames what the other deletes",
	ledger.AddAdd:        "both make it, with different contents",
	ledger.BinaryBoth:    "both change a binary file",
	ledger.TypeChange:    "its type or mode changes",
	ledger.DirectoryFile: "one makes a file where the other has a directory",
	ledger.SameFunction:  "both change the same function",
	ledger.NearLines:     "both change lines close to each other",
	ledger.SameFile:      "both change the file",
	ledger.SiblingFiles:  "both change files of the directory",
}

// reasonInWords tells why two commits overlap at a path.
func reasonInWords(r ledger.RadarReason) string {
	if words, ok := reasonWords[r]; ok {
		return words
	}
	return string(r) // of a newer server
}
