package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

const (
	// evaluateBatch is how many commits one write evaluates anew: few enough
	// that the writes behind it hardly notice.
	evaluateBatch = 100
	// evaluateEvery is how often Evaluate looks for what another process asked
	// for and for what has run out.
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
// and those whose evidence, or an overlap that blocks them, runs out. What is left to do stands in the
// database, so that a crash loses nothing of it. What fails is logged and tried
// again.
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

// Settle does what Evaluate would do now, and returns. What fails for one repo
// does not keep it from the others.
func (s *Store) Settle(ctx context.Context) error {
	var errs []error
	repos, err := s.reevaluations(ctx)
	errs = append(errs, err)
	for _, repoID := range repos {
		if err := s.reevaluateAll(ctx, repoID); err != nil {
			errs = append(errs, fmt.Errorf("evaluate repo %d after a policy change: %w", repoID, err))
		}
	}
	if err := s.lookAgain(ctx); err != nil {
		errs = append(errs, fmt.Errorf("look at tips again: %w", err))
	}
	expired, err := s.hasExpired(ctx)
	if err == nil && expired {
		err = s.repeat(ctx, s.expire)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("evaluate commits whose evidence has run out: %w", err))
	}
	return errors.Join(errs...)
}

// repeat writes a batch after the other until one says that it was the last.
func (s *Store) repeat(ctx context.Context, batch func(*tx) (last bool, err error)) error {
	for {
		var last bool
		err := s.write(ctx, func(t *tx) (err error) {
			last, err = batch(t)
			return err
		})
		if err != nil || last {
			return err
		}
	}
}

// reevaluations lists the repos whose policy has changed.
func (s *Store) reevaluations(ctx context.Context) (repos []int64, err error) {
	err = s.read(ctx, func(c *conn) error {
		repos, err = all(c, scanID, "SELECT repo_id FROM reevaluations ORDER BY repo_id")
		return err
	})
	return repos, err
}

// reevaluateAll settles a repo's commits after a policy change.
func (s *Store) reevaluateAll(ctx context.Context, repoID int64) error {
	return s.repeatLooking(ctx, repoID, func(t *tx) (last bool, err error) { return s.reevaluate(t, repoID) })
}

// repeatLooking is repeat of batches in which the radar looks at tips: before each
// it refreshes the index, so that the writer finds little that came since.
func (s *Store) repeatLooking(ctx context.Context, repoID int64, batch func(*tx) (last bool, err error)) error {
	for last := false; !last; {
		index, err := s.indexIfOn(ctx, repoID)
		if err != nil {
			return err
		}
		err = s.write(ctx, func(t *tx) (err error) {
			t.index = index
			last, err = batch(t)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// indexIfOn returns the refreshed index of a repo; nil where its radar is off.
func (s *Store) indexIfOn(ctx context.Context, repoID int64) (*radarindex.Index, error) {
	var contract *ledger.Contract
	err := s.read(ctx, func(c *conn) error {
		r, err := repoByID(c, repoID)
		if err == nil {
			contract, err = s.contract(c, r)
		}
		return err
	})
	if err != nil || !contract.Radar.Enabled {
		return nil, err
	}
	return s.tips.Fresh(ctx, repoID, tipSource{s})
}

// lookAgain has the radar look at the tips in flight of which more is known since
// it did.
func (s *Store) lookAgain(ctx context.Context) error {
	repos, err := s.reposWith(ctx, "SELECT DISTINCT repo_id FROM tips WHERE policy_version = 0 AND "+isInFlight, func(c *conn, id int64) ([]int64, error) {
		tips, _, err := s.unseenTips(c, id)
		return tips, err
	})
	errs := []error{err}
	for _, id := range repos {
		if err := s.repeatLooking(ctx, id, func(t *tx) (bool, error) { return s.lookAtUnseen(t, id) }); err != nil {
			errs = append(errs, fmt.Errorf("look at the tips of repo %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// unseenTips reads the next of a repo's tips in flight that the radar has to look
// at, with what derives their states.
func (s *Store) unseenTips(c *conn, repoID int64) (tips []int64, d deriver, err error) {
	r, err := repoByID(c, repoID)
	if err != nil {
		return nil, d, err
	}
	if d, err = s.deriver(c, r); err != nil || !d.contract.Radar.Enabled {
		return nil, d, err
	}
	tips, err = all(c, scanID, selectUnseen, repoID, d.contract.Radar.Oldest(s.Now()), rescanBatch)
	return tips, d, err
}

const selectUnseen = "SELECT commit_id FROM tips WHERE repo_id = ? AND policy_version = 0 AND " + isInFlight + " AND opened_at >= ? LIMIT ?"

func (s *Store) lookAtUnseen(t *tx, repoID int64) (last bool, err error) {
	tips, d, err := s.unseenTips(t.conn, repoID)
	if err != nil {
		return false, err
	}
	for _, id := range tips {
		c, err := scanCommitRow(t.row(selectCommitRow+"WHERE id = ?", id))
		if err != nil {
			return false, fmt.Errorf("read commit: %w", err)
		}
		result, err := s.rescan(t, d, c)
		if err != nil {
			return false, err
		}
		cause := d.policyCause()
		if c.policyVersion == d.repo.policyVersion {
			if cause, err = t.cause(c, result); err != nil {
				return false, err
			}
		}
		if err := t.resettle(d, id, cause); err != nil {
			return false, err
		}
	}
	return len(tips) < rescanBatch, nil
}

// reevaluate settles the next batch of a repo's commits after a policy change.
func (s *Store) reevaluate(t *tx, repoID int64) (last bool, err error) {
	var done int64
	err = t.row("SELECT done FROM reevaluations WHERE repo_id = ?", repoID).Scan(&done)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil // another process was quicker
	}
	if err != nil {
		return false, fmt.Errorf("read what is left: %w", err)
	}
	commits, err := all(t.conn, scanID, "SELECT id FROM commits WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", repoID, done, evaluateBatch)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	if len(commits) == 0 {
		_, err := t.exec("DELETE FROM reevaluations WHERE repo_id = ?", repoID)
		return true, err
	}
	r, err := repoByID(t.conn, repoID)
	if err != nil {
		return false, err
	}
	d, err := s.deriver(t.conn, r)
	if err != nil {
		return false, err
	}
	for rescans := 0; len(commits) > 0 && rescans < rescanBatch; commits = commits[1:] {
		done = commits[0]
		rescanned, err := s.reevaluateOne(t, d, done)
		if err != nil {
			return false, err
		}
		if rescanned {
			rescans++
		}
	}
	_, err = t.exec("UPDATE reevaluations SET done = ? WHERE repo_id = ?", done, repoID)
	return false, err
}

// reevaluateOne settles a commit after a policy change. It is read here and not
// before: to look at one commit anew may settle others.
func (s *Store) reevaluateOne(t *tx, d deriver, commitID int64) (rescanned bool, err error) {
	c, err := scanCommitRow(t.row(selectCommitRow+"WHERE id = ?", commitID))
	if err != nil {
		return false, fmt.Errorf("read commit: %w", err)
	}
	result, err := s.rescan(t, d, c)
	if err != nil {
		return false, err
	}
	if result.looked {
		return true, t.resettle(d, c.id, d.policyCause())
	}
	_, _, err = t.settleDue(d, c)
	return false, err
}

// rescanBatch is how many commits one write has the radar look at anew: each
// costs what a registration does.
const rescanBatch = 20

// rescan has the radar look anew at a tip in flight, if the contract under which
// it last did let it see less, or other paths.
func (s *Store) rescan(t *tx, d deriver, c commitRow) (result tipResult, err error) {
	tip, known, err := findTip(t.conn, c.id)
	if err != nil || !known || !tip.Flies(d.contract.Radar, t.now) || tip.PolicyVersion == d.repo.policyVersion {
		return result, err
	}
	if tip.PolicyVersion != 0 {
		saw, err := s.radarOf(t.conn, d.repo, tip.PolicyVersion)
		if err != nil || saw.SeesAll(d.contract.Radar) {
			return result, err
		}
	}
	n, err := registrationOf(t.conn, c.id)
	if err != nil {
		return result, err
	}
	d.reevaluating = true
	return t.lookAt(d, tip, n, nil)
}

// radarOf reads what a version of a repo's contract says of the radar.
func (s *Store) radarOf(c *conn, r repoRow, version int) (ledger.RadarSettings, error) {
	r.policyVersion = version
	err := c.row("SELECT digest FROM policies WHERE repo_id = ? AND version = ?", r.id, version).Scan(&r.policyDigest)
	if err != nil {
		return ledger.RadarSettings{}, fmt.Errorf("read policy: %w", err)
	}
	contract, err := s.contract(c, r)
	if err != nil {
		return ledger.RadarSettings{}, err
	}
	return contract.Radar, nil
}

// hasExpired reports, without taking the write lock, whether evidence of any
// commit, or an overlap that blocks it, has run out.
func (s *Store) hasExpired(ctx context.Context) (found bool, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.row("SELECT EXISTS (SELECT 1 FROM commits WHERE expires > 0 AND expires <= ?)", s.Now()).Scan(&found)
	})
	return found, err
}

// expire settles the next batch of commits whose evidence, or an overlap that blocks them, has run out.
func (s *Store) expire(t *tx) (last bool, err error) {
	ids, err := all(t.conn, scanID, "SELECT id FROM commits WHERE expires > 0 AND expires <= ? ORDER BY expires LIMIT ?", t.now, evaluateBatch)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	for _, id := range ids {
		if err := s.expireOne(t, id); err != nil {
			return false, err
		}
	}
	return len(ids) < evaluateBatch, nil
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
	d, err := s.deriver(t.conn, r)
	if err != nil {
		return err
	}
	c, err := scanCommitRow(t.row(selectCommitRow+"WHERE id = ?", commitID))
	if err != nil {
		return fmt.Errorf("read commit: %w", err)
	}
	_, _, err = t.settleDue(d, c)
	return err
}

// Simulate tells what the draft contract would do to the repo's commits that
// are not DEPLOYED, if it became active now. It writes nothing.
func (s *Store) Simulate(ctx context.Context, org, repo string, draft ledger.Contract) (ledger.Simulation, error) {
	sim, now := ledger.Simulation{Moves: []ledger.Move{}}, s.Now()
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
			if err := d.simulate(&sim, commits, now); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return sim, err
}

// simulate adds to sim what the contract would do to those of the commits that
// are not DEPLOYED.
func (d deriver) simulate(sim *ledger.Simulation, commits []commitRow, now ledger.Time) error {
	for _, c := range commits {
		if c.state == ledger.Deployed {
			continue
		}
		f, err := d.facts(c)
		if err != nil {
			return err
		}
		sim.Evaluated++
		if derived := d.contract.Derive(f, now); derived.State != c.state {
			sim.Moves = append(sim.Moves, move(c, derived))
		}
	}
	return nil
}

// move tells what would move a commit, with the reasons of the requirements
// between where it is and one beyond where it would be.
func move(c commitRow, derived ledger.Derivation) ledger.Move {
	m := ledger.Move{Commit: c.sha, From: c.state, To: derived.State, Reasons: []string{}}
	low, high := min(c.state, derived.State), max(c.state, derived.State)
	for _, r := range derived.Requirements {
		if r.Applies && r.State > low && r.State <= high+1 {
			m.Reasons = append(m.Reasons, r.Reason)
		}
	}
	return m
}
