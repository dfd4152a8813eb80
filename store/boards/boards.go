// Package boards is the room of what people look at first: what needs attention, what runs in environments, and the
// overview of an org. It only reads, and has no tables.
package boards

import (
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Boards reads what the boards show. Its methods are safe for concurrent use.
type Boards struct {
	db      *txn.DB
	signers *signers.Signers
	facts   *facts.Facts
	states  *states.States
	lists   *lists.Lists
}

// New returns the room of a database.
func New(
	db *txn.DB, who *signers.Signers, known *facts.Facts, machine *states.States, listed *lists.Lists,
) *Boards {
	return &Boards{db: db, signers: who, facts: known, states: machine, lists: listed}
}
