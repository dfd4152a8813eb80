package store

import (
	"time"

	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// NewReader returns a store on an engine that only reads. Close closes the engine.
func NewReader(db sqldb.Engine, o Options) *Store {
	s := newStore(o, "")
	s.db.Engine, s.db.Clock = db, txn.NewClock(o.now(time.Now), o.monotonic(), s.db.Log)
	return s
}

// Recheck derives the states of the next commits of a repo again, after the row id after. It
// writes nothing. Commits that are DEPLOYED stay so whatever their evidence is, and may have another standing.
func (s *Store) Recheck(ctx context.Context, repoID, after int64) (Recheck, error) {
	return read(ctx, s, txn.ForWrite(""), func(rd reader) (r Recheck, err error) {
		d, err := rd.deriverByID(repoID)
		if err != nil {
			return r, err
		}
		commits, err := all(rd, scanCommitRow,
			selectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", repoID, after, maxSettled)
		if err != nil || len(commits) == 0 {
			return r, err
		}
		r.Last, r.Commits = commits[len(commits)-1].id, int64(len(commits))
		plan, err := rd.planOf(repoID, after, r.Last)
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
			if err := rd.recheck(c, plan, &r); err != nil {
				return r, err
			}
		}
		return r, nil
	})
}

// recheck derives the state of a commit again, unless that is planned.
func (rd reader) recheck(c *subject, p plan, r *Recheck) error {
	if c.isDue(rd.Now) || len(c.unevaluated) > 0 || p.includes(c.id) {
		r.Pending++
		isPlanned, err := rd.isPlanned(c, p)
		if err == nil && !isPlanned {
			r.differ(c.sha, "its state is to be derived again, and that is not planned")
		}
		return err
	}

	if c.expires != 0 && !p.expires(c.expires) {
		r.differ(c.sha, "its evidence expires at %s, and it is not planned to settle it then", c.expires)
		return nil
	}

	derived := c.d.contract.Outcome(c.facts, rd.Now)
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

// A plan says which commits of a repo are to be settled again.
type plan struct {
	after int64          // all after this one; -1: none
	one   map[int64]bool // single ones
	// expiry is when the next ones are settled because evidence has expired; 0: never. It may be late until
	// the time mayWait.
	expiry, mayWait ledger.Time
}

// includes reports whether a commit is planned to be settled again.
func (p plan) includes(commit int64) bool { return p.after >= 0 && commit > p.after || p.one[commit] }

// expires reports whether what expires at a time is planned to be settled then.
func (p plan) expires(at ledger.Time) bool { return p.expiry != 0 && p.expiry <= max(at, p.mayWait) }

// planOf reads which commits of a repo are to be settled again: of single ones, those with a row id after the first
// one, up to the last.
func (rd reader) planOf(repoID, first, last int64) (plan, error) {
	p := plan{after: -1, one: make(map[int64]bool)}

	err := backlog.Settling(rd.Reader, repoID, first, last, func(j backlog.Job) {
		switch {
		case j.Task == backlog.Expire:
			p.expiry, p.mayWait = j.NotBefore, j.MayWait(rd.Now)
		case j.Ref != 0:
			p.one[j.Ref] = true
		case j.Again:
			p.after = 0
		default:
			p.after = j.Position
		}
	})
	if err != nil {
		return p, fmt.Errorf("read what is to be settled: %w", err)
	}
	return p, nil
}

// isPlanned reports whether the background is going to derive a commit that is due.
func (rd reader) isPlanned(c *subject, p plan) (bool, error) {
	if c.hasExpired(rd.Now) && p.expires(c.expires) || p.includes(c.id) {
		return true, nil
	}
	if !c.isOutdated() {
		return false, nil
	}
	cause, err := rd.inheritedCause(c)
	return cause.ID != "", err
}
