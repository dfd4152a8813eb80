package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/engine"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// blockWriter blocks the writer until release is called, so that the writes queued
// in between share the next transaction. The caller must call release.
func blockWriter(t *testing.T, db *DB) (release func()) {
	t.Helper()
	begun, released := make(chan struct{}), make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- db.Write(context.Background(), single(func(*sqldb.Conn) error {
			close(begun)
			<-released
			return nil
		}))
	}()
	<-begun
	return func() {
		t.Helper()
		close(released)
		must.OK(t, <-result)
	}
}

// enqueue appends a write to the queue and returns a channel for its result. The
// writer must be blocked.
func enqueue(ctx context.Context, db *DB, w sqldb.Write) <-chan error {
	result := make(chan error, 1)
	before := queued(db)
	go func() { result <- db.Write(ctx, w) }()
	for queued(db) == before {
		time.Sleep(100 * time.Microsecond)
	}
	return result
}

// queued returns the number of writes in the queue.
func queued(db *DB) int {
	return db.Writer.Queued()
}

// A set inserts things and logs the items of each call. After inserting an item
// that starts with "faulty" it fails; after one that starts with "panic" it panics.
type set struct {
	name string
	log  *[]string
}

func (s set) WriteAll(c *sqldb.Conn, items []any) error {
	*s.log = append(*s.log, fmt.Sprint(s.name, items))
	for _, item := range items {
		name := item.(string)
		if err := insert(c, name); err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(name, "faulty"):
			return errors.New("error of " + name)
		case strings.HasPrefix(name, "panic"):
			panic("panic of " + name)
		}
	}
	return nil
}

func TestWritesOfASet(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		writes string // SET:ITEM of each write; - means no set, and ! cancels its context before it begins
		calls  string // the groups in which items were written, in order
		disk   string // the items on disk
		failed string // the items that failed
	}{
		{"writes of one set are written together", "A:1 A:2 A:3", "A[1 2 3]", "1 2 3", ""},
		{"one write of a set is written alone", "A:1", "A[1]", "1", ""},
		{"writes of two sets are written separately, in order", "A:1 A:2 B:3 A:4", "A[1 2] B[3] A[4]", "1 2 3 4", ""},
		{"a write without a set separates writes of one set", "A:1 A:2 -:3 A:4 A:5", "A[1 2] -[3] A[4 5]", "1 2 3 4 5", ""},
		{"writes without a set are written one by one", "-:1 -:2", "-[1] -[2]", "1 2", ""},
		{"only the faulty item fails", "A:1 A:faulty A:3", "A[1 faulty 3] A[1] A[faulty] A[3]", "1 3", "faulty"},
		{
			"two faulty items fail", "A:faulty1 A:2 A:faulty3",
			"A[faulty1 2 faulty3] A[faulty1] A[2] A[faulty3]", "2", "faulty1 faulty3",
		},
		{"a single faulty item is not retried", "A:faulty", "A[faulty]", "", "faulty"},
		{"a panic fails one item", "A:1 A:panic A:3", "A[1 panic 3] A[1] A[panic] A[3]", "1 3", "panic"},
		{"only the duplicate item fails", "-:1 A:1x A:1 A:2", "-[1] A[1x 1 2] A[1x] A[1] A[2]", "1 1x 2", "1"},
		{
			"a faulty set does not affect others", "-:1 A:faulty A:2 B:3",
			"-[1] A[faulty 2] A[faulty] A[2] B[3]", "1 2 3", "faulty",
		},
		{"a faulty write without a set does not affect others", "A:1 -:faulty A:2", "A[1] -[faulty] A[2]", "1 2", "faulty"},
		{"a panic without a set does not affect others", "A:1 -:panic A:2", "A[1] -[panic] A[2]", "1 2", "panic"},
		{"a cancelled item is not written", "A:1 A:2! A:3", "A[1 3]", "1 3", "2"},
		{
			"a cancelled item is not written in the second attempt", "A:1! A:faulty A:3",
			"A[faulty 3] A[faulty] A[3]", "3", "1 faulty",
		},
		{"a cancelled set is not written", "A:1! A:2! -:3", "-[3]", "3", "1 2"},
		{"a cancelled write without a set is not written", "-:1! -:2", "-[2]", "2", "1"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			commits := 0
			hooks := noHooks
			hooks.AfterCommit = func() { commits++ }
			db := open(t, newPath(t), hooks)
			release := blockWriter(t, db)

			var calls, failed []string
			results := make(map[string]<-chan error)
			cancelled, cancel := context.WithCancel(t.Context())
			var items []string
			for write := range strings.FieldsSeq(tc.writes) {
				setName, item, _ := strings.Cut(write, ":")
				ctx := t.Context()
				if name, ok := strings.CutSuffix(item, "!"); ok {
					item, ctx = name, cancelled
				}
				w := sqldb.Write{Set: set{setName, &calls}, Item: item}
				if setName == "-" {
					w = single(func(c *sqldb.Conn) error { return set{"-", &calls}.WriteAll(c, []any{item}) })
				}
				key := fmt.Sprint(len(items), " ", item)
				items, results[key] = append(items, key), enqueue(ctx, db, w)
			}
			cancel()
			commits = 0
			release()

			for _, key := range items {
				_, item, _ := strings.Cut(key, " ")
				err := <-results[key]
				if err == nil {
					continue
				}
				failed = append(failed, item)
				own := strings.Contains(err.Error(), " of "+item) || errors.Is(err, context.Canceled) ||
					sqldb.ClassOf(err) == sqldb.Duplicate
				if !own {
					t.Errorf("%s got the error of another item: %v", item, err)
				}
			}

			if got := strings.Join(calls, " "); got != tc.calls {
				t.Errorf("calls: got %s, want %s", got, tc.calls)
			}
			if got := strings.Join(failed, " "); got != tc.failed {
				t.Errorf("failed items: got %s, want %s", got, tc.failed)
			}
			wantThings(t, db, strings.Fields(tc.disk)...)
			if commits != 2 { // including the write that blocked the writer
				t.Errorf("got %d transactions, want all writes in one", commits-1)
			}
		})
	}
}

func TestBeforeCommitErrorFailsTheWholeBatch(t *testing.T) {
	hookErr := errors.New("error of the hook")
	var fails bool
	var calls, log []string
	db := open(t, newPath(t), sqldb.Hooks{
		BeforeCommit: func(c *sqldb.Conn) error {
			calls = append(calls, "before")
			if fails {
				fails = false
				return errors.Join(insert(c, "buffered"), hookErr)
			}
			return nil
		},
		AfterCommit:   func() { calls = append(calls, "committed") },
		AfterRollback: func() { calls = append(calls, "rolled back") },
	})

	// batch writes three things in one transaction and returns their results.
	batch := func(failing bool) (results []error) {
		release := blockWriter(t, db)
		waiting := []<-chan error{
			enqueue(t.Context(), db, single(func(c *sqldb.Conn) error {
				fails, calls = failing, nil
				return insert(c, "a")
			})),
			enqueue(t.Context(), db, sqldb.Write{Set: set{"A", &log}, Item: "b"}),
			enqueue(t.Context(), db, sqldb.Write{Set: set{"A", &log}, Item: "c"}),
		}
		release()
		for _, result := range waiting {
			results = append(results, <-result)
		}
		return results
	}

	for i, err := range batch(true) {
		if !errors.Is(err, hookErr) {
			t.Errorf("write %d: got %v, want %v", i, err, hookErr)
		}
	}
	if want := []string{"before", "rolled back"}; !slices.Equal(calls, want) {
		t.Errorf("hooks: got %q, want %q", calls, want)
	}
	wantThings(t, db)

	for i, err := range batch(false) {
		if err != nil {
			t.Errorf("write %d of the next batch: %v", i, err)
		}
	}
	if want := []string{"before", "committed"}; !slices.Equal(calls, want) {
		t.Errorf("hooks: got %q, want %q", calls, want)
	}
	wantThings(t, db, "a", "b", "c")
}

func TestBeforeCommitWritesInTheSameTransaction(t *testing.T) {
	hooks := noHooks
	hooks.BeforeCommit = func(c *sqldb.Conn) error {
		_, err := c.Exec(`
INSERT INTO expressions (text) SELECT 'after ' || max(text) FROM expressions
WHERE text NOT LIKE 'after%' HAVING count(*) > 0`)
		return err
	}
	path := newPath(t)
	must.OK(t, open(t, path, noHooks).Close())
	db := open(t, path, hooks)
	must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error { return insert(c, "a") })))
	wantThings(t, db, "a", "after a")
}

func TestAfterCommitRunsAfterTheCommitAndBeforeWriteReturns(t *testing.T) {
	var db *DB
	var result <-chan error
	ran := false
	hooks := noHooks
	hooks.AfterCommit = func() {
		if result == nil {
			return // another write
		}
		ran = true
		wantThings(t, db, "a")
		time.Sleep(20 * time.Millisecond) // time for Write to return
		select {
		case err := <-result:
			t.Errorf("Write returned %v before the hook did", err)
		default:
		}
	}

	db = open(t, newPath(t), hooks)
	release := blockWriter(t, db)
	var own <-chan error
	own = enqueue(t.Context(), db, single(func(c *sqldb.Conn) error {
		result = own
		return insert(c, "a")
	}))
	release()
	must.OK(t, <-own)
	if !ran {
		t.Error("the hook did not run")
	}
}

func TestTryWriteReportsAFullQueue(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	release := blockWriter(t, db)
	var want []string
	for i := range engine.MaxBatch {
		name := fmt.Sprint("thing ", i)
		want = append(want, name)
		if !db.TryWrite(single(func(c *sqldb.Conn) error { return insert(c, name) })) {
			t.Fatalf("TryWrite %d reports a full queue", i)
		}
	}

	ran := false
	last := single(func(*sqldb.Conn) error { ran = true; return nil })
	if db.TryWrite(last) {
		t.Error("TryWrite queues a write in a full queue")
	}
	release()
	must.OK(t, db.Write(t.Context(), single(func(*sqldb.Conn) error { return nil })))
	if ran {
		t.Error("a write ran that TryWrite rejected")
	}
	wantThings(t, db, want...)
	if !db.TryWrite(last) {
		t.Error("TryWrite reports an empty queue as full")
	}
}

func TestWriteToAFullQueueCanBeCancelled(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	release := blockWriter(t, db)
	nothing := single(func(*sqldb.Conn) error { return nil })
	for db.TryWrite(nothing) {
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := db.Write(ctx, nothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
	release()
}

func TestWriteThatHasBegunIsNotCancelled(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	ctx, cancel := context.WithCancel(t.Context())
	must.OK(t, db.Write(ctx, single(func(c *sqldb.Conn) error {
		cancel()
		return insert(c, "a")
	})))
	wantThings(t, db, "a")
}

// SQLite rolls back the whole transaction after some errors. INSERT OR ROLLBACK
// makes it do so here.
func TestErrorThatEndsTheTransactionFailsTheBatch(t *testing.T) {
	rollbacks := 0
	hooks := noHooks
	hooks.AfterRollback = func() { rollbacks++ }
	db := open(t, newPath(t), hooks)
	must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error { return insert(c, "a") })))

	release := blockWriter(t, db)
	var log []string
	results := []<-chan error{
		enqueue(t.Context(), db, sqldb.Write{Set: set{"A", &log}, Item: "1"}),
		enqueue(t.Context(), db, single(func(c *sqldb.Conn) error {
			return c.Run("INSERT OR ROLLBACK INTO expressions (text) VALUES ('a')")
		})),
		enqueue(t.Context(), db, sqldb.Write{Set: set{"A", &log}, Item: "2"}),
	}
	release()

	for i, result := range results {
		if err := <-result; sqldb.ClassOf(err) != sqldb.Duplicate {
			t.Errorf("write %d: got %v, want the error that ended the transaction", i, err)
		}
	}
	if rollbacks != 1 {
		t.Errorf("AfterRollback ran %d times, want once", rollbacks)
	}
	wantThings(t, db, "a")
	must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error { return insert(c, "b") })))
	wantThings(t, db, "a", "b")
}
