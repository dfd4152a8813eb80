// Package backlog is the room of what is done later, in the background. A write adds a job in its own
// transaction, so none is lost in a crash; orgs and tasks take turns, and the rooms above do the steps of a job.
// Its table is backlog.
package backlog

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Jobs has the jobs that wait. Its methods are safe for concurrent use, except those with a txn.Tx, which the
// writer's goroutine calls.
type Jobs struct {
	db     *txn.DB
	server string        // its name, if there may be others; otherwise empty
	wake   chan struct{} // wakes Work

	// buffered holds the jobs that the write which runs adds at its end, each once.
	buffered map[jobKey]Job
	rows     *sqldb.Rows
	// left is what the write that runs leaves to the transaction, and total what all writes have.
	left, total left
}

// A jobKey is the key of the table backlog.
type jobKey struct {
	repo int64
	task Task
	ref  int64
}

// A left is what a write leaves to its transaction.
type left struct {
	wake bool // whether there are jobs that are due
	// expires holds, by repo, when the first of its changed commits expires.
	expires map[int64]ledger.Time
}

// New returns the room of a database. server is the name of this server, or empty if there are no others.
func New(db *txn.DB, server string) *Jobs {
	bl := &Jobs{
		db: db, server: server, wake: make(chan struct{}, 1),
		buffered: make(map[jobKey]Job), rows: newRows(mergeJob), left: newLeft(), total: newLeft(),
	}
	db.Attach(txn.Part{
		Flush: bl.flush, Keep: func(*txn.Tx) { bl.keep() }, Discard: bl.discard,
		BeforeCommit: bl.beforeCommit, AfterCommit: bl.afterCommit, AfterRollback: bl.reset,
	})
	return bl
}

// Later adds a job to the backlog, or joins it with the one that waits.
func (bl *Jobs) Later(t *txn.Tx, repoID int64, kind Task, ref int64, cause ledger.Cause) error {
	return bl.LaterFor(t, "FROM repos WHERE id = ?", kind, ref, cause, repoID)
}

// LaterFor is like Later, for the repos that a query finds.
func (bl *Jobs) LaterFor(t *txn.Tx, from string, kind Task, ref int64, cause ledger.Cause, args ...any) error {
	return bl.plan(t, kind, "SELECT id, ?, ?, org_id, ?, ?, 0, ?, ? "+from+mergeJob,
		append([]any{string(kind), ref, string(cause.Type), cause.ID, t.Now, t.Now}, args...)...)
}

// LaterEach adds jobs of a task that a query selects: the columns repo_id, ref, org_id, and the type and the id
// of the cause.
func (bl *Jobs) LaterEach(t *txn.Tx, kind Task, query string, args ...any) error {
	return bl.plan(t, kind,
		"SELECT repo_id, ?, ref, org_id, cause_type, cause_id, 0, ?, ? FROM ("+query+") listed WHERE 1 = 1"+
			mergeJob, append([]any{string(kind), t.Now, t.Now}, args...)...)
}

// Soon adds jobs without a cause to the repos that a query finds, or has those that wait run now.
func (bl *Jobs) Soon(t *txn.Tx, from string, kind Task, ref int64, args ...any) error {
	return bl.plan(t, kind, "SELECT id, ?, ?, org_id, '', '', 0, ?, ? "+from+earlierJob,
		append([]any{string(kind), ref, t.Now, t.Now}, args...)...)
}

func (bl *Jobs) plan(t *txn.Tx, kind Task, selected string, args ...any) error {
	if _, err := t.Exec(insertJob+selected, args...); err != nil {
		return fmt.Errorf("add a job of the task %s to the backlog: %w", kind, err)
	}
	bl.left.wake = true
	return nil
}

// SettleOrg has all commits of an org settled in the background, with a cause.
func (bl *Jobs) SettleOrg(t *txn.Tx, orgID int64, cause ledger.Cause) error {
	return bl.LaterFor(t, "FROM repos WHERE org_id = ? AND deleted_at = 0", Settle, 0, cause, orgID)
}

// PruneAll has the repos pruned that a condition with one parameter selects.
func (bl *Jobs) PruneAll(t *txn.Tx, where string, id int64) error {
	for ref := int64(Envelopes); ref <= RadarEvents; ref++ {
		if err := bl.Soon(t, "FROM repos WHERE "+where, Prune, ref, id); err != nil {
			return err
		}
	}
	return nil
}

// Buffer adds a job at the end of the write, or joins it with the one that waits. A write may buffer a job several
// times: the last counts.
func (bl *Jobs) Buffer(j Job) {
	bl.buffered[jobKey{j.Repo, j.Task, j.Ref}] = j
	bl.left.wake = true
}

// AddMissing adds those of some jobs that do not wait already.
func (bl *Jobs) AddMissing(t *txn.Tx, list []Job) error {
	rows := newRows(keepJob)
	for _, j := range list {
		j.addTo(rows)
	}
	if err := rows.Flush(t.Conn); err != nil {
		return fmt.Errorf("add jobs to the backlog: %w", err)
	}
	bl.left.wake = true
	return nil
}

// Expire has the commits of a repo settled that have expired at a time.
func (bl *Jobs) Expire(repoID int64, at ledger.Time) { bl.left.expire(repoID, at) }

// MakeDueBy has the jobs that wait longer than until a time run then, because the clock was put back.
func MakeDueBy(t *txn.Tx, at ledger.Time) error {
	_, err := t.Exec("UPDATE backlog SET not_before = ?, held_until = 0 WHERE not_before > ?", at, at)
	if err != nil {
		return fmt.Errorf("make jobs due: %w", err)
	}
	return nil
}

// flush writes the buffered jobs.
func (bl *Jobs) flush(t *txn.Tx) error {
	for _, j := range bl.buffered {
		j.addTo(bl.rows)
	}
	clear(bl.buffered)
	if err := bl.rows.Flush(t.Conn); err != nil {
		return fmt.Errorf("write jobs: %w", err)
	}
	return nil
}

// keep adds what a successful write has left.
func (bl *Jobs) keep() {
	for repo, at := range bl.left.expires {
		bl.total.expire(repo, at)
	}
	bl.total.wake = bl.total.wake || bl.left.wake
	bl.left.reset()
}

// discard drops what a failed write has left.
func (bl *Jobs) discard() {
	clear(bl.buffered)
	bl.rows.Reset()
	bl.left.reset()
}

// beforeCommit adds the jobs that settle expired commits, or has them run earlier.
func (bl *Jobs) beforeCommit(c *sqldb.Conn) error {
	for repo, at := range bl.total.expires {
		err := c.Queue(insertJob+"SELECT id, ?1, 0, org_id, '', '', 0, ?2, ?2 FROM repos WHERE id = ?3"+earlierJob,
			string(Expire), at, repo)
		if err != nil {
			return fmt.Errorf("plan to settle expired commits: %w", err)
		}
	}
	return nil
}

// afterCommit has Work look for jobs immediately if some are due.
func (bl *Jobs) afterCommit() {
	if bl.total.wake {
		select {
		case bl.wake <- struct{}{}:
		default:
		}
	}
	bl.reset()
}

// reset prepares for the next transaction.
func (bl *Jobs) reset() {
	bl.discard()
	bl.total.reset()
}

func newLeft() left { return left{expires: make(map[int64]ledger.Time)} }

func (l *left) expire(repoID int64, at ledger.Time) {
	if before, ok := l.expires[repoID]; !ok || at < before {
		l.expires[repoID] = at
	}
}

func (l *left) reset() {
	l.wake = false
	clear(l.expires)
}
