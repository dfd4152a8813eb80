package upkeep

import (
	"cmp"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// prunedRows and prunedBytes limit what one step prunes of a repo.
	prunedRows  = 100
	prunedBytes = 4 << 20
)

// A pruning is a job that prunes envelopes or events of a repo: those older than keep, or all if the repo was
// purged.
type pruning struct {
	*backlog.Job
	keep     ledger.Time // 0: without a limit
	isPurged bool
}

// pruneNext prunes the next envelopes or events of a repo. At the end, it waits until the first that is left is
// too old, for a minute at least.
func pruneNext(t *txn.Tx, j *backlog.Job) (done bool, err error) {
	p := pruning{Job: j}
	keep, prune := "keep_events", pruneBodies
	if j.Ref == backlog.Envelopes {
		keep, prune = "keep_envelopes", pruneEnvelopes
	}
	err = t.Row("SELECT "+keep+", purged_at > 0 FROM repos WHERE id = ?", j.Repo).Scan(&p.keep, &p.isPurged)
	if err != nil {
		return false, fmt.Errorf("read what is pruned: %w", err)
	}
	if p.keep == 0 && !p.isPurged {
		return true, nil
	}

	first, done, err := prune(t, p)
	if err != nil || !done {
		return false, err
	}
	if first > 0 || !p.isPurged {
		j.NotBefore = max(cmp.Or(first, t.Now)+p.keep+1, t.Now.Add(pruneInterval))
	}
	return true, nil
}

// isOver reports whether the repo does not keep what was recorded at a time. After a purge that is all, even if a
// wrong clock has put the times of some ahead.
func (p pruning) isOver(at, now ledger.Time) bool { return p.isPurged || at < now-p.keep }

// pruneEnvelopes prunes the next envelopes of a repo: only the digest of each is kept. It returns when the first that
// is left was recorded; 0: none is.
func pruneEnvelopes(t *txn.Tx, p pruning) (first ledger.Time, done bool, err error) {
	after := ledger.Time(-1)
	if p.Position > 0 {
		if err := t.Row("SELECT recorded_at FROM attestations WHERE id = ?", p.Position).Scan(&after); err != nil {
			return 0, false, fmt.Errorf("read the attestation that was pruned last: %w", err)
		}
	}
	type prunable struct {
		id, size int64
		at       ledger.Time
	}
	rows, err := txn.All(t.Reader, func(row txn.Scanner) (r prunable, err error) {
		return r, row.Scan(&r.id, &r.at, &r.size)
	}, `
SELECT a.id, a.recorded_at, length(e.body) + coalesce(length(e.payload), 0)
FROM attestations a /*+index attestations_by_time*/ /*+ordered*/ JOIN envelopes e ON e.attestation_id = a.id
WHERE a.repo_id = ? AND (a.recorded_at, a.id) > (?, ?) ORDER BY a.recorded_at, a.id LIMIT ?`,
		p.Repo, after, p.Position, prunedRows)
	if err != nil {
		return 0, false, fmt.Errorf("read envelopes: %w", err)
	}

	size := int64(0)
	for _, r := range rows {
		if !p.isOver(r.at, t.Now) {
			return r.at, true, nil
		}
		if err := facts.PruneEnvelope(t, r.id); err != nil {
			return 0, false, err
		}
		p.Position = r.id
		if size += r.size; size > prunedBytes {
			return 0, false, nil
		}
	}
	return 0, len(rows) < prunedRows, nil
}

// Queries for the next events of a repo that pruning examines.
const (
	nextEvents = `
SELECT id, repo_id, seq, at, type, leaf IS NOT NULL, ` + isDelivered + `
FROM events e /*+index events_by_repo*/ WHERE type <> 'radar' AND org_id = ?1 AND repo_id = ?2 AND seq >= ?3
ORDER BY seq LIMIT ?4`
	nextRadarEvents = `
SELECT id, repo_id, seq, at, type, leaf IS NOT NULL, ` + isDelivered + `
FROM events e /*+index events_of_radar*/ WHERE type = 'radar' AND org_id = ?1 AND seq >= ?3 ORDER BY seq LIMIT ?4`

	// isDelivered is the condition that the delivery log of a webhook has an event of a repo.
	isDelivered = `EXISTS (SELECT 1 FROM webhooks w /*+ordered*/ JOIN outbox o ON o.webhook_id = w.id
  WHERE w.repo_id = ?2 AND w.deleted_at = 0 AND o.event = e.id)`
)

// A prunableEvent is an event that may be pruned.
type prunableEvent struct {
	id, repo, seq        int64
	at                   ledger.Time
	kind                 ledger.EventType
	hasLeaf, isDelivered bool
}

func scanPrunable(row txn.Scanner) (e prunableEvent, err error) {
	return e, row.Scan(&e.id, &e.repo, &e.seq, &e.at, &e.kind, &e.hasLeaf, &e.isDelivered)
}

// pruneBodies prunes the bodies of the next events of a repo. It ends before the first that is kept: because it
// is new, has no leaf in the log yet, or may be delivered. It returns the time of that event; 0: none is kept.
func pruneBodies(t *txn.Tx, p pruning) (first ledger.Time, done bool, err error) {
	query := nextEvents
	if p.Ref == backlog.RadarEvents {
		query = nextRadarEvents
	}
	list, err := txn.All(t.Reader, scanPrunable, query, p.Org, p.Repo, p.Position, prunedRows)
	if err != nil {
		return 0, false, fmt.Errorf("read events: %w", err)
	}
	for _, e := range list {
		if !p.isOver(e.at, t.Now) || e.repo == p.Repo && (!e.hasLeaf || e.isDelivered) {
			return e.at, true, nil
		}
		if e.repo == p.Repo && e.kind.IsPrunable() {
			if err := events.PruneBody(t, e.id); err != nil {
				return 0, false, err
			}
		}
		p.Position = e.seq + 1
	}
	return 0, len(list) < prunedRows, nil
}
