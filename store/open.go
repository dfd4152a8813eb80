package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

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

// Open opens the SQLite database at path, creates it if it does not exist, and
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
		CheckpointFailed: s.copyFailed,
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

// copyFailed logs that the write-ahead log cannot be copied into the database file.
// Nothing is lost: the log keeps what is committed.
func (s *Store) copyFailed(err error) {
	s.log.Error("WAL checkpoint failed", "error", err)
}

// hooks returns what the store does around the writer's transactions.
func (s *Store) hooks() sqldb.Hooks {
	return sqldb.Hooks{
		BeforeCommit: s.batch.flushCounts,
		AfterCommit: func() {
			s.published(&s.batch.total)
			s.batch.reset()
		},
		AfterRollback: func() {
			s.known.forgetRows() // before others get the rows that were taken
			s.batch.discard()
			s.batch.reset()
		},
	}
}

// published notifies those who wait for what is on disk now.
func (s *Store) published(g *gathered) {
	for orgID := range s.batch.seqs {
		s.notifier.notify(orgID)
	}
	s.queued.add(g.queued, g.changed)
	if g.lookAgain {
		s.wakeEvaluate()
	}
}

// Ready reports whether the database can be read.
func (s *Store) Ready(ctx context.Context) error {
	_, err := read(ctx, s, func(rd reader) (n int64, err error) {
		return n, rd.Row("SELECT count(*) FROM (SELECT id FROM orgs LIMIT 1) first").Scan(&n)
	})
	return err
}
