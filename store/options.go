package store

import (
	"log/slog"
	"time"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Options configures a Store.
type Options struct {
	// Now is the system clock, which the ledger's clock follows. The default is
	// time.Now.
	Now func() time.Time
	// Monotonic returns the time since any fixed moment. It shows when Now jumps. If it
	// is nil, the monotonic readings in the results of Now are used, and by default the time
	// since the machine booted.
	Monotonic func() time.Duration
	// Logger logs migrations and background errors. By default nothing is logged.
	Logger *slog.Logger
	// KeepDeliveries is how long finished deliveries stay in the log. 0 means
	// DefaultKeepDeliveries.
	KeepDeliveries time.Duration
	// RadarMemory is the approximate limit, in bytes, of the radar's indexes in
	// memory. 0 means DefaultRadarMemory. If they are full, the oldest commits in
	// flight are no longer compared with new ones.
	RadarMemory int64
	// SecretKeys encrypt the secrets of webhooks. Without keys, they are stored in plain
	// text.
	SecretKeys SecretKeys
	// Providers are the providers with which people sign in, and the orgs that may use them.
	Providers member.Providers
	// ParseRoot parses trusted roots. Without it, none can be set, and those that are set vouch for
	// nobody.
	ParseRoot identity.RootParser
	// NoCopy disables the copy of the database that Open takes before a migration.
	NoCopy bool
	// ExternalCheckpoints leaves the checkpoints of the write-ahead log to another process.
	ExternalCheckpoints bool
	// Committed, if not nil, is called after each transaction that writes. It must be quick.
	Committed func(sqldb.Commit)
	// Serve makes this the only server of the database: Open fails if there is another.
	// Without it, the database can be opened next to a server.
	Serve bool
}

// DefaultRadarMemory is the default of Options.RadarMemory, in bytes.
const DefaultRadarMemory = 128 << 20

// DefaultKeepDeliveries is the default of Options.KeepDeliveries.
const DefaultKeepDeliveries = 30 * 24 * time.Hour

// now returns Now, or by default another clock.
func (o Options) now(clock func() time.Time) func() time.Time {
	if o.Now != nil {
		return o.Now
	}
	return clock
}

// monotonic returns Monotonic, or by default the time since boot, if Now is not set either.
func (o Options) monotonic() func() time.Duration {
	if o.Monotonic != nil || o.Now != nil {
		return o.Monotonic
	}
	start := time.Now()
	return func() time.Duration { return time.Since(start) + txn.Suspended() }
}
