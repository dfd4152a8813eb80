package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A tx is one write, or a set of writes, inside the writer's transaction. Its methods
// are the operations of a write.
type tx struct {
	reader
	kernel *txn.Tx
	batch  *batch
	// gathered is what this write adds to its batch if it succeeds.
	gathered gathered
	// index is the refreshed radar index of the repo; nil if not needed.
	index *radarindex.Index
	// work lists the commits whose state must be derived again.
	work worklist
	// dirty lists the changed commits that are not yet in a buffer.
	dirty []*commitRow
	// latest holds the rows to be written to the table latest. A key that the write
	// sets several times is written once.
	latest map[latestKey]int64
	// inherited is the evidence of this write that other commits inherit.
	inherited inherited
	// deployed and environments hold the rows to be written to the tables deployments and
	// environments, like latest.
	deployed     map[deploymentKey]deployed
	environments map[environmentKey]environmentChange
	// inBackground reports whether the write settles commits of a job.
	inBackground bool
}

// write runs fn in the writer's next transaction. org is the org of the caller's request,
// or empty for background work.
func write[T any](ctx context.Context, s *Store, org string, fn func(*tx) (T, error)) (T, error) {
	return writeAs(ctx, s, sqldb.Write{Org: org}, fn)
}

// writeYielding is like write in background work, but lets writes that record go first. owners are
// the row ids of the orgs that it is about; without any, these may be all orgs.
func writeYielding[T any](ctx context.Context, s *Store, owners []int64, fn func(*tx) (T, error)) (T, error) {
	return writeAs(ctx, s, sqldb.Write{Yields: true, Owners: owners}, fn)
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

// repeatFor runs batch in consecutive writes about some orgs, until it reports that it was the last.
func (s *Store) repeatFor(ctx context.Context, owners []int64, batch func(*tx) (last bool, err error)) error {
	return s.repeatAs(ctx, sqldb.Write{Owners: owners}, batch)
}

// repeatAs is like repeatFor, with the options in w.
func (s *Store) repeatAs(ctx context.Context, w sqldb.Write, batch func(*tx) (last bool, err error)) error {
	return s.db.Repeat(ctx, w, begun(s, batch))
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

// inTx runs fn as one write of the transaction on c.
func (s *Store) inTx(c *sqldb.Conn, fn func(*tx) error) error {
	return s.db.Do(c, func(k *txn.Tx) error { return s.begin(k, fn) })
}

// begin runs fn in a write that has begun.
func (s *Store) begin(k *txn.Tx, fn func(*tx) error) error {
	t := &tx{reader: reader{Reader: k.Reader, s: s, caches: s.caches}, kernel: k, batch: s.batch}
	s.batch.left, s.batch.flush = &t.gathered, t.flush
	if err := fn(t); err != nil {
		return err
	}
	if t.hasWork() {
		return errors.New("the worklist is not empty at the end of the write")
	}
	return nil
}

// flush writes all buffered rows.
func (t *tx) flush() error {
	t.bufferDirty()
	for key, attestation := range t.latest {
		t.batch.rows.latest.Add(key.commit, key.predicate, key.slot, key.signer, attestation)
	}
	clear(t.latest)
	t.inherited.bufferTo(t.batch.rows)
	t.bufferDeployments()
	for _, rows := range t.batch.rows.all() {
		if err := rows.Flush(t.Conn); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

// A deploymentKey is the key of the table deployments, and deployed the rest of its row.
type (
	deploymentKey struct{ repo, predicate, commit int64 }
	deployed      struct {
		attestation int64
		required    bool
	}
)

// An environmentKey is the key of the table environments, and an environmentChange the rest
// of its row.
type (
	environmentKey    struct{ predicate, repo int64 }
	environmentChange struct{ org, latest int64 }
)

// bufferDeployments adds the changed deployments and environments to the buffers.
func (t *tx) bufferDeployments() {
	for key, d := range t.deployed {
		t.batch.rows.deployments.Add(key.repo, key.predicate, key.commit, d.attestation, d.required)
	}
	for key, c := range t.environments {
		t.batch.rows.environments.Add(key.predicate, key.repo, c.org, c.latest)
	}
	clear(t.deployed)
	clear(t.environments)
}
