package store

import (
	"context"

	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A tx is one write, or a set of writes, inside the writer's transaction. Its methods
// are the operations of a write.
type tx struct {
	reader
	kernel *txn.Tx
}

// write runs fn in the writer's next transaction. org is the org of the caller's request,
// or empty for background work.
func write[T any](ctx context.Context, s *Store, org string, fn func(*tx) (T, error)) (T, error) {
	return writeAs(ctx, s, sqldb.Write{Org: org}, fn)
}

// writeAs runs fn in the writer's next transaction, with the options in w.
func writeAs[T any](ctx context.Context, s *Store, w sqldb.Write, fn func(*tx) (T, error)) (T, error) {
	return txn.Write(ctx, s.db, w, begun(s, fn))
}

// begun returns a function that runs fn in a write that has begun.
func begun[T any](s *Store, fn func(*tx) (T, error)) func(*txn.Tx) (T, error) {
	return func(k *txn.Tx) (v T, err error) {
		err = s.begin(k, func(t *tx) error {
			v, err = fn(t)
			return err
		})
		return v, err
	}
}

// write is like the function write, for an fn that returns no value.
func (s *Store) write(ctx context.Context, org string, fn func(*tx) error) error {
	_, err := write(ctx, s, org, func(t *tx) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}

// writeFor runs fn in the writer's next transaction, as background work about some orgs.
func (s *Store) writeFor(ctx context.Context, owners []int64, fn func(*tx) error) error {
	_, err := writeAs(ctx, s, sqldb.Write{Owners: owners}, func(t *tx) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}

// advance runs fn, a step of a job. See backlog.Jobs.Advance.
func (s *Store) advance(ctx context.Context, j *backlog.Job, fn func(*tx, *backlog.Job) (done bool, err error)) error {
	return s.jobs.Advance(ctx, j, func(k *txn.Tx, j *backlog.Job) (done bool, err error) {
		err = s.begin(k, func(t *tx) error {
			done, err = fn(t, j)
			return err
		})
		return done, err
	})
}

// begin runs fn in a write that has begun.
func (s *Store) begin(k *txn.Tx, fn func(*tx) error) error {
	return fn(&tx{reader: reader{Reader: k.Reader, s: s}, kernel: k})
}
