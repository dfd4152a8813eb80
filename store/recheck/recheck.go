// Package recheck derives again what the store has derived, for ledgerd check. It compares the states of commits, the
// paths they change, their trees and their overlaps with the evidence, and leaves out what waits in the backlog. It
// has no table, and writes nothing.
package recheck

import (
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Rechecker derives again what is stored. Its methods are safe for concurrent use.
type Rechecker struct {
	db      *txn.DB
	facts   *facts.Facts
	radar   *overlaps.Radar
	history *history.History
}

// New returns the room, with the rooms below it.
func New(db *txn.DB, facts *facts.Facts, radar *overlaps.Radar, past *history.History) *Rechecker {
	return &Rechecker{db: db, facts: facts, radar: radar, history: past}
}
