package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

// redateBatch is the number of rows that one write corrects.
const redateBatch = 100

// correctTimes corrects, after the ledger's clock was put back, the times that it had
// recorded while it was ahead and by which it decides. Ids and events never change.
// What is left to do is in the database, so it survives a crash.
func (s *Store) correctTimes(ctx context.Context) error {
	s.saved.mu.Lock()
	defer s.saved.mu.Unlock()
	if err := s.saveClock(ctx); err != nil || !s.saved.pending {
		return err
	}

	if err := s.repeat(ctx, (*tx).undoExpirations); err != nil {
		return fmt.Errorf("expired evidence: %w", err)
	}
	if err := s.redateAttestations(ctx); err != nil {
		return fmt.Errorf("attestations: %w", err)
	}
	if err := s.redateTips(ctx); err != nil {
		return fmt.Errorf("tips: %w", err)
	}
	if err := s.reviveTips(ctx); err != nil {
		return fmt.Errorf("forgotten tips: %w", err)
	}
	if err := s.redateDeliveries(ctx); err != nil {
		return fmt.Errorf("deliveries: %w", err)
	}
	if err := s.deriveAllAgain(ctx); err != nil {
		return fmt.Errorf("states: %w", err)
	}

	err := s.write(ctx, "", func(t *tx) error {
		if err := t.redateRest(); err != nil {
			return err
		}
		_, err := t.Exec("UPDATE clock SET pending = 0 WHERE id = 1")
		return err
	})
	if err == nil {
		s.saved.pending = false
		s.log.InfoContext(ctx, "corrected the times that were recorded while the clock was ahead")
	}
	return err
}

// redateAttestations makes the age of attestations that were recorded while the clock
// was ahead count from when it was put right.
func (s *Store) redateAttestations(ctx context.Context) error {
	from, until := s.saved.putRightAt, s.saved.aheadUntil
	repos, err := s.reposWith(ctx, "SELECT id FROM repos", func(rd reader, id int64) ([]int64, error) {
		next, err := rd.aheadAttestations(id, from, until, aheadAttestation{}, 1)
		return make([]int64, len(next)), err
	})
	if err != nil {
		return err
	}

	for _, id := range repos {
		var last aheadAttestation
		err := s.repeat(ctx, func(t *tx) (done bool, err error) {
			batch, err := t.aheadAttestations(id, from, until, last, redateBatch)
			if err != nil || len(batch) == 0 {
				return true, err
			}
			last = batch[len(batch)-1]
			return len(batch) < redateBatch, t.redateAttestations(batch, from)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// An aheadAttestation is an attestation that was recorded while the clock was ahead.
type aheadAttestation struct {
	id, commit int64
	recordedAt ledger.Time
	public     string // its id
}

// aheadAttestations returns the next attestations of a repo whose recorded_at is after
// from, up to until, and whose age counts from after from.
func (rd reader) aheadAttestations(
	repo int64, from, until ledger.Time, after aheadAttestation, limit int,
) ([]aheadAttestation, error) {
	return all(rd, func(row scanner) (a aheadAttestation, err error) {
		return a, row.Scan(&a.id, &a.commit, &a.recordedAt, &a.public)
	}, `
SELECT id, commit_id, recorded_at, attestation_id FROM attestations /*+index attestations_by_time*/
WHERE repo_id = ? AND recorded_at <= ? AND (aged_from = 0 OR aged_from > ?) AND (recorded_at, id) > (?, ?)
ORDER BY recorded_at, id LIMIT ?`, repo, until, from, max(from+1, after.recordedAt), after.id, limit)
}

func (t *tx) redateAttestations(batch []aheadAttestation, to ledger.Time) error {
	causes := make(map[int64]ledger.Cause)
	for _, a := range batch {
		causes[a.commit] = ledger.Cause{Type: ledger.CauseAttestation, ID: a.public}
		if _, err := t.Exec("UPDATE attestations SET aged_from = ? WHERE id = ?", to, a.id); err != nil {
			return err
		}
	}
	t.caches.evidence.clear()
	return t.deriveAgain(causes)
}

// deriveAgain settles commits, each with a cause. It leaves those to Evaluate that it has
// still to reach after a policy change, and those that are too much for one write.
func (t *tx) deriveAgain(causes map[int64]ledger.Cause) error {
	var commits []*commitRow
	for _, id := range slices.Sorted(maps.Keys(causes)) {
		c, err := t.findCommitRow(id)
		if err != nil {
			return err
		}
		commits = append(commits, c)
	}

	list, err := t.subjectsOf(commits)
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := t.watch(s); err != nil {
			return err
		}
	}
	list = slices.DeleteFunc(list, func(s *subject) bool {
		return s.isHistory() || s.policyVersion != s.d.repo.policyVersion
	})
	now, err := firstOf(t, list, func(s *subject) *commitRow { return s.commitRow })
	if err != nil {
		return fmt.Errorf("count carried evidence: %w", err)
	}
	for _, s := range list[len(now):] {
		if err := t.postpone(s, causes[s.id]); err != nil {
			return err
		}
	}

	if err := t.gather(now); err != nil {
		return err
	}
	for _, s := range now {
		if err := t.settle(s, causes[s.id]); err != nil {
			return err
		}
	}
	return nil
}

// deriveAllAgain derives the states of all commits again: of those that did not fall
// because of the time, but could not rise. For example, a contract that became active while
// the clock was ahead found all evidence expired.
func (s *Store) deriveAllAgain(ctx context.Context) error {
	repos, err := s.reposWith(ctx, "SELECT id FROM repos", func(_ reader, id int64) ([]int64, error) {
		return []int64{id}, nil
	})
	if err != nil {
		return err
	}
	for _, id := range repos {
		var after int64
		err := s.repeat(ctx, func(t *tx) (last bool, err error) {
			after, last, err = t.deriveNextAgain(id, after)
			return last, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deriveNextAgain derives the states of a repo's next commits again, with its contract as
// the cause. It leaves those to Evaluate that it has still to reach after a policy change.
func (t *tx) deriveNextAgain(repoID, after int64) (lastID int64, last bool, err error) {
	d, err := t.deriverByID(repoID)
	if err != nil {
		return 0, false, err
	}
	ids, err := t.nextCommits(repoID, after)
	if err != nil || len(ids) == 0 {
		return after, true, err
	}

	list, err := t.subjects(d, ids)
	if err != nil {
		return 0, false, err
	}
	for _, s := range list {
		if s.isHistory() || s.policyVersion != d.repo.policyVersion {
			continue
		}
		if err := t.settle(s, d.policyCause()); err != nil {
			return 0, false, err
		}
	}
	return ids[len(ids)-1], false, nil
}

// undoExpirations derives the next commits again whose evidence or overlaps expired at a
// time that is still to come.
func (t *tx) undoExpirations() (last bool, err error) {
	type expiration struct {
		at     ledger.Time
		commit int64
		cause  ledger.Cause
	}
	batch, err := all(t.reader, func(row scanner) (e expiration, err error) {
		return e, row.Scan(&e.at, &e.commit, &e.cause.Type, &e.cause.ID)
	}, `
SELECT at, commit_id, cause_type, cause_id FROM expirations WHERE at > ?
ORDER BY at, commit_id LIMIT ?`, t.now, redateBatch)
	if err != nil {
		return false, err
	}

	causes := make(map[int64]ledger.Cause, len(batch))
	for _, e := range batch {
		causes[e.commit] = e.cause
		if _, err := t.Exec("DELETE FROM expirations WHERE at = ? AND commit_id = ?", e.at, e.commit); err != nil {
			return false, err
		}
	}
	return len(batch) < redateBatch, t.deriveAgain(causes)
}

// redateTips makes tips that came into flight while the clock was ahead age from now on.
func (s *Store) redateTips(ctx context.Context) error {
	repos, err := s.reposWith(ctx, "SELECT id FROM repos", reader.aheadTips)
	if err != nil {
		return err
	}
	for _, id := range repos {
		if err := s.repeat(ctx, func(t *tx) (bool, error) { return t.redateTips(id) }); err != nil {
			return err
		}
	}
	return nil
}

// aheadTips returns a batch of a repo's tips that came into flight at a time which is
// still to come.
func (rd reader) aheadTips(repoID int64) ([]int64, error) {
	return all(rd, scanID, "SELECT commit_id FROM tips WHERE repo_id = ? AND "+isLive+
		" AND opened_at > ? ORDER BY opened_at LIMIT ?", repoID, rd.now, redateBatch)
}

func (t *tx) redateTips(repoID int64) (last bool, err error) {
	tips, err := t.aheadTips(repoID)
	if err != nil {
		return false, err
	}
	causes := make(map[int64]ledger.Cause, len(tips))
	for _, id := range tips {
		_, err := t.Exec("UPDATE tips SET opened_at = ?, "+renumber+" WHERE commit_id = ?", t.now, id)
		if err != nil {
			return false, err
		}
		causes[id] = ledger.Cause{Type: ledger.CauseExpiry} // its overlaps end earlier, but not yet
	}
	return len(tips) < redateBatch, t.deriveAgain(causes)
}

// reviveTips puts tips in flight again that were forgotten because of an age that they
// have not reached. The radar then scans them again.
func (s *Store) reviveTips(ctx context.Context) error {
	repos, err := s.reposWith(ctx, "SELECT id FROM repos", func(_ reader, id int64) ([]int64, error) {
		return []int64{id}, nil
	})
	if err != nil {
		return err
	}
	for _, id := range repos {
		var after int64 // the seq of the last tip; that of a revived one grows
		err := s.repeat(ctx, func(t *tx) (last bool, err error) {
			after, last, err = t.reviveTips(id, after)
			return last, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reviveSize is the number of tips that one write of reviveTips reads.
const reviveSize = 500

// reviveTips revives the forgotten ones of a repo's next tips. Those that ended in another
// way have an ended_at.
func (t *tx) reviveTips(repoID, after int64) (seq int64, last bool, err error) {
	r, err := t.repoByID(repoID)
	if err != nil {
		return 0, false, err
	}
	contract, err := t.contract(r)
	if err != nil {
		return 0, false, err
	}

	type tip struct {
		commit, seq, endedAt int64
		flight               radarindex.Flight
		openedAt             ledger.Time
	}
	tips, err := all(t.reader, func(row scanner) (v tip, err error) {
		return v, row.Scan(&v.commit, &v.seq, &v.flight, &v.openedAt, &v.endedAt)
	}, `
SELECT commit_id, seq, flight, opened_at, ended_at FROM tips /*+index tips_by_seq*/
WHERE repo_id = ? AND seq > ? ORDER BY seq LIMIT ?`, repoID, after, reviveSize)
	if err != nil {
		return 0, false, err
	}

	for _, v := range tips {
		after = v.seq
		if v.flight != radarindex.Forgotten || v.endedAt != 0 || v.openedAt < contract.Radar.Oldest(t.now) {
			continue
		}
		_, err := t.Exec("UPDATE tips SET flight = ?, policy_version = 0, "+renumber+" WHERE commit_id = ?"+`
AND NOT EXISTS (SELECT 1 FROM tips o WHERE o.repo_id = tips.repo_id AND o.branch = tips.branch AND o.`+isLive+")",
			radarindex.InFlight, v.commit)
		if err != nil {
			return 0, false, err
		}
	}
	return after, len(tips) < reviveSize, nil
}

const (
	// retryNow makes deliveries due whose next attempt was scheduled at a time that is
	// still to come. Its parameters are the current time, the webhook and the number
	// of deliveries.
	retryNow = `
UPDATE outbox SET due_at = ?1
WHERE webhook_id = ?2 AND delivery_id IN (
  SELECT o.delivery_id FROM outbox o
  LEFT JOIN attempts a ON a.webhook_id = o.webhook_id AND a.delivery_id = o.delivery_id AND a.number = o.attempts
  WHERE o.webhook_id = ?2 AND o.due_at > 0 AND o.due_at > ?1 AND o.leased = 0 AND coalesce(a.at, o.created_at) > ?1
  ORDER BY o.due_at DESC LIMIT ?3)`
	// endLeases shortens leases that end much later than any lease would. Its
	// parameters are the new end, the webhook, the latest plausible end and the number
	// of deliveries.
	endLeases = `
UPDATE outbox SET due_at = ?1
WHERE webhook_id = ?2 AND delivery_id IN (
  SELECT delivery_id FROM outbox WHERE webhook_id = ?2 AND due_at > 0 AND due_at > ?3 AND leased = 1
  ORDER BY due_at DESC LIMIT ?4)`
)

const (
	maxLease     = time.Hour   // longer than any lease
	leaseLeft    = time.Minute // what is left of a lease that ends too late
	retryNowSize = 500         // deliveries per write
)

// redateDeliveries makes deliveries due that would wait for a time which the clock, while
// it was ahead, took to be near.
func (s *Store) redateDeliveries(ctx context.Context) error {
	webhooks, err := read(ctx, s, forWrite(""), func(rd reader) ([]int64, error) {
		return all(rd, scanID, `
SELECT id FROM webhooks w
WHERE deleted_at = 0 AND EXISTS (SELECT 1 FROM outbox WHERE webhook_id = w.id AND due_at > 0 AND due_at > ?)`, rd.now)
	})
	if err != nil {
		return err
	}

	for _, id := range webhooks {
		err := s.repeat(ctx, func(t *tx) (last bool, err error) {
			due, err := t.Exec(retryNow, t.now, id, retryNowSize)
			if err != nil {
				return false, err
			}
			leased, err := t.Exec(endLeases, t.now.Add(leaseLeft), id, t.now.Add(maxLease), retryNowSize)
			return due < retryNowSize && leased < retryNowSize, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// redateRest corrects tables that are small.
func (t *tx) redateRest() error {
	for _, statement := range []string{
		// A session lasts as long from now on as it would have lasted.
		"UPDATE sessions SET expires_at = ?1 + expires_at - created_at, created_at = ?1 WHERE created_at > ?1",
		"UPDATE tokens SET last_used_at = ?1 WHERE last_used_at > ?1",
		"UPDATE tokens SET client_at = ?1 WHERE client_at > ?1",
		"UPDATE webhooks SET changed_at = ?1 WHERE changed_at > ?1",
		"UPDATE webhooks SET failing_since = ?1 WHERE failing_since > ?1",
	} {
		if _, err := t.Exec(statement, t.now); err != nil {
			return err
		}
	}
	return nil
}
