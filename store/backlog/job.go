package backlog

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Task is the kind of a job.
type Task string

// The tasks. What a job's ref is the row id of is in parentheses.
const (
	// Expire settles the commits of a repo whose evidence or blocking overlaps have expired. The
	// job of a repo stays as long as it has commits that expire.
	Expire Task = "expire"
	// Distrust replaces the evidence of a distrusted identity (ref) in the table latest.
	Distrust Task = "distrust"
	// Map maps the statements of a repo by the rules of this release.
	Map Task = "map"
	// Settle settles all commits of a repo, or one (ref).
	Settle Task = "settle"
	// Tree settles the commits that have a tree (ref), and Merges the merges of a commit (ref),
	// because the evidence that they inherit has changed.
	Tree   Task = "tree"
	Merges Task = "merges"
	// Gaps settles the commits of a repo for whose state an object was not known.
	Gaps Task = "gaps"
	// Close closes the violations of a repo up to one (ref) that are about the same predicate, and
	// Excuse those of the same commit, too.
	Close  Task = "close"
	Excuse Task = "excuse"
	// Log logs what is known of the commits of a repo that an earlier release has registered.
	Log Task = "log"
	// Prune prunes the envelopes or events that a repo does not keep (ref). Its jobs stay as long as the repo
	// does not keep everything.
	Prune Task = "prune"
)

// What a job of the task Prune is about: its ref.
const (
	Envelopes = 1 + iota
	Events
	RadarEvents // which have an index by org
)

// tasks lists all tasks, in the order in which an org has its turns.
var tasks = [...]Task{
	Expire, Map, Distrust, Settle, Tree, Merges, Gaps, Close, Excuse, Log,
	Prune,
}

// yields reports whether the writes of a task let those that record go first.
func (t Task) yields() bool { return t == Map || t == Log || t == Prune }

// A Job is a row of the backlog.
type Job struct {
	Repo  int64
	Task  Task
	Ref   int64
	Org   int64
	Cause ledger.Cause
	// Position is the row id up to which the job is done. Again reports whether it was asked for again
	// since it began.
	Position int64
	Again    bool
	// Since is when the job was asked for. It has no turn before the time NotBefore.
	Since, NotBefore ledger.Time
	// tries counts the turns that failed in a row.
	tries int64
}

const (
	insertJob = `
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before) `
	jobColumns = 9

	// mergeJob joins a job with one that waits. The policy is the weakest cause: by it, only those
	// commits are settled that the present version has not been applied to. A job that has failed
	// keeps its time.
	mergeJob = `
ON CONFLICT (repo_id, kind, ref) DO UPDATE SET
  cause_type = CASE excluded.cause_type WHEN 'policy' THEN backlog.cause_type ELSE excluded.cause_type END,
  cause_id = CASE excluded.cause_type WHEN 'policy' THEN backlog.cause_id ELSE excluded.cause_id END,
  again = CASE WHEN backlog.position > 0 THEN 1 ELSE 0 END,
  not_before = CASE WHEN backlog.tries = 0 AND excluded.not_before < backlog.not_before THEN excluded.not_before
    ELSE backlog.not_before END`
	// earlierJob has a job that waits run earlier, unless it has failed.
	earlierJob = `
ON CONFLICT (repo_id, kind, ref) DO UPDATE SET since = excluded.since, not_before = excluded.not_before
WHERE backlog.tries = 0 AND excluded.not_before < backlog.not_before`
	// keepJob leaves a job that waits as it is.
	keepJob = " ON CONFLICT (repo_id, kind, ref) DO NOTHING"
)

func newRows(conflict string) *sqldb.Rows {
	return sqldb.NewRows(insertJob+"VALUES ", conflict, jobColumns)
}

func (j *Job) addTo(rows *sqldb.Rows) {
	rows.Add(j.Repo, string(j.Task), j.Ref, j.Org, string(j.Cause.Type), j.Cause.ID, int64(0), int64(j.Since),
		int64(j.NotBefore))
}

const selectJob = `
SELECT repo_id, kind, ref, org_id, cause_type, cause_id, position, again, since, not_before, tries FROM backlog `

func scanJob(row sqldb.Scanner) (j Job, err error) {
	return j, row.Scan(&j.Repo, &j.Task, &j.Ref, &j.Org, &j.Cause.Type, &j.Cause.ID, &j.Position, &j.Again, &j.Since,
		&j.NotBefore, &j.tries)
}

// isFree is the condition that no other server works on a job. Its parameters are this server and the
// time.
const isFree = "(holder = ? OR held_until <= ?)"

// TurnTime is how long an org has its turn for a task, but for the last step.
const TurnTime = 100 * time.Millisecond
