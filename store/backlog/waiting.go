package backlog

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Waiting is what waits of a task in an org: jobs that are due, or have failed.
type Waiting struct {
	Org, Task string
	// Jobs counts them, up to MaxJobs, Failing those that have failed, and Oldest is when the first of them
	// was asked for, or was due.
	Jobs, Failing int64
	Oldest        ledger.Time
	// Error is why one of them has failed; empty if none has.
	Error string
}

// maxOrgs limits the orgs that are listed of a task.
const maxOrgs = 1000

// MaxJobs limits the jobs that are counted of a task in an org.
const MaxJobs = 1000

// isWaiting is the condition that a job is due, or has failed. Its parameter is the time.
const isWaiting = "(not_before <= ? OR tries > 0)"

// Tasks returns the names of all tasks.
func Tasks() []string {
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = string(t)
	}
	return names
}

// Unsettled returns since when states of a repo's commits are to be derived again; nil if not for long.
func Unsettled(rd txn.Reader, repoID int64) (*ledger.Unsettled, error) {
	var jobs int64
	var u ledger.Unsettled
	err := rd.Row(`
SELECT count(*), coalesce(min(since), 0), coalesce(max(CASE WHEN tries > 0 THEN 1 ELSE 0 END), 0) FROM (
  SELECT since, tries FROM backlog WHERE repo_id = ? AND kind NOT IN ('log', 'prune') AND `+isWaiting+` LIMIT ?
) counted`,
		repoID, rd.Now, MaxJobs).Scan(&jobs, &u.Since, &u.Failing)
	if err != nil {
		return nil, fmt.Errorf("read what is to be settled: %w", err)
	}
	if jobs == 0 || !u.Failing && rd.Now.Sub(u.Since) < ledger.UnsettledAfter {
		return nil, nil
	}
	return &u, nil
}

// List returns what waits to be done in the background, by task and org.
func List(rd txn.Reader) (list []Waiting, err error) {
	type place struct {
		id   int64
		name string
	}
	for _, kind := range tasks {
		orgs, err := txn.All(rd, func(row txn.Scanner) (p place, err error) { return p, row.Scan(&p.id, &p.name) }, `
SELECT id, name FROM orgs o WHERE EXISTS (
  SELECT 1 FROM backlog WHERE org_id = o.id AND kind = ? AND `+isWaiting+`) ORDER BY id LIMIT ?`,
			string(kind), rd.Now, maxOrgs)
		if err != nil {
			return nil, fmt.Errorf("find waiting jobs: %w", err)
		}

		for _, o := range orgs {
			b := Waiting{Org: o.name, Task: string(kind)}
			err := rd.Row(`
SELECT count(*), coalesce(sum(CASE WHEN tries > 0 THEN 1 ELSE 0 END), 0), coalesce(min(since), 0),
  coalesce(max(error), '')
FROM (SELECT tries, since, error FROM backlog WHERE org_id = ? AND kind = ? AND `+isWaiting+` LIMIT ?) counted`,
				o.id, string(kind), rd.Now, MaxJobs).Scan(&b.Jobs, &b.Failing, &b.Oldest, &b.Error)
			if err != nil {
				return nil, fmt.Errorf("count waiting jobs: %w", err)
			}
			list = append(list, b)
		}
	}
	return list, nil
}

// Settling calls fn with the jobs that settle commits of a repo: all, the expired ones or those with a gap, and of
// single ones those with a row id after first, up to last.
func Settling(rd txn.Reader, repoID, first, last int64, fn func(Job)) error {
	return rd.Each(func(row txn.Scanner) error {
		j, err := scanJob(row)
		if err == nil {
			fn(j)
		}
		return err
	}, selectJob+"WHERE repo_id = ? AND kind IN ('settle', 'expire', 'gaps') AND (ref = 0 OR ref > ? AND ref <= ?)",
		repoID, first, last)
}

// MayWait returns until when a job that is due now may wait: longer than now only if it has failed.
func (j *Job) MayWait(now ledger.Time) ledger.Time {
	if j.tries > 0 {
		return now.Add(maxWait)
	}
	return now
}
