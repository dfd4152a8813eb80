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
		err = s.repeat(ctx, (*tx).expire)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("evaluate commits whose evidence has run out: %w", err))
	}
	return errors.Join(errs...)
}

// reevaluations lists the repos whose policy has changed.
func (s *Store) reevaluations(ctx context.Context) ([]int64, error) {
	return read(ctx, s, func(rd reader) ([]int64, error) {
		return all(rd, scanID, "SELECT repo_id FROM reevaluations ORDER BY repo_id")
	})
}

// reevaluateAll settles a repo's commits after a policy change.
func (s *Store) reevaluateAll(ctx context.Context, repoID int64) error {
	return s.repeatLooking(ctx, repoID, func(t *tx) (last bool, err error) { return t.reevaluate(repoID) })
}

// repeatLooking is repeat of batches in which the radar looks at tips: before each
// it refreshes the index, so that the writer finds little that came since.
func (s *Store) repeatLooking(ctx context.Context, repoID int64, batch func(*tx) (last bool, err error)) error {
	for last := false; !last; {
		index, err := s.indexIfOn(ctx, repoID)
		if err != nil {
			return err
		}
		last, err = write(ctx, s, func(t *tx) (bool, error) {
			t.index = index
			return batch(t)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// indexIfOn returns the refreshed index of a repo; nil where its radar is off.
func (s *Store) indexIfOn(ctx context.Context, repoID int64) (*radarindex.Index, error) {
	enabled, err := read(ctx, s, func(rd reader) (bool, error) {
		r, err := rd.repoByID(repoID)
		if err != nil {
			return false, err
		}
		contract, err := rd.contract(r)
		if err != nil {
			return false, err
		}
		return contract.Radar.Enabled, nil
	})
	if err != nil || !enabled {
		return nil, err
	}
	return s.tips.Fresh(ctx, repoID, tipSource{s})
}

// lookAgain has the radar look at the tips in flight of which more is known since
// it did.
func (s *Store) lookAgain(ctx context.Context) error {
	repos, err := s.reposWith(ctx, reposUnseen, func(rd reader, id int64) ([]int64, error) {
		tips, _, err := rd.unseenTips(id)
		return tips, err
	})
	errs := []error{err}
	for _, id := range repos {
		if err := s.repeatLooking(ctx, id, func(t *tx) (bool, error) { return t.lookAtUnseen(id) }); err != nil {
			errs = append(errs, fmt.Errorf("look at the tips of repo %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

const (
	reposUnseen  = "SELECT DISTINCT repo_id FROM tips WHERE policy_version = 0 AND " + isInFlight
	selectUnseen = "SELECT commit_id FROM tips WHERE repo_id = ? AND policy_version = 0 AND " + isInFlight + " AND opened_at >= ? LIMIT ?"
)

// unseenTips reads the next of a repo's tips in flight that the radar has to look
// at, with what derives their states.
func (rd reader) unseenTips(repoID int64) ([]int64, *deriver, error) {
	r, err := rd.repoByID(repoID)
	if err != nil {
		return nil, nil, err
	}
	d, err := rd.deriver(r)
	if err != nil || !d.contract.Radar.Enabled {
		return nil, d, err
	}
	tips, err := all(rd, scanID, selectUnseen, repoID, d.contract.Radar.Oldest(rd.now), rescanBatch)
	return tips, d, err
}

func (t *tx) lookAtUnseen(repoID int64) (last bool, err error) {
	tips, d, err := t.unseenTips(repoID)
	if err != nil {
		return false, err
	}
	for _, id := range tips {
		c, err := t.findCommitRow(id)
		if err != nil {
			return false, err
		}
		result, err := t.rescan(d, id)
		if err != nil {
			return false, err
		}
		cause := d.policyCause()
		if c.policyVersion == d.repo.policyVersion {
			if cause, err = t.cause(c, result); err != nil {
				return false, err
			}
		}
		t.again(cause, id)
	}
	return len(tips) < rescanBatch, t.drain(d)
}

// reevaluate settles the next batch of a repo's commits after a policy change.
func (t *tx) reevaluate(repoID int64) (last bool, err error) {
	var done int64
	err = t.Row("SELECT done FROM reevaluations WHERE repo_id = ?", repoID).Scan(&done)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil // another process was quicker
	}
	if err != nil {
		return false, fmt.Errorf("read what is left: %w", err)
	}
	commits, err := all(t.reader, scanID, "SELECT id FROM commits WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", repoID, done, evaluateBatch)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	if len(commits) == 0 {
		_, err := t.Exec("DELETE FROM reevaluations WHERE repo_id = ?", repoID)
		return true, err
	}
	r, err := t.repoByID(repoID)
	if err != nil {
		return false, err
	}
	d, err := t.deriver(r)
	if err != nil {
		return false, err
	}
	if done, err = t.reevaluateBatch(d, commits); err != nil {
		return false, err
	}
	_, err = t.Exec("UPDATE reevaluations SET done = ? WHERE repo_id = ?", done, repoID)
	return false, err
}

// reevaluateBatch settles commits after a policy change, as many as one write has
// time for, and returns the last of them. First the radar looks at all of them:
// none may move before what blocks it is known.
func (t *tx) reevaluateBatch(d *deriver, commits []int64) (done int64, err error) {
	t.evaluating = true
	for rescans := 0; len(commits) > 0 && rescans < rescanBatch; commits = commits[1:] {
		done = commits[0]
		result, err := t.rescan(d, done)
		if err != nil {
			return 0, err
		}
		if result.looked {
			rescans++
			t.again(d.policyCause(), done)
		}
		t.work.add(done, workEntry{reached: true})
	}
	return done, t.drain(d)
}

// rescanBatch is how many commits one write has the radar look at again: each
// costs what a registration does.
const rescanBatch = 20

// rescan has the radar look again at a tip in flight, if the contract under which
// it last did let it see less, or other paths.
func (t *tx) rescan(d *deriver, commitID int64) (result tipResult, err error) {
	tip, known, err := t.findTip(commitID)
	if err != nil || !known || !tip.Flies(d.contract.Radar, t.now) || tip.PolicyVersion == d.repo.policyVersion {
		return result, err
	}
	if tip.PolicyVersion != 0 {
		saw, err := t.radarOf(d.repo, tip.PolicyVersion)
		if err != nil || saw.SeesAll(d.contract.Radar) {
			return result, err
		}
	}
	n, err := t.registrationOf(commitID)
	if err != nil {
		return result, err
	}
	return t.lookAt(d, tip, n, nil)
}

// radarOf reads what a version of a repo's contract says of the radar.
func (rd reader) radarOf(r repoRow, version int) (ledger.RadarSettings, error) {
	r.policyVersion = version
	err := rd.Row("SELECT digest FROM policies WHERE repo_id = ? AND version = ?", r.id, version).Scan(&r.policyDigest)
	if err != nil {
		return ledger.RadarSettings{}, fmt.Errorf("read policy: %w", err)
	}
	contract, err := rd.contract(r)
	if err != nil {
		return ledger.RadarSettings{}, err
	}
	return contract.Radar, nil
}

// hasExpired reports, without taking the write lock, whether evidence of any
// commit, or an overlap that blocks it, has run out.
func (s *Store) hasExpired(ctx context.Context) (bool, error) {
	return read(ctx, s, func(rd reader) (found bool, err error) {
		return found, rd.Row("SELECT EXISTS (SELECT 1 FROM commits WHERE expires > 0 AND expires <= ?)", rd.now).Scan(&found)
	})
}

// expire settles the next batch of commits whose evidence, or an overlap that
// blocks them, has run out.
func (t *tx) expire() (last bool, err error) {
	due, err := all(t.reader, scanCommitRow, selectCommitRow+"WHERE expires > 0 AND expires <= ? ORDER BY expires LIMIT ?", t.now, evaluateBatch)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	derivers := make(map[int64]*deriver)
	list := make([]*subject, len(due))
	for i, c := range due {
		d := derivers[c.repoID]
		if d == nil {
			r, err := t.repoByID(c.repoID)
			if err != nil {
				return false, err
			}
			if d, err = t.deriver(r); err != nil {
				return false, err
			}
			derivers[c.repoID] = d
		}
		list[i] = &subject{commitRow: c, d: d}
	}
	if err := t.gather(list); err != nil {
		return false, err
	}
	for _, s := range list {
		if err := t.settleDue(s); err != nil {
			return false, err
		}
	}
	return len(due) < evaluateBatch, nil
}

// Simulate reports what the draft contract would do to the repo's commits that
// are not DEPLOYED, if it became active now. It writes nothing.
func (s *Store) Simulate(ctx context.Context, org, repo string, draft ledger.Contract) (ledger.Simulation, error) {
	return read(ctx, s, func(rd reader) (ledger.Simulation, error) {
		sim := ledger.Simulation{Moves: []ledger.Move{}}
		r, err := rd.findRepo(org, repo)
		if err != nil {
			return sim, err
		}
		d := &deriver{repo: r, contract: &draft}
		for last := int64(0); ctx.Err() == nil; {
			commits, err := all(rd, scanCommitRow, selectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", r.id, last, evaluateBatch)
			if err != nil || len(commits) == 0 {
				return sim, err
			}
			last = commits[len(commits)-1].id
			if err := rd.simulate(&sim, d, commits); err != nil {
				return sim, err
			}
		}
		return sim, ctx.Err()
	})
}

// simulate adds to sim what the contract would do to those of the commits that
// are not DEPLOYED.
func (rd reader) simulate(sim *ledger.Simulation, d *deriver, commits []*commitRow) error {
	var list []*subject
	for _, c := range commits {
		if c.state != ledger.Deployed {
			list = append(list, &subject{commitRow: c, d: d})
		}
	}
	if err := rd.gather(list); err != nil {
		return err
	}
	for _, s := range list {
		sim.Evaluated++
		if derived := d.contract.Derive(s.facts, rd.now); derived.State != s.state {
			sim.Moves = append(sim.Moves, move(s.commitRow, derived))
		}
	}
	return nil
}

// move tells what would move a commit, with the reasons of the requirements
// between where it is and one beyond where it would be.
func move(c *commitRow, derived ledger.Derivation) ledger.Move {
	m := ledger.Move{Commit: c.sha, From: c.state, To: derived.State, Reasons: []string{}}
	low, high := min(c.state, derived.State), max(c.state, derived.State)
	for _, r := range derived.Requirements {
		if r.Applies && r.State > low && r.State <= high+1 {
			m.Reasons = append(m.Reasons, r.Reason)
		}
	}
	return m
}
