package store

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// The table backlog holds all that is done later, in the background. A write adds a job in its own
// transaction, so none is lost in a crash.

// A task is the kind of a job.
type task string

// The tasks. What a job's ref is the row id of is in parentheses.
const (
	// taskExpire settles the commits of a repo whose evidence or blocking overlaps have expired. The
	// job of a repo stays as long as it has commits that expire.
	taskExpire task = "expire"
	// taskDistrust replaces the evidence of a distrusted identity (ref) in the table latest.
	taskDistrust task = "distrust"
	// taskMap maps the statements of a repo by the rules of this release.
	taskMap task = "map"
	// taskSettle settles all commits of a repo, or one (ref).
	taskSettle task = "settle"
	// taskTree settles the commits that have a tree (ref), and taskMerges the merges of a commit (ref),
	// because the evidence that they inherit has changed.
	taskTree   task = "tree"
	taskMerges task = "merges"
	// taskClose closes the violations of a repo up to one (ref) that are about the same predicate, and
	// taskExcuse those of the same commit, too.
	taskClose  task = "close"
	taskExcuse task = "excuse"
	// taskLog logs what is known of the commits of a repo that an earlier release has registered.
	taskLog task = "log"
	// taskPrune prunes the envelopes or events that a repo does not keep (ref). Its jobs stay as long as the repo
	// does not keep everything.
	taskPrune task = "prune"
)

// tasks lists all tasks, in the order in which an org has its turns.
var tasks = [...]task{
	taskExpire, taskMap, taskDistrust, taskSettle, taskTree, taskMerges, taskClose, taskExcuse, taskLog,
	taskPrune,
}

// yields reports whether the writes of a task let those that record go first.
func (t task) yields() bool { return t == taskMap || t == taskLog || t == taskPrune }

// A job is a row of the backlog.
type job struct {
	repo  int64
	task  task
	ref   int64
	org   int64
	cause ledger.Cause
	// position is the row id up to which the job is done. again reports whether it was asked for again
	// since it began.
	position int64
	again    bool
	// since is when the job was asked for. It has no turn before the time notBefore.
	since, notBefore ledger.Time
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

func newJobs(conflict string) *sqldb.Rows {
	return sqldb.NewRows(insertJob+"VALUES ", conflict, jobColumns)
}

func (j *job) addTo(rows *sqldb.Rows) {
	rows.Add(j.repo, string(j.task), j.ref, j.org, string(j.cause.Type), j.cause.ID, int64(0), int64(j.since),
		int64(j.notBefore))
}

const selectJob = `
SELECT repo_id, kind, ref, org_id, cause_type, cause_id, position, again, since, not_before, tries FROM backlog `

func scanJob(row sqldb.Scanner) (j job, err error) {
	return j, row.Scan(&j.repo, &j.task, &j.ref, &j.org, &j.cause.Type, &j.cause.ID, &j.position, &j.again, &j.since,
		&j.notBefore, &j.tries)
}

// isFree is the condition that no other server works on a job. Its parameters are this server and the
// time.
const isFree = "(holder = ? OR held_until <= ?)"

// turnTime is how long an org has its turn for a task, but for the last step.
const turnTime = 100 * time.Millisecond
