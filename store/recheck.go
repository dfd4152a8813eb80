package store

import (
	"time"

	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// NewReader returns a store on an engine that only reads. Close closes the engine.
func NewReader(db sqldb.Engine, o Options) *Store {
	s := newStore(o)
	s.db, s.clock = db, newClock(o.now(time.Now), o.monotonic(), s.log)
	return s
}

// A Recheck is the result of deriving the states of some commits of a repo again.
type Recheck struct {
	Commits int64
	// Moves are the commits whose evidence leads to another state than the one they have, though
	// nothing has changed since that was derived.
	Moves []ledger.Move
	// Standings are the same of commits whose standing is kept, from that to the derived one. If the
	// radar blocks, they are left out: the standings of deployed commits do not follow its overlaps.
	Standings []ledger.Move
	// Known is what is known of the commits.
	Known []facts.Commit
	// Pending counts the commits whose state is to be derived again.
	Pending int64
	// Last is the row id of the last commit; 0 if there were none.
	Last int64
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
		derivedTo := int64(-1)
		err = rd.Each(func(row scanner) error { return row.Scan(&derivedTo) },
			"SELECT done FROM rederivations WHERE repo_id = ?", repoID)
		if err != nil {
			return r, fmt.Errorf("read the progress: %w", err)
		}

		if r.Known, err = rd.knownOfAll(commits); err != nil {
			return r, err
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
			if c.isDue(rd.now) || len(c.unevaluated) > 0 || derivedTo >= 0 && c.id > derivedTo {
				r.Pending++
				continue
			}
			derived := d.contract.Derive(c.facts, rd.now)
			switch {
			case derived.State != c.state:
				r.Moves = append(r.Moves, move(c.commitRow, derived))
			case c.keepsStanding() && derived.Standing != c.standing && !d.contract.Radar.Blocks():
				r.Standings = append(r.Standings, ledger.Move{Commit: c.sha, From: c.standing, To: derived.Standing})
			}
		}
		return r, nil
	})
}
