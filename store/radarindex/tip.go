// Package radarindex indexes in memory what the tips of each repo change, and
// scans the index for overlaps with one commit. It contains no SQL: a Source
// feeds it. An index is a cache of its Source, so it can be dropped at any time. A tip
// that changes gets the next number of its repo, and an index reads the tips above the
// highest number that it has seen.
package radarindex

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A Flight is the stage of a tip's life. The numbers are stored in the
// database, and its partial indexes depend on them.
type Flight int

// The stages of a tip's life.
const (
	InFlight   Flight = iota + 1
	Deployed          // out of flight; commits that overlap with it must still be rebased
	Landed            // out of flight, like Deployed: the base of another commit contains it
	Superseded        // replaced by a newer commit of its branch
	Withdrawn         // taken out of flight by hand
	Forgotten         // its overlaps are deleted
)

// A Tip is the last registered commit of a branch, or was once.
type Tip struct {
	radar.Tip
	CommitID int64
	Flight   Flight
	// Place orders the tips of a repo by when they came into flight. Of two tips
	// that overlap, the one with the lower Place has priority.
	Place int64
	// Seq numbers the changes of a repo's tips. A tip gets the next number whenever
	// it changes in a way that matters to an Index.
	Seq      int64
	OpenedAt ledger.Time // when it came into flight
	EndedAt  ledger.Time // when it went out of flight; 0 if it is in flight
	// PolicyVersion is the version of the contract under which the radar last
	// scanned the tip. 0 means that a scan is due, whatever the contract.
	PolicyVersion int
}

// InFlightAt reports whether the tip is in flight and, at the time now, not too
// old to be compared with other commits.
func (t Tip) InFlightAt(settings conflicts.Settings, now ledger.Time) bool {
	return t.Flight == InFlight && t.OpenedAt >= settings.Oldest(now)
}
