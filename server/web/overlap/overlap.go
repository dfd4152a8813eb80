// Package overlap shows an overlap of two commits from the side of one of them,
// with the places and reasons in words.
package overlap

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
)

const (
	pathsShown  = 5 // of an overlap
	rangesShown = 3 // ranges of lines of one side at a path
)

// An Overlap is an overlap of a commit with another, from its side.
type Overlap struct {
	Level ledger.Level
	Since ledger.Time
	// Commit is the commit itself.
	Commit ledger.RadarCommit
	// Other is the commit that it overlaps with.
	Other ledger.RadarCommit
	// First reports whether Other was registered first, so that it has priority.
	First      bool
	SameAuthor bool
	Paths      []Path
	MorePaths  int
}

// A Path is a path at which two commits overlap.
type Path struct {
	Path   string
	Level  ledger.Level
	Reason string
	// Ours and Theirs are the lines of each side; empty if the overlap is not about
	// lines.
	Ours, Theirs string
}

// Of returns a pair from the side of the commit.
func Of(sha string, pair ledger.RadarPair) Overlap {
	o := Overlap{Level: pair.Level, Since: pair.Since, Commit: pair.Commit, Other: pair.Other, First: true, SameAuthor: pair.SameAuthor}
	if pair.Commit.SHA != sha {
		o.Commit, o.Other, o.First = pair.Other, pair.Commit, false
	}
	for _, p := range pair.Paths[:min(len(pair.Paths), pathsShown)] {
		ours, theirs := p.Ranges.Commit, p.Ranges.Other
		if !o.First {
			ours, theirs = theirs, ours
		}
		o.Paths = append(o.Paths, Path{format.Clip(p.Path, 300), p.Level, reasonInWords(p.Reason), linesInWords(ours), linesInWords(theirs)})
	}
	o.MorePaths = max(pair.PathsTotal, len(pair.Paths)) - len(o.Paths)
	return o
}

// linesInWords lists the first ranges of lines.
func linesInWords(ranges []ledger.LineRange) string {
	var words []string
	for i, r := range ranges {
		if i == rangesShown {
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

// reasonInWords returns why two commits overlap at a path.
func reasonInWords(r ledger.RadarReason) string {
	if words, ok := reasonWords[r]; ok {
		return words
	}
	return string(r) // of a newer server
}
