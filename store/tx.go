package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A tx is one write, or a set of them, inside the writer's transaction. What a
// write does is a method of it.
type tx struct {
	reader
	batch *batch
	// gathered is what this write adds to its batch if it succeeds.
	gathered gathered
	// index is the radar's index of the repo that the write is about, where it
	// was refreshed for it.
	index *radarindex.Index
	// work holds the commits that have to be derived again.
	work worklist
	// kept are the commits that this write has changed, until they are written.
	kept []*commitRow
	// latest are the rows of that table to be written: one for each key, however
	// often the write has replaced it.
	latest map[latestKey]int64
	// evaluating marks a write of Evaluate on its way through a repo's commits.
	evaluating bool
	// next holds, by table, the id of the next row that is buffered.
	next map[string]int64
	// remembered is set once something that the write has inserted is remembered.
	remembered bool
	// hooks are the webhooks of the repos that the write has events of.
	hooks map[int64][]hook
}

// write runs fn in the writer's next transaction.
func write[T any](ctx context.Context, s *Store, fn func(*tx) (T, error)) (T, error) {
	return writeAs(ctx, s, sqldb.Write{}, fn)
}

// writeYielding is write for work that lets those who record go first.
func writeYielding[T any](ctx context.Context, s *Store, fn func(*tx) (T, error)) (T, error) {
	return writeAs(ctx, s, sqldb.Write{Yields: true}, fn)
}

// writeAs runs fn as a write of that kind.
func writeAs[T any](ctx context.Context, s *Store, w sqldb.Write, fn func(*tx) (T, error)) (v T, err error) {
	w.Do = func(c *sqldb.Conn) error {
		return s.inTx(c, func(t *tx) (err error) {
			v, err = fn(t)
			return err
		})
	}
	err = s.db.Write(ctx, w)
	return v, storageError(err)
}

// write is the function of that name for what returns no value.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	_, err := write(ctx, s, func(t *tx) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}

// repeat runs batch in one write after another until it reports the last.
func (s *Store) repeat(ctx context.Context, batch func(*tx) (last bool, err error)) error {
	for {
		last, err := write(ctx, s, batch)
		if err != nil || last {
			return err
		}
	}
}

// inTx runs fn as one write of the transaction on c, and writes what it has
// left in buffers.
func (s *Store) inTx(c *sqldb.Conn, fn func(*tx) error) (err error) {
	t := &tx{reader: reader{Conn: c, known: s.known, now: s.Now()}, batch: s.batch}
	done := false
	defer func() { // also when fn panics
		if done {
			return
		}
		if t.remembered {
			t.known.forgetRows()
		}
		t.batch.discard()
	}()
	if err := fn(t); err != nil {
		return err
	}
	if len(t.work.order) > 0 {
		return errors.New("the worklist is not empty at the end of the write")
	}
	if err := t.flush(); err != nil {
		return err
	}
	t.batch.add(&t.gathered, t.now)
	done = true
	return nil
}

// flush writes the rows that wait in the buffers.
func (t *tx) flush() error {
	t.bufferKept()
	for key, attestation := range t.latest {
		t.batch.rows.latest.Add(key.commit, key.predicate, key.slot, key.signer, attestation)
	}
	clear(t.latest)
	for _, rows := range t.batch.rows.all() {
		if err := rows.Flush(t.Conn); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

// A latestKey says of what an attestation is the latest.
type latestKey struct {
	commit, predicate int64
	slot              string
	signer            int64
}

// setLatest has an attestation written as the latest.
func (t *tx) setLatest(key latestKey, attestation int64) {
	if t.latest == nil {
		t.latest = make(map[latestKey]int64)
	}
	t.latest[key] = attestation
}

// keep has the commit written with the other rows of the write.
func (t *tx) keep(c *commitRow) {
	if !c.isCounted {
		c.isCounted = true
		t.kept = append(t.kept, c)
	}
}

// bufferKept puts the commits that are to be written into their buffers.
func (t *tx) bufferKept() {
	for _, c := range t.kept {
		rows := t.batch.rows.counted
		switch {
		case c.isNew:
			rows = t.batch.rows.commits
		case c.isMoved:
			rows = t.batch.rows.moved
		}
		rows.Add(c.id, c.repoID, c.sha, int64(c.state), int64(c.stateSince), int64(c.registeredAt),
			int64(c.policyVersion), int64(c.expires), c.attestations, c.newest)
		c.isNew, c.isCounted, c.isMoved = false, false, false
	}
	t.kept = t.kept[:0]
}

// again has commits derived again at the end of the write.
func (t *tx) again(cause ledger.Cause, commits ...int64) {
	for _, id := range commits {
		t.work.add(id, workEntry{cause: cause})
	}
}

// newID returns a new identifier of the given prefix.
func (t *tx) newID(prefix string) (string, error) { return t.batch.ids.next(prefix, t.now) }

// count adds to a counter, if this write succeeds.
func (t *tx) count(kind counterKind, id int64, by int64) {
	t.gathered.count(counter{kind: kind, id: id}, by)
}

// countState adds to the number of a repo's commits in a state.
func (t *tx) countState(repoID int64, state ledger.State, by int64) {
	t.gathered.count(counter{commitsInState, repoID, state}, by)
}

// takeSeq takes the next sequence number of an org's events.
func (t *tx) takeSeq(orgID int64) (int64, error) {
	seq, ok := t.batch.seqs[orgID]
	if !ok {
		if err := t.Row("SELECT next_seq FROM orgs WHERE id = ?", orgID).Scan(&seq); err != nil {
			return 0, fmt.Errorf("number event: %w", err)
		}
		t.batch.seqs[orgID] = seq
	}
	events := counter{kind: orgEvents, id: orgID}
	seq += t.batch.total.counts[events] + t.gathered.counts[events]
	t.count(orgEvents, orgID, 1)
	return seq, nil
}

// takeRow takes the id of a new row of a table whose rows are buffered.
func (t *tx) takeRow(table string) (int64, error) {
	next, ok := t.next[table]
	if !ok {
		var err error
		if next, err = t.NextID(table); err != nil {
			return 0, fmt.Errorf("number rows of %s: %w", table, err)
		}
		if t.next == nil {
			t.next = make(map[string]int64)
		}
	}
	t.next[table] = next + 1
	return next, nil
}
