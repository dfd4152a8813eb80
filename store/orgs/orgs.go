// Package orgs is the room of orgs and repos: their settings and policies, and their life cycle, from creation to
// purge. What is recorded in a repo is in the rooms below. Its tables are orgs, repos and former_names.
package orgs

import (
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
	"github.com/ledgerd/ledgerd/store/webhooks"
)

// A Registry has the orgs and repos. Its methods are safe for concurrent use, except those with a txn.Tx, which the
// writer's goroutine calls.
type Registry struct {
	db       *txn.DB
	jobs     *backlog.Jobs
	journal  *events.Journal
	policies *policies.Contracts
	facts    *facts.Facts
	radar    *overlaps.Radar
	states   *states.States
	webhooks *webhooks.Outbox
}

// New returns the room of a database.
func New(
	db *txn.DB, jobs *backlog.Jobs, journal *events.Journal, contracts *policies.Contracts, known *facts.Facts,
	radar *overlaps.Radar, machine *states.States, hooks *webhooks.Outbox,
) *Registry {
	return &Registry{
		db: db, jobs: jobs, journal: journal, policies: contracts, facts: known, radar: radar, states: machine,
		webhooks: hooks,
	}
}
