// Package store keeps the ledger in one SQLite file. One goroutine writes,
// many writes to a transaction; a pool of connections reads. What a method
// answers without an error is on disk.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

// maxReaders is how many connections read at the same time.
const maxReaders = 8

// Options are what a Store can be told.
type Options struct {
	// Now is the ledger's clock; time.Now where nil.
	Now func() time.Time
	// Logger gets what goes wrong in the background; nothing is logged where nil.
	Logger *slog.Logger
	// KeepDeliveries is how long the log of a delivery is kept; DefaultKeepDeliveries where 0.
	KeepDeliveries time.Duration
	// RadarMemory bounds about how many bytes the radar keeps of what commits in
	// flight change; DefaultRadarMemory where 0. Where that does not do, those that
	// came into flight first are not compared with new ones.
	RadarMemory int64
}

// DefaultRadarMemory is what the radar may keep unless Options says otherwise.
const DefaultRadarMemory = 128 << 20

// DefaultKeepDeliveries is how long the log of a delivery is kept, unless
// Options says otherwise.
const DefaultKeepDeliveries = 30 * 24 * time.Hour

// A Store is an open database. Its methods may be called at the same time.
type Store struct {
	now     func() time.Time
	log     *slog.Logger
	keep    time.Duration // the log of deliveries
	writeDB *sql.DB
	readDB  *sql.DB
	writer  *writer
	pool    chan *conn // readers that nobody uses now
	readers int        // how many there are
	closing chan struct{}
	// foreseeing holds one for each Foresee that is under way.
	foreseeing chan struct{}

	contracts contractCache
	keyrings  keyringCache
	names     *names
	tips      *radarindex.Set
	notifier  notifier
	queued    *queued
	wake      chan struct{} // tells Evaluate of a policy change

	touched   sync.Map // token id -> ledger.Time of the last TouchToken written
	closeOnce sync.Once
	closeErr  error
}

// Open opens the database at path, makes it where there is none, and migrates
// its schema to this release's.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{now: o.Now, log: o.Logger, keep: cmp.Or(o.KeepDeliveries, DefaultKeepDeliveries), pool: make(chan *conn, maxReaders), names: newNames(), tips: radarindex.NewSet(cmp.Or(o.RadarMemory, DefaultRadarMemory)), queued: newQueued(), closing: make(chan struct{}), foreseeing: make(chan struct{}, maxForeseeing), wake: make(chan struct{}, 1)}
	if err := s.open(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) (err error) {
	if err := createPrivate(path); err != nil {
		return err
	}
	if s.writeDB, err = openDB(path, writerPragmas); err != nil {
		return err
	}
	c, err := s.connect(ctx, s.writeDB)
	if err != nil {
		return err
	}
	if err := migrate(c); err != nil {
		return errors.Join(err, c.close())
	}
	s.writer = newWriter(c, s.now, s.names, s.tips, &s.notifier, s.queued)

	if s.readDB, err = openDB(path, readerPragmas); err != nil {
		return err
	}
	for range maxReaders {
		c, err := s.connect(ctx, s.readDB)
		if err != nil {
			return err
		}
		s.pool <- c
		s.readers++
	}
	return nil
}

var (
	// busy_timeout comes first: the others may have to wait for another process.
	writerPragmas = []string{
		"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)", "foreign_keys(1)",
		"journal_size_limit(67108864)", "temp_store(memory)", "cache_size(-16384)",
	}
	readerPragmas = []string{"busy_timeout(10000)", "query_only(1)", "temp_store(memory)", "cache_size(-4096)"}
)

func openDB(path string, pragmas []string) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	absolute = filepath.ToSlash(absolute)
	if !strings.HasPrefix(absolute, "/") {
		absolute = "/" + absolute // C:/ledger.db
	}
	dsn := url.URL{Scheme: "file", Path: absolute, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return sql.Open("sqlite", dsn.String())
}

// createPrivate makes the file, where there is none, for its owner alone.
// SQLite gives the files beside it the same mode.
func createPrivate(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// Close lets what is under way finish and closes the file.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	var errs []error
	close(s.closing)
	if s.writer != nil {
		s.writer.close()
	}
	for range s.readers {
		errs = append(errs, (<-s.pool).close())
	}
	if s.readDB != nil {
		errs = append(errs, s.readDB.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.conn.close())
	}
	if s.writeDB != nil {
		errs = append(errs, s.writeDB.Close())
	}
	return errors.Join(errs...)
}

// Now is the time by the ledger's clock.
func (s *Store) Now() ledger.Time { return ledger.TimeOf(s.now()) }

// Ready reports whether the database can be read.
func (s *Store) Ready(ctx context.Context) error {
	return s.read(ctx, func(c *conn) error {
		_, err := schemaVersion(c)
		return err
	})
}

// write runs fn in the writer's next transaction.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	return s.writer.write(ctx, fn)
}

// read runs fn on a connection of the pool, in a transaction: all that fn
// reads is of one moment. The context counts while waiting for a connection.
func (s *Store) read(ctx context.Context, fn func(*conn) error) error {
	return s.readLoose(ctx, func(c *conn) (err error) {
		if _, err := c.exec("BEGIN"); err != nil {
			return fmt.Errorf("begin reading: %w", err)
		}
		defer func() { // also when fn panics
			if _, end := c.exec("ROLLBACK"); end != nil {
				err = errors.Join(err, fmt.Errorf("end reading: %w", end))
			}
		}()
		return fn(c)
	})
}

// readLoose is read without the transaction, for an fn of one statement or one
// whose statements need not agree: it is on the way of every request.
func (s *Store) readLoose(ctx context.Context, fn func(*conn) error) error {
	var c *conn
	select {
	case c = <-s.pool:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return errClosed
	}
	defer func() { s.pool <- c }()
	return storageError(fn(c))
}
