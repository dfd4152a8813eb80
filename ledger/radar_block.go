package ledger

import (
	"cmp"
	"slices"
	"strings"
)

// Blocks reports whether overlaps of some level keep a commit from being
// PROMOTABLE, so that a derivation must know of them.
func (r RadarSettings) Blocks() bool { return r.Enabled && r.Block != NoLevel }

// judge tells, as of a requirement for PROMOTABLE, whether an overlap blocks.
func (r RadarSettings) judge(overlaps []OpenOverlap) RequirementStatus {
	s := RequirementStatus{State: Promotable, Predicate: "radar:" + r.Block.String(), Applies: true}
	var blocking []OpenOverlap
	for _, o := range overlaps {
		if o.Level >= r.Block {
			blocking = append(blocking, o)
		}
	}
	slices.SortFunc(blocking, func(a, b OpenOverlap) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), strings.Compare(a.Commit, b.Commit), strings.Compare(a.Path, b.Path))
	})
	if s.Met = len(blocking) == 0; s.Met {
		s.Reason = "no open overlap of level " + r.Block.String() + orAbove(r.Block) + " with a commit registered before"
		return s
	}
	told := make([]string, len(blocking))
	for i, o := range blocking {
		told[i] = o.String()
	}
	s.Reason = "overlaps with what was registered before: " + some(told, "; ") + ": rebase onto it once it has landed, and push anew"
	return s
}

func orAbove(l Level) string {
	if l == High {
		return ""
	}
	return " or above"
}

// String names the other commit and the path.
func (o OpenOverlap) String() string {
	var b strings.Builder
	b.WriteString(o.Level.String() + " with " + o.Commit)
	if o.Branch != "" {
		b.WriteString(" of " + o.Branch)
	}
	if o.Path != "" {
		b.WriteString(" at " + o.Path)
	}
	if o.Reason != "" {
		b.WriteString(" (" + string(o.Reason) + ")")
	}
	return b.String()
}
