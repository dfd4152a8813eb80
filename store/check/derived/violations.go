package derived

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A violationRow is a row of the table violations.
type violationRow struct {
	attestation, commit, of string // of: the commit of the attestation
	predicate               string
	repoID                  int64
	state                   ledger.State
	missing                 string
	openedAt, closedAt      ledger.Time
	ledger.Closing
}

// checkViolations compares violations and corrections of commits with their events.
func (o *Org) checkViolations(ctx context.Context) error {
	l := &o.violations

	return o.Read(ctx, func(conn *sqldb.Conn) error {
		if err := l.readOn(conn, o.ID, o.End); err != nil {
			return err
		}
		err := conn.Each(func(row sqldb.Scanner) error {
			var v violationRow
			err := row.Scan(&v.attestation, &v.commit, &v.of, &v.predicate, &v.repoID, &v.state, &v.missing, &v.openedAt,
				&v.closedAt, &v.Type, &v.ID)
			if err == nil {
				o.violation(v)
			}
			return err
		}, `
SELECT a.attestation_id, c.sha, d.sha, p.name, v.repo_id, v.state, v.missing, v.opened_at, v.closed_at,
  v.closed_how, v.closed_by
FROM violations v /*+ordered*/ JOIN attestations a ON a.id = v.attestation_id
  /*+ordered*/ JOIN commits c ON c.id = v.commit_id /*+ordered*/ JOIN commits d ON d.id = a.commit_id
  /*+ordered*/ JOIN predicates p ON p.id = v.predicate_id
WHERE v.org_id = ? ORDER BY v.id`, o.ID)
		if err != nil {
			return fmt.Errorf("read violations: %w", err)
		}

		for _, id := range slices.Sorted(maps.Keys(l.opened)) {
			o.Problemf("violation", o.Name, "attestation "+id, "there is an event of the violation, and no row")
		}
		return o.corrections(conn)
	})
}

// violation compares a violation with its events.
func (o *Org) violation(v violationRow) {
	row, l := "attestation "+v.attestation, &o.violations
	opened, isLogged := l.opened[v.attestation]
	delete(l.opened, v.attestation)
	said := ledger.ViolationEvent{Commit: v.commit, Predicate: v.predicate, State: v.state, Timestamp: v.openedAt}
	err := json.Unmarshal([]byte(v.missing), &said.Missing)
	switch {
	case !isLogged && l.unread == 0:
		o.Problemf("violation", o.Name, row, "there is no event of the violation")
	case v.of != v.commit:
		o.Problemf("violation", o.Name, row, "the violation is of commit %s, and the attestation of %s", v.commit, v.of)
	case isLogged && (err != nil || opening(v.repoID, &said) != opened):
		o.Problemf("violation", o.Name, row, "the row of the violation is not as its event says")
	}

	closed, wasClosed := l.closed[v.attestation]
	switch isClosed := v.closedAt > 0; {
	case !wasClosed && isClosed && l.unread > 0:
	case isClosed != wasClosed:
		o.Problemf("violation", o.Name, row, "the row says that the violation is closed: %t, and the events: %t", isClosed,
			wasClosed)
	case v.Closing != closed.Closing || v.closedAt > closed.at || isClosed && v.closedAt < v.openedAt:
		o.Problemf("violation", o.Name, row, "the row says that %s %s has closed it at %s, and its event %s %s at %s",
			v.Type, v.ID, v.closedAt, closed.Type, closed.ID, closed.at)
	}
}

// corrections compares the corrections of commits with their events. Those from before a release that
// logs what is known of commits have none.
func (o *Org) corrections(conn *sqldb.Conn) error {
	err := conn.Each(func(row sqldb.Scanner) error {
		var f correctedField
		if err := row.Scan(&f.repoID, &f.commit, &f.at, &f.Field, &f.Before, &f.After); err != nil {
			return err
		}
		if o.violations.corrected[f]--; o.violations.corrected[f] < 0 && o.facts.unread == 0 && f.at >= o.violations.known {
			o.Problemf("correction", o.Name, "commit "+f.commit, "no event says that its %s were corrected at %s from %q to %q",
				f.Field, f.at, f.Before, f.After)
		}
		return nil
	}, `
SELECT c.repo_id, c.sha, x.at, x.field, x.before, x.after
FROM repos r /*+ordered*/ JOIN commits c ON c.repo_id = r.id /*+ordered*/ JOIN corrections x ON x.commit_id = c.id
WHERE r.org_id = ?`, o.ID)
	if err != nil {
		return fmt.Errorf("read corrections: %w", err)
	}

	for f, n := range o.violations.corrected {
		if n > 0 {
			o.Problemf("correction", o.Name, "commit "+f.commit, "an event says that its %s were corrected at %s, and no row",
				f.Field, f.at)
		}
	}
	return nil
}
