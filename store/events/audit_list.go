package events

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An AuditFilter selects the administrative actions of a list. Empty fields do not filter.
type AuditFilter struct {
	txn.Query
	// Action is an action, or the kind of resource of several.
	Action ledger.AuditAction
	// By is the ID of a token, or the name of an actor without a token.
	By    string
	Repo  string
	Since ledger.Time
	// Ascending lists the oldest actions first.
	Ascending bool
}

// Audits lists the events of the administrative actions in an org, newest first by default,
// byte for byte as they were recorded.
func (j *Journal) Audits(ctx context.Context, org string, f AuditFilter) (ledger.Page[jsontext.Value], error) {
	find := func(rd txn.Reader, orgID int64) (txn.Walk[jsontext.Value], error) { return auditWalk(rd, orgID, f) }
	return txn.ListWalk(ctx, j.db, org, f.Query, "administrative actions", find)
}

// auditWalk returns the walk by which a list is read.
func auditWalk(rd txn.Reader, orgID int64, f AuditFilter) (w txn.Walk[jsontext.Value], err error) {
	w = txn.Walk[jsontext.Value]{
		From: "audits x", Where: "x.org_id = ?", Args: []any{orgID},
		Keys: []string{"x.seq"}, Key: txn.IDOf[jsontext.Value], Down: !f.Ascending,
		Columns: "x.seq, e.body", Joins: " /*+ordered*/ JOIN events e ON e.id = x.event", Scan: scanEvent,
	}
	if f.Since != 0 {
		if err := stopBefore(rd, &w, orgID, f.Since); err != nil {
			return w, err
		}
	}

	filter := func(column, value string) {
		w.Filter, w.FilterArgs = w.Filter+" AND x."+column+" = ?", append(w.FilterArgs, value)
	}
	switch {
	case f.Action == "":
	case f.Action.IsKind():
		filter("kind", string(f.Action))
	default:
		filter("action", string(f.Action))
	}
	if f.By != "" {
		filter("actor", f.By)
	}
	if f.Repo != "" {
		filter("repo", strings.ToLower(f.Repo))
	}
	return w, nil
}

// stopBefore limits a walk of events to those since a time.
func stopBefore(rd txn.Reader, w *txn.Walk[jsontext.Value], orgID int64, since ledger.Time) error {
	var end int64
	if err := rd.Row("SELECT next_seq FROM orgs WHERE id = ?", orgID).Scan(&end); err != nil {
		return fmt.Errorf("read org: %w", err)
	}
	first, err := FirstSince(rd, orgID, end, since)
	if err != nil {
		return err
	}
	if w.Down {
		w.Stop = []any{first}
		return nil
	}
	w.Where, w.Args = w.Where+" AND x.seq >= ?", append(w.Args, first)
	return nil
}
