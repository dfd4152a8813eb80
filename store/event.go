package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// append appends an event to its org's log, with the deliveries to the repo's
// webhooks, and returns its row id.
func (t *tx) append(r repoRow, kind ledger.EventType, eventID string, body []byte) (int64, error) {
	seq, err := t.nextSeq(r.orgID)
	if err != nil {
		return 0, err
	}
	id, err := t.insert("INSERT INTO events (org_id, seq, event_id, type, repo_id, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
		r.orgID, seq, eventID, kind, r.id, t.now, body)
	if err != nil {
		return 0, fmt.Errorf("insert event: %w", err)
	}
	return id, t.enqueue(r, kind, id)
}

// A newEvent is an event that has not been appended yet.
type newEvent struct {
	id   string
	body []byte
}

// appendMany is append for many events of one type: it spares most of what a
// statement for every one would cost.
func (t *tx) appendMany(r repoRow, kind ledger.EventType, events []newEvent) error {
	if len(events) == 0 {
		return nil
	}
	seq, err := t.takeSeqs(r.orgID, len(events))
	if err != nil {
		return err
	}
	var row int64
	if err := t.row("SELECT coalesce(max(id), 0) + 1 FROM events").Scan(&row); err != nil {
		return fmt.Errorf("number events: %w", err)
	}
	args := make([]any, 0, 8*len(events))
	for i, e := range events {
		args = append(args, row+int64(i), r.orgID, seq+int64(i), e.id, kind, r.id, t.now, e.body)
	}
	if err := t.insertMany("INSERT INTO events (id, org_id, seq, event_id, type, repo_id, at, body) VALUES ", 8, args); err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	for i := range events {
		if err := t.enqueue(r, kind, row+int64(i)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) attestationEvent(r repoRow, rec ledger.AttestationRecord) (eventID string, err error) {
	if eventID, err = t.ids.next(eventPrefix, t.now); err != nil {
		return "", err
	}
	_, err = t.append(r, ledger.EventAttestation, eventID, ledger.Render(ledger.AttestationEvent{
		ID: eventID, Org: r.org, Repo: r.name, Commit: rec.Commit, Predicate: rec.Predicate, Identity: rec.Identity, Result: rec.Result,
		Timestamp: t.now, Attestation: rec.ID, PayloadDigest: rec.PayloadDigest,
	}))
	return eventID, err
}

func (t *tx) stateEvent(r repoRow, sha string, from, to ledger.State, cause ledger.Cause) (id int64, err error) {
	eventID, err := t.ids.next(eventPrefix, t.now)
	if err != nil {
		return 0, err
	}
	return t.append(r, ledger.EventState, eventID, ledger.Render(ledger.StateEvent{
		ID: eventID, Org: r.org, Repo: r.name, Commit: sha, From: from, To: to, Cause: cause, Timestamp: t.now,
	}))
}

// policyEvent tells of the version that follows the repo's active one.
func (t *tx) policyEvent(r repoRow, version int, digest, by string) error {
	eventID, err := t.ids.next(eventPrefix, t.now)
	if err != nil {
		return err
	}
	_, err = t.append(r, ledger.EventPolicy, eventID, ledger.Render(ledger.PolicyEvent{
		ID: eventID, Org: r.org, Repo: r.name, Version: version, PreviousVersion: r.policyVersion, Digest: digest, ChangedBy: by, Timestamp: t.now,
	}))
	return err
}

// An EventFilter says which events a list holds. Empty members do not filter.
type EventFilter struct {
	Query
	After string // the id of the event behind which the list begins
	Types []ledger.EventType
	Repo  string
	// Descending lists the newest first.
	Descending bool
}

// Events lists an org's events, oldest first unless the filter says otherwise,
// each the bytes that were rendered when it was recorded.
func (s *Store) Events(ctx context.Context, org string, f EventFilter) (list ledger.Page[jsontext.Value], err error) {
	first, order := int64(-1), "ORDER BY seq LIMIT ?"
	if f.Descending {
		first, order = math.MaxInt64, "ORDER BY seq DESC LIMIT ?"
	}
	position, err := f.after(first)
	if err != nil {
		return list, err
	}
	err = s.read(ctx, func(c *conn) error {
		orgID, err := orgID(c, org)
		if err != nil {
			return err
		}
		where, args, err := f.where(c, orgID, org, position)
		if err != nil {
			return err
		}
		rows, err := all(c, scanEvent, "SELECT seq, body FROM events WHERE "+where+" "+order, append(args, f.Limit+1)...)
		list = page(rows, f.Limit)
		return err
	})
	return list, err
}

func scanEvent(row scanner) (keyed[jsontext.Value], error) {
	var e keyed[jsontext.Value]
	err := row.Scan(&e.id, (*[]byte)(&e.row))
	return e, err
}

func (f EventFilter) where(c *conn, orgID int64, org string, position int64) (string, []any, error) {
	after, before := position, int64(math.MaxInt64)
	if f.Descending {
		after, before = -1, position
	}
	if f.After != "" {
		seq, err := eventSeq(c, orgID, f.After)
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
		r, err := findRepo(c, org, f.Repo)
		if err != nil {
			return "", nil, err
		}
		where, args = where+" AND repo_id = ?", append(args, r.id)
	}
	return where, args, nil
}

func eventSeq(c *conn, orgID int64, eventID string) (int64, error) {
	var seq int64
	err := c.row("SELECT seq FROM events WHERE event_id = ? AND org_id = ?", eventID, orgID).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ledger.FieldErrorf(ledger.CodeInvalidParameter, "after", "the org has no event %q", eventID)
	}
	return seq, err
}
