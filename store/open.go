package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/boards"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/orgs"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/postgres"
	"github.com/ledgerd/ledgerd/store/record"
	"github.com/ledgerd/ledgerd/store/search"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
	"github.com/ledgerd/ledgerd/store/webhooks"
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
	// SecretKeys encrypt the signing secrets of webhooks. Without keys, they are stored in plain
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

// Open opens the SQLite database at path, creates it if it does not exist, and
// migrates its schema to the version of this release. Before a migration it writes
// a verified copy of the database next to it.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	server := ""
	if IsPostgres(path) {
		server = rand.Text()
	}
	s := newStore(o, server)
	var err error
	if IsPostgres(path) {
		err = s.openPostgres(ctx, path, o)
		path = Redacted(path)
	} else {
		err = s.openSQLite(ctx, path, o)
	}
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}

	if err := s.resumeClock(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: resume the clock: %w", path, err), s.Close())
	}
	if err := s.db.OpenCursors(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: read the key of cursors: %w", path, err), s.Close())
	}
	if err := s.resumeMapping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: resume the mapping: %w", path, err), s.Close())
	}
	return s, nil
}

// openSQLite opens a file.
func (s *Store) openSQLite(ctx context.Context, path string, o Options) error {
	s.db.Clock = txn.NewClock(o.now(time.Now), o.monotonic(), s.db.Log)
	db, err := sqlite.Open(ctx, path, sqlite.Options{
		Hooks: s.db.Hooks(s.committed), Steps: migrationSteps(), NoCopy: o.NoCopy, Migrating: s.migrating,
		ExternalCheckpoints: o.ExternalCheckpoints, Serve: o.Serve, Began: s.incidentBegan, Ended: s.incidentEnded,
	})
	if err == nil {
		s.db.Engine = db
	}
	return err
}

// openPostgres opens a database on a server. The ledger's clock follows that of the database,
// which all processes share.
func (s *Store) openPostgres(ctx context.Context, url string, o Options) error {
	db, err := postgres.Open(ctx, url, postgres.Options{
		Hooks: s.db.Hooks(s.committed), Migrating: s.migrating, Began: s.incidentBegan, Ended: s.incidentEnded,
	})
	if err == nil {
		s.db.Engine, s.db.Clock = db, txn.NewClock(o.now(db.Now), o.monotonic(), s.db.Log)
	}
	return err
}

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

func newStore(o Options, server string) *Store {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		db:        txn.NewDB(o.Logger),
		committed: o.Committed,
		closing:   make(chan struct{}),
	}
	s.jobs = backlog.New(s.db, server)
	s.Journal = events.New(s.db)
	s.Outbox = webhooks.New(s.db, s.Journal, o.SecretKeys, cmp.Or(o.KeepDeliveries, DefaultKeepDeliveries))
	s.Contracts = policies.New(s.db)
	s.Signers = signers.New(s.db, s.Journal, s.jobs, s.Contracts, o.ParseRoot)
	s.Access = access.New(s.db, s.Journal, s.Signers, o.Providers)
	s.Facts = facts.New(s.db, s.Journal, s.jobs, s.Contracts, s.Signers)
	s.Radar = overlaps.New(s.db, s.Journal, s.jobs, s.Contracts, s.Facts,
		cmp.Or(o.RadarMemory, DefaultRadarMemory), s.closing)
	s.States = states.New(s.db, s.Journal, s.jobs, s.Signers, s.Facts, s.Radar, s.closing)
	s.Registry = orgs.New(s.db, s.jobs, s.Journal, s.Contracts, s.Facts, s.Radar, s.States, s.Outbox)
	s.Lists = lists.New(s.db, s.Journal, s.Contracts, s.Signers, s.Facts, s.Radar, s.States)
	s.Boards = boards.New(s.db, s.Signers, s.Facts, s.States, s.Lists)
	s.Finder = search.New(s.db, s.Signers, s.Facts, s.States, s.Lists)
	s.Recorder = record.New(s.db, s.Journal, s.Signers, s.Access, s.Facts, s.Radar, s.States, s.Lists)
	return s
}

// migrating logs the start of a migration. file is the copy of the database, or "".
func (s *Store) migrating(from, to int, file string) {
	s.db.Log.Info("migrating the database", "from_version", from, "to_version", to, "copy", cmp.Or(file, "none"))
}

// incidentBegan logs the beginning of an incident of the storage. Its other failures are
// only counted.
func (s *Store) incidentBegan(t sqldb.Incident) {
	attrs := []any{"what", string(t.Kind), "error", t.Err}
	if t.Help != "" {
		attrs = append(attrs, "help", t.Help)
	}
	s.db.Log.Error("storage failing", attrs...)
}

// incidentEnded logs the end of an incident of the storage.
func (s *Store) incidentEnded(t sqldb.Incident) {
	s.db.Log.Info("storage recovered", "what", string(t.Kind), "failures", t.Count,
		"duration", time.Since(t.Begun).Round(time.Second))
}

// Ready returns the reason why the storage cannot serve requests, or nil. It does not
// wait.
func (s *Store) Ready() error {
	err := s.db.Ready()
	switch sqldb.ClassOf(err) {
	case sqldb.Full:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the disk is full")
	case sqldb.Gone:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "%v (see the server log)", err)
	}
	return txn.StorageError(err)
}
