// Package webhooks is the room of what others receive: the webhooks of repos with their signing
// secrets, and their deliveries, which a dispatcher claims, and whose outcomes are recorded. The deliveries of
// an event are queued by the room of events, and sent by package dispatch. Its tables are webhooks
// and, with the room of events, outbox.
package webhooks

import (
	"time"

	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An Outbox has the webhooks and their deliveries. Its methods are safe for concurrent use, except
// those with a txn.Tx, which the writer's goroutine calls.
type Outbox struct {
	db        *txn.DB
	journal   *events.Journal
	keys      SecretKeys
	retention time.Duration             // how long the delivery log is retained
	orgs      *txn.Cache[string, int64] // the row ids of the orgs of webhooks, by id
}

// maxOrgs limits the cached orgs of webhooks.
const maxOrgs = 10_000

// New returns the room of a database. keys encrypt the signing secrets, and retention is how long
// finished deliveries stay in the log.
func New(db *txn.DB, journal *events.Journal, keys SecretKeys, retention time.Duration) *Outbox {
	return &Outbox{db, journal, keys, retention, txn.NewCache[string, int64](maxOrgs)}
}
