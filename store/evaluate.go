package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// evaluateBatch is how many commits one write evaluates anew: few enough
	// that the writes behind it hardly notice.
	evaluateBatch = 100
	// evaluateEvery is how often Evaluate looks for what another process asked
	// for and for evidence that has run out.
	evaluateEvery = time.Second
)

func (s *Store) wakeEvaluate() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Evaluate carries out, until the context ends, what has to be derived anew
// without anybody's request: the commits of a repo whose policy has changed,
// and those whose evidence runs out. What is left to do stands in the
// database, so that a crash loses nothing of it. What fails is logged and
// tried again.
func (s *Store) Evaluate(ctx context.Context) {
	tick := time.NewTicker(evaluateEvery)
	defer tick.Stop()
	for {
		if err := s.Settle(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "evaluating commits anew", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.wake:
		}
	}
}

// Settle does what Evaluate would do now, and returns.
func (s *Store) Settle(ctx context.Context) error {
	for {
		reevaluated, err := s.reevaluate(ctx)
		if err != nil {
			return fmt.Errorf("re-evaluate after a policy change: %w", err)
		}
		expired, err := s.expire(ctx)
		if err != nil {
			return fmt.Errorf("re-evaluate expired evidence: %w", err)
		}
		if !reevaluated && !expired {
			return nil
		}
	}
}

// pending reports whether the query finds a row, without taking the write lock.
func (s *Store) pending(ctx context.Context, query string, args ...any) (found bool, err error) {
	err = s.read(ctx, func(c *conn) error { return c.row(query, args...).Scan(&found) })
	return found, err
}

// reevaluate takes one batch of one repo after a policy change. It reports
// whether there was any.
func (s *Store) reevaluate(ctx context.Context) (bool, error) {
	found, err := s.pending(ctx, "SELECT EXISTS (SELECT 1 FROM reevaluations)")
	if err != nil || !found {
		return false, err
	}
	return true, s.write(ctx, func(t *tx) error {
		var repoID, done int64
		var version int
		err := t.row("SELECT repo_id, version, done FROM reevaluations ORDER BY repo_id LIMIT 1").Scan(&repoID, &version, &done)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // another process was quicker
		}
		if err != nil {
			return fmt.Errorf("read what is left: %w", err)
		}
		commits, err := all(t.conn, scanCommitRow, selectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", repoID, done, evaluateBatch)
		if err != nil {
			return fmt.Errorf("read commits: %w", err)
		}
		if len(commits) == 0 {
			_, err := t.exec("DELETE FROM reevaluations WHERE repo_id = ?", repoID)
			return err
		}
		if err := s.settleAll(t, repoID, commits, ledger.Cause{Type: ledger.CausePolicy, ID: strconv.Itoa(version)}); err != nil {
			return err
		}
		_, err = t.exec("UPDATE reevaluations SET done = ? WHERE repo_id = ?", commits[len(commits)-1].id, repoID)
		return err
	})
}

// settleAll settles those of the repo's commits that are not DEPLOYED.
func (s *Store) settleAll(t *tx, repoID int64, commits []commitRow, cause ledger.Cause) error {
	r, err := repoByID(t.conn, repoID)
	if err != nil {
		return err
	}
	d, err := s.deriver(t.conn, r)
	if err != nil {
		return err
	}
	return d.each(commits, func(c commitRow, f ledger.Facts) error { return t.settle(d, c, f, cause) })
}

// each visits those of the commits that are not DEPLOYED, with their facts.
func (d deriver) each(commits []commitRow, visit func(commitRow, ledger.Facts) error) error {
	for _, c := range commits {
		if c.state == ledger.Deployed {
			continue
		}
		f, err := d.facts(c)
		if err != nil {
			return err
		}
		if err := visit(c, f); err != nil {
			return err
		}
	}
	return nil
}

// expire settles a batch of commits whose evidence has run out. It reports
// whether there was any.
func (s *Store) expire(ctx context.Context) (bool, error) {
	found, err := s.pending(ctx, "SELECT EXISTS (SELECT 1 FROM commits WHERE expires > 0 AND expires <= ?)", s.Now())
	if err != nil || !found {
		return false, err
	}
	return true, s.write(ctx, func(t *tx) error {
		ids, err := all(t.conn, scanID, "SELECT id FROM commits WHERE expires > 0 AND expires <= ? ORDER BY expires LIMIT ?", t.now, evaluateBatch)
		if err != nil {
			return fmt.Errorf("read commits: %w", err)
		}
		for _, id := range ids {
			if err := s.expireOne(t, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) expireOne(t *tx, commitID int64) error {
	var repoID int64
	if err := t.row("SELECT repo_id FROM commits WHERE id = ?", commitID).Scan(&repoID); err != nil {
		return fmt.Errorf("read commit: %w", err)
	}
	r, err := repoByID(t.conn, repoID)
	if err != nil {
		return err
	}
	return s.resettle(t, r, commitID, func(d deriver, c commitRow, f ledger.Facts) ledger.Cause {
		return ledger.Cause{Type: ledger.CauseExpiry, ID: d.contract.RanOut(f, c.expires)}
	})
}

// Simulate tells what the draft contract would do to the repo's commits that
// are not DEPLOYED, if it became active now. It writes nothing.
func (s *Store) Simulate(ctx context.Context, org, repo string, draft ledger.Contract) (ledger.Simulation, error) {
	sim := ledger.Simulation{Moves: []ledger.Move{}}
	err := s.read(ctx, func(c *conn) error {
		r, err := findRepo(c, org, repo)
		if err != nil {
			return err
		}
		d := deriver{conn: c, names: s.names, repo: r, contract: &draft}
		for last := int64(0); ctx.Err() == nil; {
			commits, err := all(c, scanCommitRow, selectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", r.id, last, evaluateBatch)
			if err != nil || len(commits) == 0 {
				return err
			}
			last = commits[len(commits)-1].id
			if err := d.each(commits, func(c commitRow, f ledger.Facts) error {
				s.simulateOne(&sim, d, c, f)
				return nil
			}); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return sim, err
}

func (s *Store) simulateOne(sim *ledger.Simulation, d deriver, c commitRow, f ledger.Facts) {
	sim.Evaluated++
	derived := d.contract.Derive(f, s.Now())
	if derived.State == c.state {
		return
	}
	move := ledger.Move{Commit: c.sha, From: c.state, To: derived.State, Reasons: []string{}}
	for _, req := range derived.Requirements {
		if req.Applies && req.State > min(c.state, derived.State) && req.State <= max(c.state, derived.State)+1 {
			move.Reasons = append(move.Reasons, req.Reason)
		}
	}
	sim.Moves = append(sim.Moves, move)
}
