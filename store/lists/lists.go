// Package lists is the room of what a repo has: lists of commits, attestations, exceptions and violations, the record
// of a commit, and decisions about it, such as receipts and the gate. It only reads, apart from settling a commit that
// is due. It has no tables.
package lists

import (
	"github.com/ledgerd/ledgerd/store/delivery"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Lists reads what repos have. Its methods are safe for concurrent use.
type Lists struct {
	db       *txn.DB
	journal  *events.Journal
	policies *policies.Contracts
	signers  *signers.Signers
	facts    *facts.Facts
	radar    *overlaps.Radar
	states   *states.States
	shipping *delivery.Deliveries
}

// New returns the room of a database.
func New(
	db *txn.DB, journal *events.Journal, contracts *policies.Contracts, who *signers.Signers, known *facts.Facts,
	radar *overlaps.Radar, machine *states.States, shipping *delivery.Deliveries,
) *Lists {
	return &Lists{db: db, journal: journal, policies: contracts, signers: who, facts: known, radar: radar, states: machine,
		shipping: shipping}
}
