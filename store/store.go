// Package store keeps the ledger in a database: the rules about what is kept,
// with their SQL. What a method answers without an error is on disk.
//
// The package sqldb is the seam to the engine that runs the SQL, sqlite is that
// engine, and radarindex is the radar's memory.
package store

import (
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

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
