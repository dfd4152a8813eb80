package store

import (
	"time"

	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// NewReader returns a store on an engine that only reads. Close closes the engine.
func NewReader(db sqldb.Engine, o Options) *Store {
	s := newStore(o)
	s.db, s.clock = db, newClock(o.now(time.Now), o.monotonic(), s.log)
	return s
}

// Recheck derives the states of the next commits of a repo again, after the row id after. It
// writes nothing. Commits that are DEPLOYED stay so whatever their evidence is, and may have another standing.
func (s *Store) Recheck(ctx context.Context, repoID, after int64) (Recheck, error) {
	return read(ctx, s, forWrite(""), func(rd reader) (r Recheck, err error) {
		d, err := rd.deriverByID(repoID)
		if err != nil {
			return r, err
		}
		commits, err := all(rd, scanCommitRow,
			selectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", repoID, after, evaluateBatch)
		if err != nil || len(commits) == 0 {
			return r, err
		}
		r.Last, r.Commits = commits[len(commits)-1].id, int64(len(commits))
		plans, err := rd.plansOf(repoID)
		if err != nil {
			return r, err
		}
		if r.Known, err = rd.knownOfAll(commits); err != nil {
			return r, err
		}
		for _, check := range []func([]*commitRow, *Recheck) error{rd.recheckUnproven, rd.recheckTrees, rd.recheckChanges} {
			if err := check(commits, &r); err != nil {
				return r, err
			}
		}

		var list []*subject
		for _, c := range commits {
			if !c.isHistory() {
				list = append(list, &subject{commitRow: c, d: d})
			}
		}
		if err := rd.gather(list); err != nil {
			return r, err
		}
		for _, c := range list {
			if err := rd.recheck(c, plans, &r); err != nil {
				return r, err
			}
		}
		return r, nil
	})
}

// recheck derives the state of a commit again, unless that is planned.
func (rd reader) recheck(c *subject, plans plans, r *Recheck) error {
	if c.isDue(rd.now) || len(c.unevaluated) > 0 || plans.include(c.id) {
		r.Pending++
		isPlanned, err := rd.isPlanned(c, plans)
		if err == nil && !isPlanned {
			r.differ(c.sha, "its state is to be derived again, and that is not planned")
		}
		return err
	}

	derived := c.d.contract.Outcome(c.facts, rd.now)
	failed := derived.Failed || c.state == ledger.Deployed && derived.Standing < ledger.Promotable
	switch {
	case derived.State != c.state:
		r.Moves = append(r.Moves, ledger.Move{Commit: c.sha, From: c.state, To: derived.State})
	case c.d.contract.Radar.Blocks():
	case c.keepsStanding() && derived.Standing != c.standing:
		r.Standings = append(r.Standings, ledger.Move{Commit: c.sha, From: c.standing, To: derived.Standing})
	case derived.Expires != c.expires:
		r.differ(c.sha, "its evidence is said to expire at %s, and does at %s", c.expires, derived.Expires)
	case failed != (c.failingSince > 0):
		r.differ(c.sha, "it is said that a requirement fails: %t, and by its evidence: %t", c.failingSince > 0, failed)
	}
	return nil
}

// plans are up to which commits the states of a repo are to be derived again; -1 for none.
type plans struct{ derivedTo, evaluatedTo int64 }

// include reports whether a commit is planned to be derived again, though it is not due.
func (p plans) include(commit int64) bool { return p.derivedTo >= 0 && commit > p.derivedTo }

// plansOf reads which states of a repo are to be derived again.
func (rd reader) plansOf(repoID int64) (plans, error) {
	p := plans{-1, -1}
	err := rd.Row(`
SELECT coalesce((SELECT done FROM rederivations WHERE repo_id = ?), -1),
  coalesce((SELECT done FROM reevaluations WHERE repo_id = ?), -1)`, repoID, repoID).Scan(&p.derivedTo, &p.evaluatedTo)
	if err != nil {
		return p, fmt.Errorf("read the progress: %w", err)
	}
	return p, nil
}

// isPlanned reports whether the background is going to derive a commit that is due.
func (rd reader) isPlanned(c *subject, p plans) (bool, error) {
	if c.hasExpired(rd.now) || p.include(c.id) || p.evaluatedTo >= 0 && c.id > p.evaluatedTo {
		return true, nil
	}
	if !c.isOutdated() {
		return false, nil
	}
	cause, err := rd.inheritedCause(c)
	return cause.ID != "", err
}
