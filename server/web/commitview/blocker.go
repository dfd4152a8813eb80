// Package commitview arranges what several pages show of a commit: its requirements, its evidence, and its
// overlaps from its own side, with their lines and reasons in words.
package commitview

import (
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Blocker is an unmet requirement of a commit.
type Blocker struct {
	Predicate string
	Failed    bool
	// Text is the number of signers so far, or who signed the failure or the rollback.
	Text string
}

// Blockers returns the blockers for the requirements that are missing.
func Blockers(missing []ledger.RequirementStatus) []Blocker {
	needs := make([]Blocker, len(missing))
	for i, r := range missing {
		n := Blocker{Predicate: r.Predicate, Failed: len(r.FailedBy)+len(r.RolledBack) > 0}
		switch {
		case len(r.RolledBack) > 0:
			last := r.RolledBack[len(r.RolledBack)-1]
			n.Text = "rolled back by " + format.Clip(format.PlainName(last.Identity), 60) + ": " + format.Clip(last.Reason, 100)
		case n.Failed:
			n.Text = "failed by " + format.Clip(format.PlainName(r.FailedBy[0]), 60)
			if more := len(r.FailedBy) - 1; more > 0 {
				n.Text += " and " + strconv.Itoa(more) + " more"
			}
		case r.Need > 0:
			n.Text = strconv.Itoa(r.Have) + " of " + strconv.Itoa(r.Need)
		default:
			n.Text = "overlaps"
		}
		needs[i] = n
	}
	return needs
}
