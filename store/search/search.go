// Package search is the room of what is looked for: the search of an org, its insights, and artifacts. It only reads,
// and has no tables.
package search

import (
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Finder finds what an org has. Its methods are safe for concurrent use.
type Finder struct {
	db      *txn.DB
	signers *signers.Signers
	facts   *facts.Facts
	states  *states.States
	lists   *lists.Lists
}

// New returns the room of a database.
func New(
	db *txn.DB, who *signers.Signers, known *facts.Facts, machine *states.States, listed *lists.Lists,
) *Finder {
	return &Finder{db: db, signers: who, facts: known, states: machine, lists: listed}
}
