// Package radarindex is the radar's memory. It indexes in memory what the tips
// of each repo change, and scans the index for overlaps with one commit. It
// contains no SQL: a Source feeds it. Every index can be dropped at any time,
// because it holds nothing that the Source does not.
package radarindex

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
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
	Superseded        // its branch has a newer commit
	Withdrawn
	Forgotten // its overlaps are deleted
)

// A Tip is a commit that is, or was, the latest that was registered for its
// branch.
type Tip struct {
	radar.Tip
	CommitID int64
	Flight   Flight
	// Place orders the tips of a repo by when they came into flight. Of two that
	// overlap, the one with the higher Place is the later one.
	Place int64
	// Seq is the tip's number in its repo. It rises above all others of the repo
	// whenever something changes that an Index must know.
	Seq      int64
	OpenedAt ledger.Time // when it came into flight
	EndedAt  ledger.Time // when it went out of flight; 0 if it is in flight
	// PolicyVersion is the version of the contract that the radar last scanned the
	// tip under. If 0, the radar must scan it again, whatever the contract.
	PolicyVersion int
}

// InFlightAt reports whether other commits are compared with the tip: it is in flight
// and not too old.
func (t Tip) InFlightAt(settings policy.RadarSettings, now ledger.Time) bool {
	return t.Flight == InFlight && t.OpenedAt >= settings.Oldest(now)
}
