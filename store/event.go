package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// append buffers an event of the repo with its leaf, and its deliveries to the repo's
// webhooks. It returns the event's row id.
func (t *tx) append(r txn.Repo, kind ledger.EventType, eventID string, body []byte) (int64, error) {
	id, seq, err := t.appendRow(r.OrgID, r.ID, kind, eventID, body)
	if err != nil {
		return 0, err
	}
	if kind == ledger.EventViolation {
		t.batch.rows.violationEvents.Add(r.OrgID, seq, r.ID, id)
	}
	return id, t.enqueue(r, kind, id)
}

// appendToOrg buffers an event of an org with its leaf, and its deliveries to the webhooks
// of the org's repos.
func (t *tx) appendToOrg(orgID int64, kind ledger.EventType, eventID string, body []byte) error {
	id, _, err := t.appendRow(orgID, nil, kind, eventID, body)
	if err != nil {
		return err
	}
	return t.enqueueToOrg(orgID, kind, id)
}

// appendRow buffers the row of an event, with its leaf. repo is a row id, or nil.
func (t *tx) appendRow(
	orgID int64, repo any, kind ledger.EventType, eventID string, body []byte,
) (id, seq int64, err error) {
	if seq, err = t.takeSeq(orgID); err != nil {
		return 0, 0, err
	}
	if id, err = t.kernel.NextRow("events"); err != nil {
		return 0, 0, err
	}
	salt, leaf := newLeaf(body)
	t.batch.rows.events.Add(id, orgID, seq, eventID, string(kind), repo, int64(t.kernel.Stamp), body, salt, leaf)
	return id, seq, nil
}

func (t *tx) attestationEvent(
	r txn.Repo, rec ledger.AttestationRecord, key, envelopeDigest string,
) (eventID string, err error) {
	if eventID, err = t.kernel.NewID(r.OrgID, txn.EventPrefix); err != nil {
		return "", err
	}
	_, err = t.append(r, ledger.EventAttestation, eventID, ledger.Render(ledger.AttestationEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: rec.Commit, Predicate: rec.Predicate, Identity: rec.Identity,
		Result:    rec.Result,
		Timestamp: t.Now, Attestation: rec.ID, PayloadDigest: rec.PayloadDigest, Key: key, EnvelopeDigest: envelopeDigest,
		AssertionDigest: rec.AssertionDigest,
	}))
	return eventID, err
}

func (t *tx) stateEvent(r txn.Repo, sha string, from, to ledger.State, cause ledger.Cause) (id int64, err error) {
	eventID, err := t.kernel.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return 0, err
	}
	return t.append(r, ledger.EventState, eventID, ledger.Render(ledger.StateEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: sha, From: from, To: to, Cause: cause, Timestamp: t.Now,
	}))
}

// standingEvent appends the event of a commit whose standing has changed, and the state has not.
func (t *tx) standingEvent(r txn.Repo, sha string, from, to ledger.State, cause ledger.Cause) error {
	eventID, err := t.kernel.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	_, err = t.append(r, ledger.EventStanding, eventID, ledger.Render(ledger.StandingEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: sha, From: from, To: to, Cause: cause, Timestamp: t.Now,
	}))
	return err
}

// policyEvent appends the event of a new policy version, which replaces the repo's
// active one. It returns the event's row id.
func (t *tx) policyEvent(r txn.Repo, version int, c policy.Contract, by string) (id int64, err error) {
	eventID, err := t.kernel.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return 0, err
	}
	return t.append(r, ledger.EventPolicy, eventID, ledger.Render(ledger.PolicyEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Version: version, PreviousVersion: r.PolicyVersion,
		Digest: c.Digest(), Rules: c.Rules, ChangedBy: by, Timestamp: t.Now,
	}))
}

// violationEvent appends the event of an opened or closed violation of a repo.
func (t *tx) violationEvent(r txn.Repo, v ledger.Violation) error {
	eventID, err := t.kernel.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	_, err = t.append(r, ledger.EventViolation, eventID, ledger.Render(ledger.ViolationEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: v.Commit, Predicate: v.Predicate, Identity: v.Identity,
		Attestation: v.Attestation, State: v.State, Missing: v.Missing, Status: v.Status, ClosedBy: v.ClosedBy,
		Timestamp: t.Now,
	}))
	return err
}

// commitEvent appends the event of what is known of a commit, and was corrected.
func (t *tx) commitEvent(r txn.Repo, known facts.Commit, corrected []ledger.Correction) error {
	eventID, err := t.kernel.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	fields := make([]ledger.CorrectedField, len(corrected))
	for i, c := range corrected {
		fields[i] = ledger.CorrectedField{Field: c.Field, Before: c.Before, After: c.After}
	}
	_, err = t.append(r, ledger.EventCommit, eventID, ledger.Render(ledger.CommitEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: known.ID, Tree: known.Tree, Corrected: fields, Timestamp: t.Now,
		Facts: known.Digest(),
	}))
	return err
}

// keyEvent appends an event of a key with which the server signs for an org. It sets the
// event's ID, Org and Timestamp.
func (t *tx) keyEvent(orgID int64, e ledger.KeyEvent) (eventID string, err error) {
	if eventID, err = t.kernel.NewID(orgID, txn.EventPrefix); err != nil {
		return "", err
	}
	if err := t.Row("SELECT name FROM orgs WHERE id = ?", orgID).Scan(&e.Org); err != nil {
		return "", fmt.Errorf("read org: %w", err)
	}
	e.ID, e.Timestamp = eventID, t.Now
	return eventID, t.appendToOrg(orgID, ledger.EventKey, eventID, ledger.Render(e))
}

// LogKey logs that a key signs for an org, or no longer does. It returns the ID of the event.
func (s *Store) LogKey(ctx context.Context, org string, e ledger.KeyEvent) (eventID string, err error) {
	return write(ctx, s, org, func(t *tx) (string, error) {
		orgID, err := t.OrgID(org)
		if err != nil {
			return "", err
		}
		return t.keyEvent(orgID, e)
	})
}

// An EventFilter selects the events of a list. Empty fields do not filter.
type EventFilter struct {
	txn.Query
	After string // the id of the event before the first one
	Types []ledger.EventType
	Repo  string
	// Descending lists the newest events first.
	Descending bool
}

// Events lists the bodies of an org's events, oldest first by default, byte for byte
// as they were recorded. Events whose body was pruned are left out.
func (s *Store) Events(ctx context.Context, org string, f EventFilter) (ledger.Page[jsontext.Value], error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (list ledger.Page[jsontext.Value], err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return list, err
		}
		p, l, err := rd.events(orgID, org, f)
		if err != nil {
			return list, err
		}
		return p.Page(l), nil
	})
}

// SaltedEvents is Events, with the salts by which the leaves in the log commit to the bodies.
func (s *Store) SaltedEvents(ctx context.Context, org string, f EventFilter) (ledger.EventPage[jsontext.Value], error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (list ledger.EventPage[jsontext.Value], err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return list, err
		}
		p, l, err := rd.events(orgID, org, f)
		if err != nil {
			return list, err
		}
		list.Page, list.Salts = p.Page(l), make([]string, len(p.Rows))
		at := make(map[int64]int, len(p.Rows)) // by seq
		var keys []any
		for i, e := range p.Rows {
			at[e.ID] = i
			keys = append(keys, orgID, e.ID)
		}

		err = rd.EachIn(func(row txn.Scanner) error {
			var seq int64
			var salt []byte
			err := row.Scan(&seq, &salt)
			list.Salts[at[seq]] = hex.EncodeToString(salt)
			return err
		}, selectSalts, 2, keys)
		if err != nil {
			return list, fmt.Errorf("read salts: %w", err)
		}
		return list, nil
	})
}

const selectSalts = "SELECT seq, salt FROM events WHERE (org_id, seq) IN "

// events reads a page of a list of an org's events, by their numbers in the org.
func (rd reader) events(
	orgID int64, org string, f EventFilter,
) (p txn.Section[jsontext.Value], l txn.Listing, err error) {
	first := int64(-1)
	if f.Descending {
		first = math.MaxInt64
	}
	l = rd.Listing("events", orgID)
	position, err := l.After(f.Query, first)
	if err != nil {
		return p, l, err
	}
	after := int64(-1)
	if f.After != "" {
		if after, err = rd.eventSeq(orgID, f.After); err != nil {
			return p, l, err
		}
	}
	var r txn.Repo
	if f.Repo != "" {
		if r, err = rd.FindRepo(org, f.Repo); err != nil {
			return p, l, err
		}
	}
	if !f.Descending {
		position = max(position, after)
	}

	p, err = txn.RunAll(rd.Conn, f.walks(orgID, r.ID, after), []any{position}, f.Limit)
	if err != nil {
		return p, l, fmt.Errorf("list events: %w", err)
	}
	// A walk of the default types has no filter, but no bodies of the other events.
	// Those that were pruned have none.
	p.Rows = slices.DeleteFunc(p.Rows, func(e txn.Keyed[jsontext.Value]) bool { return len(e.Row) == 0 })
	return p, l, nil
}

// Event returns the body of an event, byte for byte as it was recorded. It returns CodePruned if
// it was pruned.
func (s *Store) Event(ctx context.Context, org, eventID string) ([]byte, error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (body []byte, err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return nil, err
		}
		ref, err := rd.findEvent(orgID, eventID)
		if err != nil {
			return nil, txn.Missing(err, "event %s not found", eventID)
		}
		err = rd.Row("SELECT body FROM events WHERE id = ?", ref.row).Scan(&body)
		if err == nil && len(body) == 0 {
			err = ledger.Errorf(ledger.CodePruned,
				"the body of the event was pruned: its leaf in the log is kept")
		}
		return body, err
	})
}

// EventType returns the type of an event.
func (s *Store) EventType(ctx context.Context, org, eventID string) (ledger.EventType, error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (kind ledger.EventType, err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return "", err
		}
		ref, err := rd.findEvent(orgID, eventID)
		if err != nil {
			return "", txn.Missing(err, "event %s not found", eventID)
		}
		return kind, rd.Row("SELECT type FROM events WHERE id = ?", ref.row).Scan(&kind)
	})
}

func scanEvent(row txn.Scanner) (txn.Keyed[jsontext.Value], error) {
	var e txn.Keyed[jsontext.Value]
	err := row.Scan(&e.ID, (*[]byte)(&e.Row))
	return e, err
}

// walks returns the walks by which the list is read: of one repo's events, or of the
// org's if repoID is 0. Those of the radar, which most lists leave out, and those of the org
// itself have an index of their own, and those of violations, which are few, have a table.
func (f EventFilter) walks(orgID, repoID, after int64) []txn.Walk[jsontext.Value] {
	types := f.Types
	if len(types) == 0 {
		types = ledger.EventTypes()
	}
	types = slices.Compact(slices.Sorted(slices.Values(types)))
	withRadar := slices.Contains(types, ledger.EventRadar)
	others := slices.DeleteFunc(slices.Clone(types), func(kind ledger.EventType) bool { return kind == ledger.EventRadar })

	if repoID != 0 {
		others = slices.DeleteFunc(others, ledger.EventType.IsOfOrg)
	}

	var walks []txn.Walk[jsontext.Value]
	switch {
	case len(others) == 0:
	case len(others) == 1 && others[0] == ledger.EventViolation:
		w := f.walk("violation_events x", "x.org_id = ?", orgID, after)
		w.Keys, w.Joins = []string{"x.seq"}, " /*+ordered*/ JOIN events e ON e.id = x.event"
		if repoID != 0 {
			w.Filter, w.FilterArgs = " AND x.repo_id = ?", []any{repoID}
		}
		walks = append(walks, w)
	case !slices.ContainsFunc(others, isOfRepo):
		w := f.walk("events e /*+index events_of_org*/", "e.repo_id IS NULL AND e.org_id = ?", orgID, after)
		if len(others) < countTypes(ledger.EventType.IsOfOrg) {
			w.Filter, w.FilterArgs = inTypes(others)
		}
		walks = append(walks, w)
	case repoID == 0:
		w := f.walk("events e", "e.org_id = ?", orgID, after)
		if len(types) < len(ledger.EventTypes()) {
			w.Filter, w.FilterArgs = inTypes(types)
		}
		return append(walks, w)
	default:
		w := f.walk("events e /*+index events_by_repo*/", "e.type <> 'radar' AND e.repo_id = ?", repoID, after)
		switch {
		case slices.Equal(others, []ledger.EventType{ledger.EventAttestation, ledger.EventPolicy, ledger.EventState}):
			w.Columns = "e.seq, CASE WHEN e.type IN ('violation', 'commit') THEN NULL ELSE e.body END"
		case len(others) < countTypes(isOfRepo)-1:
			w.Filter, w.FilterArgs = inTypes(others)
		}
		walks = append(walks, w)
	}

	if withRadar {
		w := f.walk("events e /*+index events_of_radar*/", "e.type = 'radar' AND e.org_id = ?", orgID, after)
		if repoID != 0 {
			w.Filter, w.FilterArgs = " AND e.repo_id = ?", []any{repoID}
		}
		walks = append(walks, w)
	}
	return walks
}

func isOfRepo(t ledger.EventType) bool { return !t.IsOfOrg() }

// countTypes returns how many event types match.
func countTypes(match func(ledger.EventType) bool) (n int) {
	for _, t := range ledger.EventTypes() {
		if match(t) {
			n++
		}
	}
	return n
}

// inTypes returns the condition that an event has one of the types.
func inTypes(types []ledger.EventType) (where string, args []any) {
	for _, kind := range types {
		args = append(args, kind)
	}
	return " AND e.type IN (?" + strings.Repeat(", ?", len(types)-1) + ")", args
}

// walk returns a walk of the events after a sequence number, without a filter.
func (f EventFilter) walk(from, where string, id, after int64) txn.Walk[jsontext.Value] {
	w := txn.Walk[jsontext.Value]{
		From: from, Where: where, Args: []any{id},
		Keys: []string{"e.seq"}, Key: txn.IDOf[jsontext.Value], Down: f.Descending,
		Columns: "e.seq, e.body", Scan: scanEvent,
	}
	if f.Descending && after >= 0 {
		w.Stop = []any{after + 1}
	}
	return w
}

// An eventRef holds the row id and the sequence number of an event.
type eventRef struct{ row, seq int64 }

// findEvent finds an event by id. If it does not exist, findEvent returns sql.ErrNoRows. There is
// no index on ids, so it uses the index on the time, which the id contains.
func (rd reader) findEvent(orgID int64, eventID string) (e eventRef, err error) {
	at, ok := txn.IDTime(txn.EventPrefix, eventID)
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
