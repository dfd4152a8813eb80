package recheck

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
)

// A Result is the result of deriving the states of some commits of a repo again.
type Result struct {
	Commits int64
	// Moves are the commits whose evidence leads to another state than the one they have, though
	// nothing has changed since that was derived.
	Moves []ledger.Move
	// Standings are the same of commits whose standing is kept, from that to the derived one. If the
	// radar blocks, they are left out: the standings of deployed commits do not follow its overlaps.
	Standings []ledger.Move
	// Differences are other columns of commits that do not follow from the evidence.
	Differences []Difference
	// Known is what is known of the commits.
	Known []facts.Commit
	// Pending counts the commits whose state is to be derived again.
	Pending int64
	// Last is the row id of the last commit; 0 if there were none.
	Last int64
}

// A Difference is a row that does not say what is derived.
type Difference struct{ Commit, Problem string }

// differs reports whether something that is stored does not follow.
func (r *Result) differs() bool { return len(r.Moves)+len(r.Standings)+len(r.Differences) > 0 }

func (r *Result) differ(sha, format string, args ...any) {
	r.Differences = append(r.Differences, Difference{sha, fmt.Sprintf(format, args...)})
}
