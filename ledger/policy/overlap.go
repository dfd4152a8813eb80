package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Blocks reports whether overlaps can block a commit from PROMOTABLE. If so, Derive needs
// Facts.Overlaps.
func (r RadarSettings) Blocks() bool { return r.Enabled && r.Block != radar.NoLevel }

// evaluate returns the status of the radar's requirement for PROMOTABLE: no overlap blocks
// the commit. It also returns when the first blocking overlap ends because of its age, or
// zero for never. The requirement does not apply to a commit on its target branch, which
// cannot wait for commits that have not landed.
func (r RadarSettings) evaluate(f *Facts, now ledger.Time) (s ledger.RequirementStatus, expires ledger.Time) {
	s = ledger.RequirementStatus{State: ledger.Promotable, Predicate: "radar:" + r.Block.String(),
		Applies: f.Branch == "" || f.Branch != f.Target}
	if !s.Applies {
		s.Reason = "does not apply: the commit is on its target branch, " + text.Clip(f.Target) +
			", so overlapping commits must rebase"
		return s, 0
	}

	var blocking []OpenOverlap
	for _, o := range f.Overlaps {
		if o.Level < r.Block || o.Until != 0 && o.Until <= now {
			continue
		}
		blocking = append(blocking, o)
		if o.Until != 0 && (expires == 0 || o.Until < expires) {
			expires = o.Until
		}
	}

	slices.SortFunc(blocking, func(a, b OpenOverlap) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), strings.Compare(a.Commit, b.Commit), strings.Compare(a.Path, b.Path))
	})
	if s.Met = len(blocking) == 0; s.Met {
		s.Reason = "no open overlap of level " + r.Block.String() + orAbove(r.Block) + " with an earlier commit"
		return s, 0
	}

	overlaps := make([]string, len(blocking))
	for i, o := range blocking {
		overlaps[i] = o.String()
	}
	earlier, after := "1 earlier commit", "it has"
	if n := len(blocking); n > 1 {
		earlier, after = strconv.Itoa(n)+" earlier commits", "they have"
	}
	s.Reason = "overlaps with " + earlier + ": " + text.JoinFirst(overlaps, " and ") +
		"; rebase once " + after + " landed, then push again"
	return s, expires
}

func orAbove(l radar.Level) string {
	if l == radar.High {
		return ""
	}
	return " or above"
}

// Oldest returns the start of the max_age window: commits that came into flight before it
// are not compared.
func (r RadarSettings) Oldest(now ledger.Time) ledger.Time { return now.Add(-time.Duration(r.MaxAge)) }

// Covers reports whether the overlaps found with these settings include all that the
// other settings would find: the paths are the same, and max_age is not shorter. Overlaps
// that are too old for the other settings are filtered by age.
func (r RadarSettings) Covers(other RadarSettings) bool {
	return r.Enabled == other.Enabled && slices.Equal(r.Ignore, other.Ignore) && r.MaxAge >= other.MaxAge
}
