// Package conflicts says whether the overlaps of a commit with others in flight keep it from PROMOTABLE.
package conflicts

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

// Settings configures Conflict Radar for a repo.
type Settings struct {
	Enabled bool `json:"enabled"`
	// Notify is the lowest level that causes an event.
	Notify radar.Level `json:"notify"`
	// Block is the lowest level at which an overlap blocks the later commit from
	// PROMOTABLE. NoLevel blocks nothing.
	Block radar.Level `json:"block"`
	// Ignore holds globs of paths to ignore.
	Ignore []string `json:"ignore"`
	// MaxAge is how long a tip is in flight.
	MaxAge ledger.Duration `json:"max_age"`
}

// Default returns the settings of a new repo.
func Default() Settings {
	return Settings{Enabled: true, Notify: radar.Low, Block: radar.NoLevel,
		MaxAge: ledger.Duration(30 * 24 * time.Hour)}
}

// Blocks reports whether overlaps can block a commit from PROMOTABLE. If so, Derive needs
// policy.Facts.Overlaps.
func (r Settings) Blocks() bool { return r.Enabled && r.Block != radar.NoLevel }

// Status returns the status of the radar's requirement for PROMOTABLE: no overlap blocks
// a commit of a branch that is meant for a target. It also returns when the first blocking overlap ends because of its
// age, or zero for never. The requirement does not apply to a commit on its target branch, which
// cannot wait for commits that have not landed.
func (r Settings) Status(branch, target string, open []Open, now ledger.Time,
) (s ledger.RequirementStatus, expires ledger.Time) {
	s = ledger.RequirementStatus{State: ledger.Promotable, Predicate: "radar:" + r.Block.String(),
		Applies: branch == "" || branch != target}
	if !s.Applies {
		s.Reason = "does not apply: the commit is on its target branch, " + text.Clip(target) +
			", so overlapping commits must rebase"
		return s, 0
	}

	var blocking []Open
	for _, o := range open {
		if o.Level < r.Block || o.Until != 0 && o.Until <= now {
			continue
		}
		blocking = append(blocking, o)
		if o.Until != 0 && (expires == 0 || o.Until < expires) {
			expires = o.Until
		}
	}

	slices.SortFunc(blocking, func(a, b Open) int {
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
func (r Settings) Oldest(now ledger.Time) ledger.Time { return now.Add(-time.Duration(r.MaxAge)) }

// Covers reports whether the overlaps found with these settings include all that the
// other settings would find: the paths are the same, and max_age is not shorter. Overlaps
// that are too old for the other settings are filtered by age.
func (r Settings) Covers(other Settings) bool {
	return r.Enabled == other.Enabled && slices.Equal(r.Ignore, other.Ignore) && r.MaxAge >= other.MaxAge
}

// An Open overlap is one of the commit with one that was registered earlier.
type Open struct {
	Level radar.Level
	// Commit and Branch identify the earlier commit.
	Commit string
	Branch string
	// Path is the strongest path, and Reason is why the two overlap there.
	Path   string
	Reason radar.Reason
	// Until is when the overlap ends because a commit reaches max_age; zero for never.
	Until ledger.Time
}

// String names the level, the other branch (or commit, if it has none), the
// path and the reason.
func (o Open) String() string {
	var b strings.Builder
	b.WriteString(o.Level.String() + " with ")
	if o.Branch != "" {
		b.WriteString(o.Branch)
	} else {
		b.WriteString(ledger.Short(o.Commit))
	}
	if o.Path != "" {
		b.WriteString(" at " + o.Path)
	}
	if o.Reason != "" {
		b.WriteString(" (" + strings.ReplaceAll(string(o.Reason), "_", " ") + ")")
	}
	return b.String()
}
