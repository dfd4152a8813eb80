package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/postgres"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
	"github.com/ledgerd/ledgerd/store/sqlite/migrations"
	"github.com/ledgerd/ledgerd/store/txn"
)

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

	if err := s.ResumeClock(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: resume the clock: %w", path, err), s.Close())
	}
	if err := s.db.OpenCursors(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: read the key of cursors: %w", path, err), s.Close())
	}
	if err := s.ResumeMapping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: resume the mapping: %w", path, err), s.Close())
	}
	return s, nil
}

// openSQLite opens a file.
func (s *Store) openSQLite(ctx context.Context, path string, o Options) error {
	s.db.Clock = txn.NewClock(o.now(time.Now), o.monotonic(), s.db.Log)
	db, err := sqlite.Open(ctx, path, sqlite.Options{
		Hooks: s.db.Hooks(s.committed), Steps: migrations.Steps(), NoCopy: o.NoCopy, Migrating: s.migrating,
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
