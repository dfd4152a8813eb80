package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// hold keeps the writer busy, so that the writes queued until release share the
// next transaction. The caller must call release.
func hold(t *testing.T, db *DB) (release func()) {
	t.Helper()
	begun, released := make(chan struct{}), make(chan struct{})
	answer := make(chan error, 1)
	go func() {
		answer <- db.Write(context.Background(), do1(func(*sqldb.Conn) error {
			close(begun)
			<-released
			return nil
		}))
	}()
	<-begun
	return func() {
		t.Helper()
		close(released)
		check(t, <-answer)
	}
}

// enqueue queues a write behind the waiting ones, and returns the channel for its
// answer. The writer must be held.
func enqueue(ctx context.Context, db *DB, w sqldb.Write) <-chan error {
	answer := make(chan error, 1)
	waiting := len(db.writer.queue)
	go func() { answer <- db.Write(ctx, w) }()
	for len(db.writer.queue) == waiting {
		time.Sleep(100 * time.Microsecond)
	}
	return answer
}

// A set inserts things and logs the items of each call. An item that starts with
// "faulty" fails after its insertion, one that starts with "panic" panics.
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
			return errors.New("a fault of " + name)
		case strings.HasPrefix(name, "panic"):
			panic("a panic of " + name)
		}
	}
	return nil
}

func TestWritesOfASet(t *testing.T) {
	cases := []struct {
		name   string
		writes string // the set and the item of each; - means no set; ! ends its context before it begins
		calls  string // what was written together, in order
		disk   string
		faults string // of the items that fail
	}{
		{"writes of one set are written together", "A:1 A:2 A:3", "A[1 2 3]", "1 2 3", ""},
		{"one write of a set is written alone", "A:1", "A[1]", "1", ""},
		{"writes of two sets are written apart, in order", "A:1 A:2 B:3 A:4", "A[1 2] B[3] A[4]", "1 2 3 4", ""},
		{"a write of no set comes between", "A:1 A:2 -:3 A:4 A:5", "A[1 2] -[3] A[4 5]", "1 2 3 4 5", ""},
		{"writes of no set are written one by one", "-:1 -:2", "-[1] -[2]", "1 2", ""},
		{"only the faulty item fails", "A:1 A:faulty A:3", "A[1 faulty 3] A[1] A[faulty] A[3]", "1 3", "faulty"},
		{
			"two faulty items fail", "A:faulty1 A:2 A:faulty3",
			"A[faulty1 2 faulty3] A[faulty1] A[2] A[faulty3]", "2", "faulty1 faulty3",
		},
		{"a faulty item alone is written once", "A:faulty", "A[faulty]", "", "faulty"},
		{"a panic is the fault of one item", "A:1 A:panic A:3", "A[1 panic 3] A[1] A[panic] A[3]", "1 3", "panic"},
		{"an item that is there fails alone", "-:1 A:1x A:1 A:2", "-[1] A[1x 1 2] A[1x] A[1] A[2]", "1 1x 2", "1"},
		{
			"a faulty set leaves others alone", "-:1 A:faulty A:2 B:3",
			"-[1] A[faulty 2] A[faulty] A[2] B[3]", "1 2 3", "faulty",
		},
		{"a fault of no set leaves others alone", "A:1 -:faulty A:2", "A[1] -[faulty] A[2]", "1 2", "faulty"},
		{"a panic of no set leaves others alone", "A:1 -:panic A:2", "A[1] -[panic] A[2]", "1 2", "panic"},
		{"an item that was withdrawn is left out", "A:1 A:2! A:3", "A[1 3]", "1 3", "2"},
		{
			"an item that was withdrawn is left out of the second attempt", "A:1! A:faulty A:3",
			"A[faulty 3] A[faulty] A[3]", "3", "1 faulty",
		},
		{"a set that was withdrawn is not written", "A:1! A:2! -:3", "-[3]", "3", "1 2"},
		{"a write that was withdrawn is not written", "-:1! -:2", "-[2]", "2", "1"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			commits := 0
			hooks := noHooks
			hooks.AfterCommit = func() { commits++ }
			db := open(t, newPath(t), hooks)
			release := hold(t, db)
			var calls, faults []string
			answers := make(map[string]<-chan error)
			withdrawn, withdraw := context.WithCancel(t.Context())
			var items []string
			for write := range strings.FieldsSeq(tc.writes) {
				of, item, _ := strings.Cut(write, ":")
				ctx := t.Context()
				if name, ends := strings.CutSuffix(item, "!"); ends {
					item, ctx = name, withdrawn
				}
				w := sqldb.Write{Set: set{of, &calls}, Item: item}
				if of == "-" {
					w = do1(func(c *sqldb.Conn) error { return set{"-", &calls}.WriteAll(c, []any{item}) })
				}
				key := fmt.Sprint(len(items), " ", item)
				items, answers[key] = append(items, key), enqueue(ctx, db, w)
			}
			withdraw()
			commits = 0
			release()
			for _, key := range items {
				_, item, _ := strings.Cut(key, " ")
				err := <-answers[key]
				if err == nil {
					continue
				}
				faults = append(faults, item)
				own := strings.Contains(err.Error(), " of "+item) || errors.Is(err, context.Canceled) ||
					sqldb.ClassOf(err) == sqldb.Duplicate
				if !own {
					t.Errorf("%s got the error of another item: %v", item, err)
				}
			}
			if got := strings.Join(calls, " "); got != tc.calls {
				t.Errorf("written together: %s, want %s", got, tc.calls)
			}
			if got := strings.Join(faults, " "); got != tc.faults {
				t.Errorf("failed: %s, want %s", got, tc.faults)
			}
			wantThings(t, db, strings.Fields(tc.disk)...)
			if commits != 2 { // with that of the write that held the writer
				t.Errorf("%d transactions, want the writes in one", commits-1)
			}
		})
	}
}

func TestAFaultBeforeTheCommitFailsTheWholeBatch(t *testing.T) {
	fault := errors.New("a fault before the commit")
	var fails bool
	var calls, log []string
	db := open(t, newPath(t), sqldb.Hooks{
		BeforeCommit: func(c *sqldb.Conn) error {
			calls = append(calls, "before")
			if fails {
				fails = false
				return errors.Join(insert(c, "gathered"), fault)
			}
			return nil
		},
		AfterCommit:   func() { calls = append(calls, "committed") },
		AfterRollback: func() { calls = append(calls, "undone") },
	})
	// batch writes three things in one transaction and returns the answers.
	batch := func(failing bool) (answers []error) {
		release := hold(t, db)
		waiting := []<-chan error{
			enqueue(t.Context(), db, do1(func(c *sqldb.Conn) error {
				fails, calls = failing, nil
				return insert(c, "a")
			})),
			enqueue(t.Context(), db, sqldb.Write{Set: set{"A", &log}, Item: "b"}),
			enqueue(t.Context(), db, sqldb.Write{Set: set{"A", &log}, Item: "c"}),
		}
		release()
		for _, answer := range waiting {
			answers = append(answers, <-answer)
		}
		return answers
	}

	for i, err := range batch(true) {
		if !errors.Is(err, fault) {
			t.Errorf("write %d: got %v, want the fault", i, err)
		}
	}
	if want := []string{"before", "undone"}; !slices.Equal(calls, want) {
		t.Errorf("the hooks ran as %q, want %q", calls, want)
	}
	wantThings(t, db)

	for i, err := range batch(false) {
		if err != nil {
			t.Errorf("write %d of the next batch: %v", i, err)
		}
	}
	if want := []string{"before", "committed"}; !slices.Equal(calls, want) {
		t.Errorf("the hooks ran as %q, want %q", calls, want)
	}
	wantThings(t, db, "a", "b", "c")
}

func TestWhatIsGatheredIsWrittenWithTheBatch(t *testing.T) {
	hooks := noHooks
	hooks.BeforeCommit = func(c *sqldb.Conn) error {
		_, err := c.Exec(`
INSERT INTO things (name) SELECT 'after ' || max(name) FROM things
WHERE name NOT LIKE 'after%' HAVING count(*) > 0`)
		return err
	}
	path := newPath(t)
	check(t, open(t, path, noHooks).Close())
	db := open(t, path, hooks)
	check(t, db.Write(t.Context(), do1(func(c *sqldb.Conn) error { return insert(c, "a") })))
	wantThings(t, db, "a", "after a")
}

func TestAfterCommitComesBetweenTheDiskAndTheAnswers(t *testing.T) {
	var db *DB
	var answer <-chan error
	ran := false
	hooks := noHooks
	hooks.AfterCommit = func() {
		if answer == nil {
			return // another write
		}
		ran = true
		wantThings(t, db, "a")
		time.Sleep(20 * time.Millisecond) // time for an answer to arrive
		select {
		case err := <-answer:
			t.Errorf("the caller got the answer %v before the hook ran", err)
		default:
		}
	}
	db = open(t, newPath(t), hooks)
	release := hold(t, db)
	var queued <-chan error
	queued = enqueue(t.Context(), db, do1(func(c *sqldb.Conn) error {
		answer = queued
		return insert(c, "a")
	}))
	release()
	check(t, <-queued)
	if !ran {
		t.Error("the hook did not run")
	}
}

func TestTryWriteReportsAFullQueue(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	release := hold(t, db)
	var want []string
	for i := range maxBatch {
		name := fmt.Sprint("thing ", i)
		want = append(want, name)
		if !db.TryWrite(do1(func(c *sqldb.Conn) error { return insert(c, name) })) {
			t.Fatalf("write %d finds no room", i)
		}
	}
	ran := false
	last := do1(func(*sqldb.Conn) error { ran = true; return nil })
	if db.TryWrite(last) {
		t.Error("a write finds room in a full queue")
	}
	release()
	check(t, db.Write(t.Context(), do1(func(*sqldb.Conn) error { return nil })))
	if ran {
		t.Error("the write that found the queue full has run")
	}
	wantThings(t, db, want...)
	if !db.TryWrite(last) {
		t.Error("a write finds no room in an empty queue")
	}
}

func TestAWriteGivesUpOnAFullQueueWithItsContext(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	release := hold(t, db)
	nothing := do1(func(*sqldb.Conn) error { return nil })
	for db.TryWrite(nothing) {
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := db.Write(ctx, nothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	release()
}

func TestAWriteThatHasBegunOutlivesItsContext(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	ctx, cancel := context.WithCancel(t.Context())
	check(t, db.Write(ctx, do1(func(c *sqldb.Conn) error {
		cancel()
		return insert(c, "a")
	})))
	wantThings(t, db, "a")
}

// SQLite rolls back a transaction by itself after some faults. Here INSERT OR
// ROLLBACK makes it do so.
func TestAFaultThatEndsTheTransactionFailsTheBatch(t *testing.T) {
	undone := 0
	hooks := noHooks
	hooks.AfterRollback = func() { undone++ }
	db := open(t, newPath(t), hooks)
	check(t, db.Write(t.Context(), do1(func(c *sqldb.Conn) error { return insert(c, "a") })))
	release := hold(t, db)
	var log []string
	answers := []<-chan error{
		enqueue(t.Context(), db, sqldb.Write{Set: set{"A", &log}, Item: "1"}),
		enqueue(t.Context(), db, do1(func(c *sqldb.Conn) error {
			return c.Run("INSERT OR ROLLBACK INTO things (name) VALUES ('a')")
		})),
		enqueue(t.Context(), db, sqldb.Write{Set: set{"A", &log}, Item: "2"}),
	}
	release()
	for i, answer := range answers {
		if err := <-answer; sqldb.ClassOf(err) != sqldb.Duplicate {
			t.Errorf("write %d: got %v, want the fault that ended the transaction", i, err)
		}
	}
	if undone != 1 {
		t.Errorf("AfterRollback ran %d times, want once", undone)
	}
	wantThings(t, db, "a")
	check(t, db.Write(t.Context(), do1(func(c *sqldb.Conn) error { return insert(c, "b") })))
	wantThings(t, db, "a", "b")
}
