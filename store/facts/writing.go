package facts

import (
	"cmp"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A writing is what a write keeps in memory until it ends. Only the writer's goroutine uses it.
type writing struct {
	jobs *backlog.Jobs
	// rows buffers the rows that the write inserts. It is empty between writes.
	rows *buffers
	// work lists the commits whose state must be derived again.
	work Worklist
	// dirty lists the changed commits that are not yet in a buffer.
	dirty []*CommitRow
	// latest holds the rows to be written to the table latest. A key that the write sets several times is
	// written once.
	latest map[LatestKey]int64
	// inherited is the evidence of this write that other commits inherit.
	inherited inherited
	// claimed has the changed paths that the write has stored, by commit.
	claimed map[int64][]string
	// cached reports whether the caches contain rows that the write has inserted.
	cached bool
	counts
}

func newWriting(jobs *backlog.Jobs) writing {
	return writing{
		jobs: jobs, rows: newBuffers(), latest: make(map[LatestKey]int64), claimed: make(map[int64][]string),
		counts: newCounts(),
	}
}

// done returns an error if the write has left states to be derived.
func (w *writing) done() error {
	if w.HasWork() {
		return errors.New("the worklist is not empty at the end of the write")
	}
	return nil
}

// flush writes all buffered rows.
func (w *writing) flush(t *txn.Tx) error {
	w.bufferDirty()
	for key, attestation := range w.latest {
		w.rows.latest.Add(key.Commit, key.Predicate, key.Slot, key.Signer, attestation)
	}
	clear(w.latest)
	w.inherited.bufferTo(w.rows)
	return w.rows.flush(t)
}

// keep adds what a successful write has counted.
func (w *writing) keep(t *txn.Tx) {
	w.counts.keep(t.Now)
	w.end()
}

// discard drops what a failed write has left in memory.
func (w *writing) discard() {
	w.rows.reset()
	w.end()
}

// end prepares for the next write.
func (w *writing) end() {
	w.work, w.inherited, w.dirty, w.cached = Worklist{}, inherited{}, w.dirty[:0], false
	clear(w.latest)
	clear(w.claimed)
	clear(w.left)
}

// reset prepares for the next transaction.
func (w *writing) reset() {
	w.discard()
	clear(w.total)
}

// A LatestKey is the key of the table latest, which holds the latest attestation of
// each signer for each predicate of a commit.
type LatestKey struct {
	Commit, Predicate int64
	Slot              string
	Signer            int64
}

// setLatest sets the latest attestation of a key. It is written by flush.
func (w *writing) setLatest(key LatestKey, attestation int64) {
	w.latest[key] = attestation
}

// MarkDirty schedules a changed commit to be written by flush.
func (w *writing) MarkDirty(c *CommitRow) {
	if !c.isDirty {
		c.isDirty = true
		w.dirty = append(w.dirty, c)
	}
}

// bufferDirty adds the dirty commits to the buffers.
func (w *writing) bufferDirty() {
	for _, c := range w.dirty {
		rows := w.rows.updated
		switch {
		case c.isNew:
			rows = w.rows.commits
		case c.IsMoved:
			rows = w.rows.moved
		}
		rows.Add(c.ID, c.RepoID, c.SHA, int64(c.State), int64(c.StateSince), int64(c.registeredAt),
			int64(c.PolicyVersion), int64(c.Expires), c.Attestations, c.Newest, c.Basis, c.Distrusts,
			int64(c.FailingSince), int64(c.Standing), c.Gap)
		if c.Expires != 0 {
			w.jobs.Expire(c.RepoID, c.Expires)
		}
		c.isNew, c.isDirty, c.IsMoved = false, false, false
	}
	w.dirty = w.dirty[:0]
}

// AddWork adds commits to the worklist, to derive their state again.
func (w *writing) AddWork(cause ledger.Cause, commits ...int64) {
	for _, id := range commits {
		w.work.add(id, WorkEntry{Cause: cause})
	}
}

// A Worklist lists the commits of one repo whose state a write must derive again.
// It contains each commit once, in the order in which they were added.
type Worklist struct {
	Order   []int64
	Entries map[int64]WorkEntry
}

// A WorkEntry says why the state of a commit is derived again.
type WorkEntry struct {
	Cause ledger.Cause // the last cause; empty for none
	// Reached reports whether a job has reached the commit. If the commit is due,
	// it is settled with the cause that made it due.
	Reached bool
	// Runs is the cause if another commit may run in an environment; empty for none.
	Runs ledger.Cause
}

func (w *Worklist) add(commitID int64, e WorkEntry) {
	if w.Entries == nil {
		w.Entries = make(map[int64]WorkEntry)
	}
	before, known := w.Entries[commitID]
	if !known {
		w.Order = append(w.Order, commitID)
	}
	w.Entries[commitID] = WorkEntry{
		cmp.Or(e.Cause, before.Cause), e.Reached || before.Reached, cmp.Or(e.Runs, before.Runs),
	}
}

// AddWorkEntry adds a commit to the worklist.
func (w *writing) AddWorkEntry(commitID int64, e WorkEntry) { w.work.add(commitID, e) }

// TakeWork returns the worklist, which is empty then.
func (w *writing) TakeWork() Worklist {
	work := w.work
	w.work = Worklist{}
	return work
}

// HasWork reports whether the worklist is not empty.
func (w *writing) HasWork() bool { return len(w.work.Order) > 0 }
