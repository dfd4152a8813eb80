package events

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Append buffers an event of the repo with its leaf, and its deliveries to the repo's
// webhooks. It returns the event's row id.
func (j *Journal) Append(t *txn.Tx, r txn.Repo, kind ledger.EventType, eventID string, body []byte) (int64, error) {
	id, seq, err := j.appendRow(t, r.OrgID, r.ID, kind, eventID, body)
	if err != nil {
		return 0, err
	}
	if kind == ledger.EventViolation {
		j.rows.violations.Add(r.OrgID, seq, r.ID, id)
	}
	return id, j.enqueue(t, r, kind, id)
}

// AppendToOrg buffers an event of an org with its leaf, and its deliveries to the webhooks
// of the org's repos.
func (j *Journal) AppendToOrg(t *txn.Tx, orgID int64, kind ledger.EventType, eventID string, body []byte) error {
	id, _, err := j.appendRow(t, orgID, nil, kind, eventID, body)
	if err != nil {
		return err
	}
	return j.enqueueToOrg(t, orgID, kind, id)
}

// appendRow buffers the row of an event, with its leaf. repo is a row id, or nil.
func (j *Journal) appendRow(t *txn.Tx,
	orgID int64, repo any, kind ledger.EventType, eventID string, body []byte,
) (id, seq int64, err error) {
	if seq, err = j.takeSeq(t, orgID); err != nil {
		return 0, 0, err
	}
	if id, err = t.NextRow("events"); err != nil {
		return 0, 0, err
	}
	salt, leaf := newLeaf(body)
	j.rows.events.Add(id, orgID, seq, eventID, string(kind), repo, int64(t.Stamp), body, salt, leaf)
	return id, seq, nil
}

// AppendAttestation appends the event of an attestation that was recorded. It returns the event's ID.
func (j *Journal) AppendAttestation(t *txn.Tx,
	r txn.Repo, rec ledger.AttestationRecord, key, envelopeDigest string,
) (eventID string, err error) {
	if eventID, err = t.NewID(r.OrgID, txn.EventPrefix); err != nil {
		return "", err
	}
	_, err = j.Append(t, r, ledger.EventAttestation, eventID, ledger.Render(ledger.AttestationEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: rec.Commit, Predicate: rec.Predicate, Identity: rec.Identity,
		Result:    rec.Result,
		Timestamp: t.Now, Attestation: rec.ID, PayloadDigest: rec.PayloadDigest, Key: key, EnvelopeDigest: envelopeDigest,
		AssertionDigest: rec.AssertionDigest, Base: rec.Base,
	}))
	return eventID, err
}

// AppendState appends the event of a commit whose state has changed. It returns the event's row id.
func (j *Journal) AppendState(
	t *txn.Tx, r txn.Repo, sha string, from, to ledger.State, cause ledger.Cause,
) (id int64, err error) {
	eventID, err := t.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return 0, err
	}
	return j.Append(t, r, ledger.EventState, eventID, ledger.Render(ledger.StateEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: sha, From: from, To: to, Cause: cause, Timestamp: t.Now,
	}))
}

// AppendStanding appends the event of a commit whose standing has changed, and the state has not.
func (j *Journal) AppendStanding(t *txn.Tx, r txn.Repo, sha string, from, to ledger.State, cause ledger.Cause) error {
	eventID, err := t.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	_, err = j.Append(t, r, ledger.EventStanding, eventID, ledger.Render(ledger.StandingEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: sha, From: from, To: to, Cause: cause, Timestamp: t.Now,
	}))
	return err
}

// AppendPolicy appends the event of a new policy version, which replaces the repo's
// active one. It returns the event's row id.
func (j *Journal) AppendPolicy(t *txn.Tx, r txn.Repo, version int, c policy.Contract, by string) (id int64, err error) {
	eventID, err := t.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return 0, err
	}
	return j.Append(t, r, ledger.EventPolicy, eventID, ledger.Render(ledger.PolicyEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Version: version, PreviousVersion: r.PolicyVersion,
		Digest: c.Digest(), Rules: c.Rules, ChangedBy: by, Timestamp: t.Now,
	}))
}

// AppendViolation appends the event of an opened or closed violation of a repo.
func (j *Journal) AppendViolation(t *txn.Tx, r txn.Repo, v ledger.Violation) error {
	eventID, err := t.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	_, err = j.Append(t, r, ledger.EventViolation, eventID, ledger.Render(ledger.ViolationEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: v.Commit, Predicate: v.Predicate, Identity: v.Identity,
		Attestation: v.Attestation, State: v.State, Missing: v.Missing, Status: v.Status, ClosedBy: v.ClosedBy,
		Timestamp: t.Now,
	}))
	return err
}

// AppendCommit appends the event of what is known of a commit, and was corrected.
func (j *Journal) AppendCommit(t *txn.Tx, r txn.Repo, known facts.Commit, corrected []ledger.Correction) error {
	eventID, err := t.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	fields := make([]ledger.CorrectedField, len(corrected))
	for i, c := range corrected {
		fields[i] = ledger.CorrectedField{Field: c.Field, Before: c.Before, After: c.After}
	}
	_, err = j.Append(t, r, ledger.EventCommit, eventID, ledger.Render(ledger.CommitEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: known.ID, Tree: known.Tree, Corrected: fields, Timestamp: t.Now,
		Facts: known.Digest(),
	}))
	return err
}

// AppendObjects appends the event of commits that are known by their objects now.
func (j *Journal) AppendObjects(t *txn.Tx, r txn.Repo, commits []string) error {
	eventID, err := t.NewID(r.OrgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	_, err = j.Append(t, r, ledger.EventCommit, eventID, ledger.Render(ledger.CommitEvent{
		ID: eventID, Org: r.Org, Repo: r.Name, Commit: commits[0], Objects: commits,
		Corrected: []ledger.CorrectedField{}, Timestamp: t.Now,
	}))
	return err
}

// AppendKey appends an event of a key with which the server signs for an org. It sets the
// event's ID, Org and Timestamp.
func (j *Journal) AppendKey(t *txn.Tx, orgID int64, e ledger.KeyEvent) (eventID string, err error) {
	if eventID, err = t.NewID(orgID, txn.EventPrefix); err != nil {
		return "", err
	}
	if err := t.Row("SELECT name FROM orgs WHERE id = ?", orgID).Scan(&e.Org); err != nil {
		return "", fmt.Errorf("read org: %w", err)
	}
	e.ID, e.Timestamp = eventID, t.Now
	return eventID, j.AppendToOrg(t, orgID, ledger.EventKey, eventID, ledger.Render(e))
}

// LogKey logs that a key signs for an org, or no longer does. It returns the ID of the event.
func (j *Journal) LogKey(ctx context.Context, org string, e ledger.KeyEvent) (eventID string, err error) {
	return txn.Write(ctx, j.db, sqldb.Write{Org: org}, func(t *txn.Tx) (string, error) {
		orgID, err := t.OrgID(org)
		if err != nil {
			return "", err
		}
		return j.AppendKey(t, orgID, e)
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
func (j *Journal) Events(ctx context.Context, org string, f EventFilter) (ledger.Page[jsontext.Value], error) {
	return txn.Read(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[jsontext.Value], err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return list, err
		}
		p, l, err := page(rd, orgID, org, f)
		if err != nil {
			return list, err
		}
		return p.Page(l), nil
	})
}

// SaltedEvents is Events, with the salts by which the leaves in the log commit to the bodies.
func (j *Journal) SaltedEvents(
	ctx context.Context, org string, f EventFilter,
) (ledger.EventPage[jsontext.Value], error) {
	return txn.Read(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.EventPage[jsontext.Value], err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return list, err
		}
		p, l, err := page(rd, orgID, org, f)
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

// page reads a page of a list of an org's events, by their numbers in the org.
func page(rd txn.Reader,
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
		if after, err = eventSeq(rd, orgID, f.After); err != nil {
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

	p, err = txn.RunAll(rd.Conn, f.Walks(orgID, r.ID, after), []any{position}, f.Limit)
	if err != nil {
		return p, l, fmt.Errorf("list events: %w", err)
	}
	// A walk of the default types has no filter, but no bodies of the other events.
	// Those that were pruned have none.
	p.Rows = slices.DeleteFunc(p.Rows, func(e txn.Keyed[jsontext.Value]) bool { return len(e.Row) == 0 })
	return p, l, nil
}

// PruneBody deletes the body of an event, and the salt that hides it. Its leaf stays in the log.
func PruneBody(t *txn.Tx, row int64) error {
	if _, err := t.Exec("UPDATE events SET body = ?, salt = NULL WHERE id = ?", []byte{}, row); err != nil {
		return fmt.Errorf("prune an event: %w", err)
	}
	return nil
}

// Event returns the body of an event, byte for byte as it was recorded. It returns CodePruned if
// it was pruned.
func (j *Journal) Event(ctx context.Context, org, eventID string) ([]byte, error) {
	return txn.Read(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) (body []byte, err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return nil, err
		}
		ref, err := Find(rd, orgID, eventID)
		if err != nil {
			return nil, txn.Missing(err, "event %s not found", eventID)
		}
		err = rd.Row("SELECT body FROM events WHERE id = ?", ref.Row).Scan(&body)
		if err == nil && len(body) == 0 {
			err = ledger.Errorf(ledger.CodePruned,
				"the body of the event was pruned: its leaf in the log is kept")
		}
		return body, err
	})
}

// EventType returns the type of an event.
func (j *Journal) EventType(ctx context.Context, org, eventID string) (ledger.EventType, error) {
	return txn.Read(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) (kind ledger.EventType, err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return "", err
		}
		ref, err := Find(rd, orgID, eventID)
		if err != nil {
			return "", txn.Missing(err, "event %s not found", eventID)
		}
		return kind, rd.Row("SELECT type FROM events WHERE id = ?", ref.Row).Scan(&kind)
	})
}

func scanEvent(row txn.Scanner) (txn.Keyed[jsontext.Value], error) {
	var e txn.Keyed[jsontext.Value]
	err := row.Scan(&e.ID, (*[]byte)(&e.Row))
	return e, err
}

// Walks returns the Walks by which the list is read: of one repo's events, or of the
// org's if repoID is 0. Those of the radar, which most lists leave out, and those of the org
// itself have an index of their own, and those of violations, which are few, have a table.
func (f EventFilter) Walks(orgID, repoID, after int64) []txn.Walk[jsontext.Value] {
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

// An Ref holds the row id and the sequence number of an event.
type Ref struct{ Row, Seq int64 }

// Find finds an event by id. If it does not exist, Find returns sql.ErrNoRows. There is
// no index on ids, so it uses the index on the time, which the id contains.
func Find(rd txn.Reader, orgID int64, eventID string) (e Ref, err error) {
	at, ok := txn.IDTime(txn.EventPrefix, eventID)
	if !ok {
		return e, sql.ErrNoRows
	}
	return e, rd.Row(selectEventRef, orgID, at, eventID).Scan(&e.Row, &e.Seq)
}

const selectEventRef = `
SELECT id, seq FROM events /*+index events_by_time*/
WHERE org_id = ? AND at = ? AND event_id = ?`

func eventSeq(rd txn.Reader, orgID int64, eventID string) (int64, error) {
	e, err := Find(rd, orgID, eventID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ledger.FieldErrorf(ledger.CodeInvalidParameter, "after", "event %q not found", eventID)
	}
	return e.Seq, err
}

// FirstSince returns the sequence number of an org's first event since a time. Without
// such an event, it returns end, the org's next sequence number. It runs a binary search:
// events are in the order of their times, or nearly so, and the times have no index.
func FirstSince(rd txn.Reader, orgID, end int64, since ledger.Time) (int64, error) {
	var failed error
	n := sort.Search(int(end), func(seq int) bool {
		if failed != nil {
			return true
		}
		var at ledger.Time
		failed = rd.Row(eventTime, orgID, seq).Scan(&at)
		return at >= since
	})
	if failed != nil {
		return 0, fmt.Errorf("find the first event since %s: %w", since, failed)
	}
	return int64(n), nil
}

// eventTime selects the time of an event of an org, by its number in the org.
const eventTime = "SELECT at FROM events WHERE org_id = ? AND seq = ?"
