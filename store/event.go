package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// append buffers an event of the repo, and its deliveries to the repo's webhooks. It
// returns the event's row id.
func (t *tx) append(r repoRow, kind ledger.EventType, eventID string, body []byte) (int64, error) {
	seq, err := t.takeSeq(r.orgID)
	if err != nil {
		return 0, err
	}
	id, err := t.takeRow("events")
	if err != nil {
		return 0, err
	}
	t.batch.rows.events.Add(id, r.orgID, seq, eventID, string(kind), r.id, int64(t.stamp), body)
	return id, t.enqueue(r, kind, id)
}

func (t *tx) attestationEvent(r repoRow, rec ledger.AttestationRecord) (eventID string, err error) {
	if eventID, err = t.newID(eventPrefix); err != nil {
		return "", err
	}
	_, err = t.append(r, ledger.EventAttestation, eventID, ledger.Render(ledger.AttestationEvent{
		ID: eventID, Org: r.org, Repo: r.name, Commit: rec.Commit, Predicate: rec.Predicate, Identity: rec.Identity,
		Result:    rec.Result,
		Timestamp: t.now, Attestation: rec.ID, PayloadDigest: rec.PayloadDigest,
	}))
	return eventID, err
}

func (t *tx) stateEvent(r repoRow, sha string, from, to ledger.State, cause ledger.Cause) (id int64, err error) {
	eventID, err := t.newID(eventPrefix)
	if err != nil {
		return 0, err
	}
	return t.append(r, ledger.EventState, eventID, ledger.Render(ledger.StateEvent{
		ID: eventID, Org: r.org, Repo: r.name, Commit: sha, From: from, To: to, Cause: cause, Timestamp: t.now,
	}))
}

// policyEvent appends the event of a new policy version, which replaces the repo's
// active one.
func (t *tx) policyEvent(r repoRow, version int, digest, by string) error {
	eventID, err := t.newID(eventPrefix)
	if err != nil {
		return err
	}
	_, err = t.append(r, ledger.EventPolicy, eventID, ledger.Render(ledger.PolicyEvent{
		ID: eventID, Org: r.org, Repo: r.name, Version: version, PreviousVersion: r.policyVersion, Digest: digest,
		ChangedBy: by, Timestamp: t.now,
	}))
	return err
}

// An EventFilter selects the events of a list. Empty fields do not filter.
type EventFilter struct {
	Query
	After string // the id of the event before the first one
	Types []ledger.EventType
	Repo  string
	// Descending lists the newest events first.
	Descending bool
}

// Events lists the bodies of an org's events, oldest first by default, byte for byte
// as they were recorded.
func (s *Store) Events(ctx context.Context, org string, f EventFilter) (ledger.Page[jsontext.Value], error) {
	first, order := int64(-1), "ORDER BY seq LIMIT ?"
	if f.Descending {
		first, order = math.MaxInt64, "ORDER BY seq DESC LIMIT ?"
	}
	position, err := f.after(first)
	if err != nil {
		return ledger.Page[jsontext.Value]{}, err
	}
	return read(ctx, s, byOrg(org), func(rd reader) (list ledger.Page[jsontext.Value], err error) {
		orgID, err := rd.orgID(org)
		if err != nil {
			return list, err
		}
		where, args, err := f.where(rd, orgID, org, position)
		if err != nil {
			return list, err
		}
		rows, err := all(rd, scanEvent, "SELECT seq, body FROM events WHERE "+where+" "+order, append(args, f.Limit+1)...)
		return page(rows, f.Limit), err
	})
}

func scanEvent(row scanner) (keyed[jsontext.Value], error) {
	var e keyed[jsontext.Value]
	err := row.Scan(&e.id, (*[]byte)(&e.row))
	return e, err
}

func (f EventFilter) where(rd reader, orgID int64, org string, position int64) (string, []any, error) {
	after, before := position, int64(math.MaxInt64)
	if f.Descending {
		after, before = -1, position
	}
	if f.After != "" {
		seq, err := rd.eventSeq(orgID, f.After)
		if err != nil {
			return "", nil, err
		}
		after = max(after, seq)
	}

	where, args := "org_id = ? AND seq > ? AND seq < ?", []any{orgID, after, before}
	if len(f.Types) > 0 {
		types := slices.Compact(slices.Sorted(slices.Values(f.Types)))
		where += " AND type IN (?" + strings.Repeat(", ?", len(types)-1) + ")"
		for _, kind := range types {
			args = append(args, kind)
		}
	}

	if f.Repo != "" {
		r, err := rd.findRepo(org, f.Repo)
		if err != nil {
			return "", nil, err
		}
		where, args = where+" AND repo_id = ?", append(args, r.id)
	}
	return where, args, nil
}

// An eventRef holds the row id and the sequence number of an event.
type eventRef struct{ row, seq int64 }

// findEvent finds an event by id. If there is none, it returns sql.ErrNoRows. There is
// no index on ids, so it uses the index on the time, which the id contains.
func (rd reader) findEvent(orgID int64, eventID string) (e eventRef, err error) {
	at, ok := idTime(eventPrefix, eventID)
	if !ok {
		return e, sql.ErrNoRows
	}
	return e, rd.Row(selectEventRef, orgID, at, eventID).Scan(&e.row, &e.seq)
}

const selectEventRef = `
SELECT id, seq FROM events /*+index events_by_time*/
WHERE org_id = ? AND at = ? AND event_id = ?`

func (rd reader) eventSeq(orgID int64, eventID string) (int64, error) {
	e, err := rd.findEvent(orgID, eventID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ledger.FieldErrorf(ledger.CodeInvalidParameter, "after", "event %q not found", eventID)
	}
	return e.seq, err
}
