// Package upkeep does in the background what keeps a ledger in order: it takes the jobs of the backlog and gives each
// to its room, prunes what is no longer kept, and logs what earlier releases did not. It maps the statements of earlier
// releases by the rules of this one, and follows the clock of other processes. Its own table is clock.
package upkeep

import (
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/orgs"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
	"github.com/ledgerd/ledgerd/store/webhooks"
)

// Upkeep does what is done in the background. Its methods are safe for concurrent use.
type Upkeep struct {
	db       *txn.DB
	jobs     *backlog.Jobs
	journal  *events.Journal
	webhooks *webhooks.Outbox
	signers  *signers.Signers
	access   *access.Access
	facts    *facts.Facts
	radar    *overlaps.Radar
	states   *states.States
	orgs     *orgs.Registry
}

// New returns the room, with the rooms below it.
func New(
	db *txn.DB, jobs *backlog.Jobs, journal *events.Journal, webhooks *webhooks.Outbox, signers *signers.Signers,
	access *access.Access, facts *facts.Facts, radar *overlaps.Radar, states *states.States, orgs *orgs.Registry,
) *Upkeep {
	return &Upkeep{
		db: db, jobs: jobs, journal: journal, webhooks: webhooks, signers: signers, access: access, facts: facts,
		radar: radar, states: states, orgs: orgs,
	}
}
