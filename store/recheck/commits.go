package recheck

import (
	"context"
	"fmt"
	"math"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Recheck derives the states of the next commits of a repo again, after the row id after. It
// writes nothing. Commits that are DEPLOYED stay so whatever their evidence is, and may have another standing.
func (re *Rechecker) Recheck(ctx context.Context, repoID, after int64) (Result, error) {
	return txn.Read(ctx, re.db, txn.ForWrite(""), func(rd txn.Reader) (r Result, err error) {
		d, err := re.facts.DeriverByID(rd, repoID)
		if err != nil {
			return r, err
		}
		commits, err := txn.All(rd, facts.ScanCommitRow,
			facts.SelectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", repoID, after, states.MaxSettled)
		if err != nil || len(commits) == 0 {
			return r, err
		}
		r.Last, r.Commits = commits[len(commits)-1].ID, int64(len(commits))
		plan, err := planOf(rd, repoID, after, r.Last)
		if err != nil {
			return r, err
		}
		if r.Known, err = facts.KnownOfAll(rd, commits); err != nil {
			return r, err
		}
		for _, check := range []func(txn.Reader, []*facts.CommitRow, *Result) error{
			checkUnproven, checkTrees, checkChanges,
		} {
			if err := check(rd, commits, &r); err != nil {
				return r, err
			}
		}

		var list []*facts.Commit
		hadGap := make(map[int64]bool)
		for _, c := range commits {
			if !c.IsHistory() {
				list = append(list, &facts.Commit{CommitRow: c, Deriver: d})
				hadGap[c.ID] = c.Gap // which Gather finds again
			}
		}
		met, err := readMet(rd, list)
		if err != nil {
			return r, err
		}
		if err := re.facts.Gather(rd, list); err != nil {
			return r, err
		}
		for _, c := range list {
			if err := checkCommit(rd, stored{c, hadGap[c.ID], met[c.ID]}, plan, &r); err != nil {
				return r, err
			}
		}
		return r, nil
	})
}

// A stored commit has what is stored of it, and the facts from which that follows.
type stored struct {
	*facts.Commit
	hadGap bool
	met    string // what it meets on the mainline, as Met.Encode returns it
}

// checkCommit derives the state of a commit again, unless that is planned.
func checkCommit(rd txn.Reader, c stored, p plan, r *Result) error {
	if c.IsDue(rd.Now) || len(c.Unevaluated) > 0 || p.includes(c.ID) {
		r.Pending++
		isPlanned, err := isPlanned(rd, c.Commit, p)
		if err == nil && !isPlanned {
			r.differ(c.SHA, "its state is to be derived again, and that is not planned")
		}
		return err
	}

	if c.Expires != 0 && !p.expires(c.Expires) {
		r.differ(c.SHA, "its evidence expires at %s, and it is not planned to settle it then", c.Expires)
		return nil
	}

	var found Result
	c.compare(rd.Now, &found)
	if c.hadGap && p.mayLack(c.ID) && found.differs() {
		r.Pending++
		return nil
	}
	r.Moves, r.Standings = append(r.Moves, found.Moves...), append(r.Standings, found.Standings...)
	r.Differences = append(r.Differences, found.Differences...)
	return nil
}

// compare compares what is stored of a commit with what is derived.
func (c *stored) compare(now ledger.Time, r *Result) {
	derived := c.Deriver.Contract.Outcome(c.Facts, now)
	failed := derived.Failed || c.State == ledger.Deployed && derived.Standing < ledger.Promotable
	switch {
	case derived.State != c.State:
		r.Moves = append(r.Moves, ledger.Move{Commit: c.SHA, From: c.State, To: derived.State})
	case c.Deriver.Contract.Radar.Blocks():
	case c.KeepsStanding() && derived.Standing != c.Standing:
		r.Standings = append(r.Standings, ledger.Move{Commit: c.SHA, From: c.Standing, To: derived.Standing})
	case derived.Expires != c.Expires:
		r.differ(c.SHA, "its evidence is said to expire at %s, and does at %s", c.Expires, derived.Expires)
	case failed != (c.FailingSince > 0):
		r.differ(c.SHA, "it is said that a requirement fails: %t, and by its evidence: %t", c.FailingSince > 0, failed)
	}

	if c.Gap != c.hadGap {
		r.differ(c.SHA, "it is said that an object was not known from which its state follows: %t, and that is %t", c.hadGap,
			c.Gap)
	}
	met := ""
	if c.Merged&facts.IsSide != 0 {
		met = c.Deriver.Contract.Met(c.Facts).Encode()
	}
	if c.met != met {
		r.differ(c.SHA, "what it meets for the claims that name it is not what its evidence gives")
	}
}

// readMet reads what commits meet that claims name.
func readMet(rd txn.Reader, list []*facts.Commit) (map[int64]string, error) {
	var sides []any
	for _, c := range list {
		if c.Merged != 0 {
			sides = append(sides, c.ID)
		}
	}
	met := make(map[int64]string, len(sides))
	err := rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var text string
		err := row.Scan(&id, &text)
		met[id] = text
		return err
	}, "SELECT commit_id, met FROM merge_sides WHERE commit_id IN ", 1, sides)
	if err != nil {
		return nil, fmt.Errorf("read what commits meet: %w", err)
	}
	return met, nil
}

// A plan says which commits of a repo are to be settled again.
type plan struct {
	after int64          // all after this one; -1: none
	one   map[int64]bool // single ones
	// expiry is when the next ones are settled because evidence has expired; 0: never. It may be late until
	// the time mayWait.
	expiry, mayWait ledger.Time
	// lackingUpTo is the row id up to which states may lack an object that is known by now.
	lackingUpTo int64
}

// includes reports whether a commit is planned to be settled again.
func (p plan) includes(commit int64) bool { return p.after >= 0 && commit > p.after || p.one[commit] }

// expires reports whether what expires at a time is planned to be settled then.
func (p plan) expires(at ledger.Time) bool { return p.expiry != 0 && p.expiry <= max(at, p.mayWait) }

// mayLack reports whether the state of a commit may lack an object that is known by now.
func (p plan) mayLack(commit int64) bool { return commit <= p.lackingUpTo }

// planOf reads which commits of a repo are to be settled again: of single ones, those with a row id after the first
// one, up to the last.
func planOf(rd txn.Reader, repoID, first, last int64) (plan, error) {
	p := plan{after: -1, one: make(map[int64]bool)}
	err := rd.Each(func(row txn.Scanner) error { return row.Scan(&p.lackingUpTo) },
		"SELECT id FROM commits WHERE repo_id = ? AND gap = 1 ORDER BY id DESC LIMIT 1 OFFSET ?", repoID, ancestry.MaxGaps)
	if err != nil {
		return p, fmt.Errorf("read commits with a gap: %w", err)
	}

	err = backlog.Settling(rd, repoID, first, last, func(j backlog.Job) {
		switch {
		case j.Task == backlog.Gaps:
			p.lackingUpTo = math.MaxInt64
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
func isPlanned(rd txn.Reader, c *facts.Commit, p plan) (bool, error) {
	if c.HasExpired(rd.Now) && p.expires(c.Expires) || p.includes(c.ID) {
		return true, nil
	}
	if !c.IsOutdated() {
		return false, nil
	}
	cause, err := facts.InheritedCause(rd, c)
	return cause.ID != "", err
}
