package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
)

const (
	// prunedRows and prunedBytes limit what one write prunes of a repo.
	prunedRows  = 100
	prunedBytes = 4 << 20
)

// pruneRepos prunes envelopes and events of the repos that do not keep them without a limit, up to
// what they keep.
func (s *Store) pruneRepos(ctx context.Context) error {
	repos, err := readLoose(ctx, s, forWrite(""), func(rd reader) ([]int64, error) {
		return all(rd, scanID,
			"SELECT id FROM repos /*+index repos_pruned*/ WHERE keep_envelopes + keep_events + purged_at > 0 ORDER BY id")
	})
	if err != nil {
		return fmt.Errorf("read which repos are pruned: %w", err)
	}

	for _, id := range repos {
		isDue, err := readLoose(ctx, s, forWrite(""), func(rd reader) (bool, error) { return rd.isPrunable(id) })
		if err != nil {
			return fmt.Errorf("prune repo %d: %w", id, err)
		}
		owners, err := s.ownersOfRepo(ctx, id)
		if err != nil {
			return err
		}
		for last := !isDue; !last; {
			last, err = writeYielding(ctx, s, owners, func(t *tx) (bool, error) { return t.pruneRepo(id) })
			if err != nil {
				return fmt.Errorf("prune repo %d: %w", id, err)
			}
		}
	}
	return nil
}

// isPrunable reports whether a repo has an envelope or an event that pruneRepo prunes or passes over:
// repos without any need no write.
func (rd reader) isPrunable(id int64) (bool, error) {
	p, err := rd.pruning(id)
	if err != nil {
		return false, err
	}
	envelopes, err := rd.nextEnvelopes(p, 1)
	if err != nil || len(envelopes) > 0 {
		return len(envelopes) > 0, err
	}
	for query, seq := range map[string]int64{nextEvents: p.eventsSeq, nextRadarEvents: p.radarSeq} {
		events, err := rd.nextEvents(p, query, seq, 1)
		if err != nil || len(events) > 0 && !p.keeps(events[0]) {
			return err == nil, err
		}
	}
	return false, nil
}

// pruneRepo prunes the next envelopes and events of a repo.
func (t *tx) pruneRepo(id int64) (last bool, err error) {
	_, err = t.Exec("INSERT INTO prunings (repo_id) VALUES (?) ON CONFLICT (repo_id) DO NOTHING", id)
	if err != nil {
		return false, fmt.Errorf("begin to prune: %w", err)
	}
	p, err := t.pruning(id)
	if err != nil {
		return false, err
	}
	last = true
	for _, prune := range []func(*tx, pruning) (bool, error){(*tx).pruneEnvelopes, (*tx).pruneEvents, (*tx).pruneRadar} {
		isLast, err := prune(t, p)
		if err != nil {
			return false, err
		}
		last = last && isLast
	}
	return last, nil
}

// A pruning is what is to be pruned of a repo, and how far it is.
type pruning struct {
	repo, org int64
	// Older envelopes and events are pruned; 0: none.
	envelopes, events ledger.Time
	// The attestation that was pruned last.
	envelopesAt, envelope int64
	// The events that were examined last.
	eventsSeq, radarSeq int64
}

// pruning reads what is to be pruned of a repo.
func (rd reader) pruning(repo int64) (p pruning, err error) {
	var keepEnvelopes, keepEvents, purged ledger.Time
	err = rd.Row(`
SELECT r.id, r.org_id, r.keep_envelopes, r.keep_events, r.purged_at,
  coalesce(p.envelopes_at, -1), coalesce(p.envelope, 0), coalesce(p.events_seq, -1), coalesce(p.radar_seq, -1)
FROM repos r LEFT JOIN prunings p ON p.repo_id = r.id WHERE r.id = ?`, repo).
		Scan(&p.repo, &p.org, &keepEnvelopes, &keepEvents, &purged,
			&p.envelopesAt, &p.envelope, &p.eventsSeq, &p.radarSeq)
	if err != nil {
		return p, fmt.Errorf("read what is pruned: %w", err)
	}

	if purged != 0 { // all, even if a wrong clock has put the times of some ahead
		p.envelopes, p.events = math.MaxInt64, math.MaxInt64
		return p, nil
	}
	if keepEnvelopes != 0 {
		p.envelopes = rd.now - keepEnvelopes
	}
	if keepEvents != 0 {
		p.events = rd.now - keepEvents
	}
	return p, nil
}

// A prunableEnvelope is the envelope of an attestation, with the time of its recording.
type prunableEnvelope struct{ id, at, size int64 }

// nextEnvelopes returns the next envelopes of a repo to prune.
func (rd reader) nextEnvelopes(p pruning, limit int) ([]prunableEnvelope, error) {
	rows, err := all(rd, func(row scanner) (r prunableEnvelope, err error) {
		return r, row.Scan(&r.id, &r.at, &r.size)
	}, `
SELECT a.id, a.recorded_at, length(e.body) + coalesce(length(e.payload), 0)
FROM attestations a /*+index attestations_by_time*/ /*+ordered*/ JOIN envelopes e ON e.attestation_id = a.id
WHERE a.repo_id = ? AND (a.recorded_at, a.id) > (?, ?) AND a.recorded_at < ? ORDER BY a.recorded_at, a.id LIMIT ?`,
		p.repo, p.envelopesAt, p.envelope, p.envelopes, limit)
	if err != nil {
		return nil, fmt.Errorf("read envelopes: %w", err)
	}
	return rows, nil
}

// pruneEnvelopes prunes the next envelopes of a repo: only the digest of each is kept.
func (t *tx) pruneEnvelopes(p pruning) (last bool, err error) {
	rows, err := t.nextEnvelopes(p, prunedRows)
	if err != nil || len(rows) == 0 {
		return true, err
	}

	size := int64(0)
	for _, r := range rows {
		if err := t.pruneEnvelope(r.id); err != nil {
			return false, err
		}
		p.envelopesAt, p.envelope = r.at, r.id
		if size += r.size; size > prunedBytes {
			break
		}
	}
	_, err = t.Exec("UPDATE prunings SET envelopes_at = ?, envelope = ? WHERE repo_id = ?",
		p.envelopesAt, p.envelope, p.repo)
	return size <= prunedBytes && len(rows) < prunedRows, err
}

func (t *tx) pruneEnvelope(row int64) error {
	whole, err := t.envelope(row)
	if isPruned(err) {
		return nil
	}
	if err != nil {
		return err
	}
	digest := sha256.Sum256(whole)
	_, err = t.Exec("UPDATE envelopes SET body = ?, payload = NULL, payload_at = ? WHERE attestation_id = ?",
		digest[:], envelope.PrunedAt, row)
	if err != nil {
		return fmt.Errorf("prune an envelope: %w", err)
	}
	return nil
}

// Queries for the next events of a repo that pruning examines. Those of the radar have an index by org.
const (
	nextEvents = `
SELECT id, repo_id, seq, at, type, leaf IS NOT NULL, ` + isDelivered + `
FROM events e /*+index events_by_repo*/ WHERE type <> 'radar' AND org_id = ?1 AND repo_id = ?2 AND seq > ?3
ORDER BY seq LIMIT ?4`
	nextRadarEvents = `
SELECT id, repo_id, seq, at, type, leaf IS NOT NULL, ` + isDelivered + `
FROM events e /*+index events_of_radar*/ WHERE type = 'radar' AND org_id = ?1 AND seq > ?3 ORDER BY seq LIMIT ?4`

	// isDelivered is the condition that the delivery log of a webhook has an event of a repo.
	isDelivered = `EXISTS (SELECT 1 FROM webhooks w /*+ordered*/ JOIN outbox o ON o.webhook_id = w.id
  WHERE w.repo_id = ?2 AND w.deleted_at = 0 AND o.event = e.id)`
)

// pruneEvents prunes the bodies of the next events of a repo, but those of the radar.
func (t *tx) pruneEvents(p pruning) (last bool, err error) {
	seq, last, err := t.pruneBodies(p, nextEvents, p.eventsSeq)
	if err != nil || seq == p.eventsSeq {
		return last, err
	}
	_, err = t.Exec("UPDATE prunings SET events_seq = ? WHERE repo_id = ?", seq, p.repo)
	return last, err
}

// pruneRadar prunes the bodies of the next events of the radar.
func (t *tx) pruneRadar(p pruning) (last bool, err error) {
	seq, last, err := t.pruneBodies(p, nextRadarEvents, p.radarSeq)
	if err != nil || seq == p.radarSeq {
		return last, err
	}
	_, err = t.Exec("UPDATE prunings SET radar_seq = ? WHERE repo_id = ?", seq, p.repo)
	return last, err
}

// nextEvents returns the events that a query returns, after a sequence number.
func (rd reader) nextEvents(p pruning, query string, seq int64, limit int) ([]prunable, error) {
	events, err := all(rd, scanPrunable, query, p.org, p.repo, seq, limit)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return events, nil
}

// keeps reports whether an event is kept, and so are those after it.
func (p pruning) keeps(e prunable) bool {
	return e.at >= p.events || e.repo == p.repo && (!e.hasLeaf || e.isDelivered)
}

// pruneBodies prunes the bodies of the events that a query returns, after a sequence number. It ends
// before the first that is kept: because it is new, has no leaf in the log yet, or may be delivered.
// It returns the number of the last one.
func (t *tx) pruneBodies(p pruning, query string, seq int64) (to int64, last bool, err error) {
	events, err := t.nextEvents(p, query, seq, prunedRows)
	if err != nil {
		return seq, false, err
	}
	for _, e := range events {
		if p.keeps(e) {
			return seq, true, nil
		}
		if e.repo == p.repo && e.kind.IsPrunable() {
			if _, err := t.Exec("UPDATE events SET body = ?, salt = NULL WHERE id = ?", []byte{}, e.id); err != nil {
				return seq, false, fmt.Errorf("prune an event: %w", err)
			}
		}
		seq = e.seq
	}
	return seq, len(events) < prunedRows, nil
}

// A prunable is an event that may be pruned.
type prunable struct {
	id, repo, seq        int64
	at                   ledger.Time
	kind                 ledger.EventType
	hasLeaf, isDelivered bool
}

func scanPrunable(row scanner) (e prunable, err error) {
	return e, row.Scan(&e.id, &e.repo, &e.seq, &e.at, &e.kind, &e.hasLeaf, &e.isDelivered)
}
