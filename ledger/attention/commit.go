package attention

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Window is how long a commit needs attention at most. Older ones were abandoned.
const Window = 30 * 24 * time.Hour

// A Flight says what has become of the tip that a commit was.
type Flight uint8

// What can become of a tip.
const (
	NoTip     Flight = iota // the commit was registered without a branch, or never
	InFlight                // or superseded: see Commit.Replaced
	Landed                  // the mainline contains it
	Withdrawn               // taken out of flight by hand
)

// A Commit is what decides whether a commit needs attention.
type Commit struct {
	State      ledger.State
	StateSince ledger.Time
	// FailingSince is since when a fail or error blocks a requirement, or a commit that runs is no
	// longer PROMOTABLE; 0 if neither is so.
	FailingSince ledger.Time
	Flight       Flight
	// OnTarget reports whether the commit's branch is one that others are merged into.
	OnTarget bool
	// Replaced reports whether a later commit of the same branch has evidence of its own.
	Replaced bool
}

// Needs returns what a commit needs, without its explanation. ok is false if it needs no
// attention.
func (c Commit) Needs(now ledger.Time) (i Item, ok bool) {
	switch {
	case c.State == ledger.Deployed: // as long as it runs
		return Item{Kind: Lapsed, Severity: High, At: c.FailingSince}, c.FailingSince != 0
	case c.FailingSince != 0:
		i = Item{Kind: Failed, Severity: High, At: c.FailingSince}
	case c.State == ledger.Attested:
		i = Item{Kind: Review, Severity: Low, At: c.StateSince}
	default:
		return Item{}, false
	}
	return i, !c.isDone() && i.At > now.Add(-Window)
}

// isDone reports whether nobody works on a commit any more. The commits of a branch that
// others are merged into are part of it for good; any other branch is done when it lands.
func (c Commit) isDone() bool {
	return c.Replaced || c.Flight == Withdrawn || c.Flight == Landed && !c.OnTarget
}

// A Summary identifies the commit of an item.
type Summary struct {
	Repo, SHA, Branch, Subject string
}

// Of returns the item with its commit.
func (i Item) Of(s Summary) Item {
	i.Repo, i.Commit, i.Branch, i.Subject, i.Object = s.Repo, s.SHA, s.Branch, s.Subject, Object{CommitObject, s.SHA}
	return i
}

// Explain returns the item of a commit with the reason, from its standing and its requirements.
// ok is false if they do not need attention after all.
func (i Item) Explain(standing ledger.State, requirements []ledger.RequirementStatus) (_ Item, ok bool) {
	switch i.Kind {
	case Lapsed:
		if standing >= ledger.Promotable {
			return i, false
		}
		return i.because(policy.Missing(standing, requirements))
	case Failed:
		return i.because(slices.DeleteFunc(slices.Clone(requirements), func(r ledger.RequirementStatus) bool {
			return !r.IsFailed()
		}))
	case Review:
		missing := policy.Missing(standing, requirements)
		i.Review = reviewNeed(missing)
		return i.because(missing)
	}
	return i, true
}

// maxReasons limits the requirements that the reason of an item names.
const maxReasons = 2

// because returns the item with unmet requirements as its reason. It returns false if all are
// met.
func (i Item) because(unmet []ledger.RequirementStatus) (_ Item, ok bool) {
	if len(unmet) == 0 {
		return i, false
	}
	var reasons []string
	for _, r := range unmet[:min(len(unmet), maxReasons)] {
		reasons = append(reasons, r.Reason)
	}
	if more := len(unmet) - maxReasons; more > 0 {
		reasons = append(reasons, strconv.Itoa(more)+" more")
	}
	i.Reason, i.Predicate = strings.Join(reasons, "; "), unmet[0].Predicate
	switch first := unmet[0]; {
	case len(first.FailedBy) > 0:
		i.Identity = first.FailedBy[0]
	case len(first.RolledBack) > 0:
		i.Identity = first.RolledBack[0].Identity
	}
	return i, true
}

// ConflictItem returns what a commit needs that must rebase, since when two commits
// overlapped. It is more urgent if the contract blocks such commits from PROMOTABLE.
func ConflictItem(since ledger.Time, blocks bool) Item {
	if blocks {
		return Item{Kind: Conflict, Severity: High, At: since}
	}
	return Item{Kind: Conflict, Severity: Medium, At: since}
}

// Onto returns the item of a commit that must rebase onto a number of others. name is the
// branch or the SHA of one of them. more reports whether there may be others.
func (i Item) Onto(name string, count int, more bool) Item {
	i.Reason = "conflicts with " + name
	if count > 1 {
		i.Reason += fmt.Sprintf(" and %d more", count-1)
	}
	if more {
		i.Reason += ", and perhaps others"
	}
	return i
}

// ViolationItem returns the item of an open violation.
func ViolationItem(v ledger.Violation) Item {
	return Item{Kind: Violation, Severity: Critical, Object: Object{CommitObject, v.Commit}, Repo: v.Repo,
		Commit: v.Commit, Predicate: v.Predicate, Identity: v.Identity, At: v.OpenedAt,
		Reason: fmt.Sprintf("%s recorded in %s", v.Predicate, v.State)}
}
