package commitview

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/format"
)

const (
	pathsShown  = 5 // paths of an overlap
	rangesShown = 3 // line ranges of one side of a path
)

// A LevelCount is the number of overlaps of a level.
type LevelCount struct {
	Level radar.Level
	Pairs int
}

// LevelCounts returns the levels that occur, strongest first, from counts by their names.
func LevelCounts(byName map[string]int) []LevelCount {
	var counts []LevelCount
	for level := radar.High; level > radar.NoLevel; level-- {
		if n := byName[level.String()]; n > 0 {
			counts = append(counts, LevelCount{level, n})
		}
	}
	return counts
}

// An Overlap is an overlap of two commits from the side of one of them.
type Overlap struct {
	Level radar.Level
	Since ledger.Time
	// Commit is the commit whose side is shown.
	Commit ledger.RadarCommit
	// Other is the commit that it overlaps.
	Other ledger.RadarCommit
	// First reports whether Other was registered first and so has priority.
	First      bool
	SameAuthor bool
	Paths      []OverlapPath
	MorePaths  int
}

// An OverlapPath is a path at which two commits overlap.
type OverlapPath struct {
	Path   string
	Level  radar.Level
	Reason string
	// Ours and Theirs are the line ranges of each side, such as "3–7, 12". They are
	// empty if the overlap is not about lines.
	Ours, Theirs string
}

// SaysLines reports whether Reason says that the ranges are lines.
func (p OverlapPath) SaysLines() bool { return strings.HasSuffix(p.Reason, " lines") }

// OverlapOf returns a pair from the side of the commit with the given sha.
func OverlapOf(sha string, pair ledger.RadarPair) Overlap {
	o := Overlap{Level: pair.Level, Since: pair.Since, Commit: pair.Commit, Other: pair.Other, First: true,
		SameAuthor: pair.SameAuthor}
	if pair.Commit.SHA != sha {
		o.Commit, o.Other, o.First = pair.Other, pair.Commit, false
	}
	for _, p := range pair.Paths[:min(len(pair.Paths), pathsShown)] {
		ours, theirs := p.Ranges.Commit, p.Ranges.Other
		if !o.First {
			ours, theirs = theirs, ours
		}
		o.Paths = append(o.Paths, OverlapPath{format.Clip(p.Path, 300), p.Level, ReasonInWords(p.Reason), linesInWords(ours),
			linesInWords(theirs)})
	}
	o.MorePaths = max(pair.PathsTotal, len(pair.Paths)) - len(o.Paths)
	return o
}

// linesInWords lists the first rangesShown ranges and counts the others. A range
// without lines is an insertion after its start.
func linesInWords(ranges []radar.LineRange) string {
	var words []string
	for i, r := range ranges {
		if i == rangesShown {
			words = append(words, fmt.Sprintf("%d more", len(ranges)-i))
			break
		}
		switch {
		case r.Lines == 0:
			words = append(words, fmt.Sprintf("after %d", r.Start))
		case r.Lines == 1:
			words = append(words, fmt.Sprint(r.Start))
		default:
			words = append(words, fmt.Sprintf("%d–%d", r.Start, r.Start+r.Lines-1))
		}
	}
	return strings.Join(words, ", ")
}

var reasonWords = map[radar.Reason]string{
	radar.SameLines:     "both change the same lines",
	radar.DeleteEdit:    "one deletes it, the other changes it",
	radar.RenameRename:  "both rename it, to different names",
	radar.RenameDelete:  "one renames it, the other deletes it",
	radar.AddAdd:        "both add it, with different contents",
	radar.BinaryBoth:    "both change this binary file",
	radar.TypeChange:    "its type or mode changes",
	radar.DirectoryFile: "one adds a file where the other has a directory",
	radar.SameFunction:  "both change the same function",
	radar.NearLines:     "both change nearby lines",
	radar.SameFile:      "both change this file",
	radar.SiblingFiles:  "both change files in this directory",
}

// ReasonInWords describes a reason. It returns an unknown one unchanged.
func ReasonInWords(r radar.Reason) string {
	if words, ok := reasonWords[r]; ok {
		return words
	}
	return string(r) // of a newer server
}
