// Package store keeps the ledger in a database: the rules about what is kept,
// with their SQL. What a method answers without an error is on disk.
//
// The package sqldb is the seam to the engine that runs the SQL, sqlite is that
// engine, and radarindex is the radar's memory.
package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// Options configures a Store.
type Options struct {
	// Now is the ledger's clock; time.Now where nil.
	Now func() time.Time
	// Logger gets what goes wrong in the background; nothing is logged where nil.
	Logger *slog.Logger
	// KeepDeliveries is how long the log of a delivery is kept; DefaultKeepDeliveries where 0.
	KeepDeliveries time.Duration
	// RadarMemory bounds about how many bytes the radar keeps of what commits in
	// flight change; DefaultRadarMemory where 0. When that is full, the oldest
	// commits in flight are no longer compared with new ones.
	RadarMemory int64
	// NoCopy leaves out the copy of the database that Open takes before it
	// migrates the schema.
	NoCopy bool
}

// DefaultRadarMemory is what the radar may keep unless Options says otherwise.
const DefaultRadarMemory = 128 << 20

// DefaultKeepDeliveries is how long the log of a delivery is kept, unless
// Options says otherwise.
const DefaultKeepDeliveries = 30 * 24 * time.Hour

// A Store is an open database. Its methods may be called at the same time.
type Store struct {
	now  func() time.Time
	log  *slog.Logger
	keep time.Duration // the log of deliveries
	db   sqldb.Engine

	known *memory
	tips  *radarindex.Set
	// The writer's goroutine alone uses batch.
	batch *batch

	// foreseeing holds one for each Foresee that is under way.
	foreseeing chan struct{}
	notifier   notifier
	queued     *queued
	wake       chan struct{} // tells Evaluate that there is something to do
	touched    sync.Map      // token id -> ledger.Time of the last TouchToken written

	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Open opens the SQLite database at path, creates it where there is none, and
// migrates its schema to this release's. Before a migration it takes a verified
// copy of the file next to it.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := newStore(o)
	db, err := sqlite.Open(ctx, path, sqlite.Options{
		Hooks: s.hooks(), Steps: migrationSteps(), NoCopy: o.NoCopy, Migrating: s.migrating,
	})
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	s.db = db
	return s, nil
}

func newStore(o Options) *Store {
	s := &Store{
		now:        o.Now,
		log:        o.Logger,
		keep:       cmp.Or(o.KeepDeliveries, DefaultKeepDeliveries),
		known:      newMemory(),
		tips:       radarindex.NewSet(cmp.Or(o.RadarMemory, DefaultRadarMemory)),
		foreseeing: make(chan struct{}, maxForeseeing),
		queued:     newQueued(),
		wake:       make(chan struct{}, 1),
		closing:    make(chan struct{}),
	}
	s.batch = newBatch(s.tips)
	return s
}

// migrating logs that the schema is about to change.
func (s *Store) migrating(from, to int, file string) {
	s.log.Info("migrating the database", "from_version", from, "to_version", to, "copy", cmp.Or(file, "none"))
}

// Close lets what is under way finish and closes the database.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.closeErr = s.db.Close()
	})
	return s.closeErr
}

// Now is the time by the ledger's clock.
func (s *Store) Now() ledger.Time { return ledger.TimeOf(s.now()) }

// Ready reports whether the database can be read.
func (s *Store) Ready(ctx context.Context) error {
	_, err := read(ctx, s, func(rd reader) (n int64, err error) {
		return n, rd.Row("SELECT count(*) FROM (SELECT id FROM orgs LIMIT 1) first").Scan(&n)
	})
	return err
}
