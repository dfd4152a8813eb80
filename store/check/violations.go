package check

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

// violations compares violations and corrections of commits with their events.
func (c *checker) violations(ctx context.Context, o *org) error {
	l := &o.violations

	return c.Read(ctx, func(conn *sqldb.Conn) error {
		if err := l.readOn(conn, o.id, o.end); err != nil {
			return err
		}
		err := conn.Each(func(row sqldb.Scanner) error {
			var v violationRow
			err := row.Scan(&v.attestation, &v.commit, &v.of, &v.predicate, &v.repoID, &v.state, &v.missing, &v.openedAt,
				&v.closedAt, &v.Type, &v.ID)
			if err == nil {
				c.violation(o, v)
			}
			return err
		}, `
SELECT a.attestation_id, c.sha, d.sha, p.name, v.repo_id, v.state, v.missing, v.opened_at, v.closed_at,
  v.closed_how, v.closed_by
FROM violations v /*+ordered*/ JOIN attestations a ON a.id = v.attestation_id
  /*+ordered*/ JOIN commits c ON c.id = v.commit_id /*+ordered*/ JOIN commits d ON d.id = a.commit_id
  /*+ordered*/ JOIN predicates p ON p.id = v.predicate_id
WHERE v.org_id = ? ORDER BY v.id`, o.id)
		if err != nil {
			return fmt.Errorf("read violations: %w", err)
		}

		for _, id := range slices.Sorted(maps.Keys(l.opened)) {
			c.Problemf("violation", o.name, "attestation "+id, "there is an event of the violation, and no row")
		}
		return c.corrections(conn, o)
	})
}

// violation compares a violation with its events.
func (c *checker) violation(o *org, v violationRow) {
	row, l := "attestation "+v.attestation, &o.violations
	opened, isLogged := l.opened[v.attestation]
	delete(l.opened, v.attestation)
	said := ledger.ViolationEvent{Commit: v.commit, Predicate: v.predicate, State: v.state, Timestamp: v.openedAt}
	err := json.Unmarshal([]byte(v.missing), &said.Missing)
	switch {
	case !isLogged && l.unread == 0:
		c.Problemf("violation", o.name, row, "there is no event of the violation")
	case v.of != v.commit:
		c.Problemf("violation", o.name, row, "the violation is of commit %s, and the attestation of %s", v.commit, v.of)
	case isLogged && (err != nil || opening(v.repoID, &said) != opened):
		c.Problemf("violation", o.name, row, "the row of the violation is not as its event says")
	}

	closed, wasClosed := l.closed[v.attestation]
	switch isClosed := v.closedAt > 0; {
	case !wasClosed && isClosed && l.unread > 0:
	case isClosed != wasClosed:
		c.Problemf("violation", o.name, row, "the row says that the violation is closed: %t, and the events: %t", isClosed,
			wasClosed)
	case v.Closing != closed.Closing || v.closedAt > closed.at || isClosed && v.closedAt < v.openedAt:
		c.Problemf("violation", o.name, row, "the row says that %s %s has closed it at %s, and its event %s %s at %s",
			v.Type, v.ID, v.closedAt, closed.Type, closed.ID, closed.at)
	}
}

// corrections compares the corrections of commits with their events. Those from before a release that
// logs what is known of commits have none.
func (c *checker) corrections(conn *sqldb.Conn, o *org) error {
	err := conn.Each(func(row sqldb.Scanner) error {
		var f correctedField
		if err := row.Scan(&f.repoID, &f.commit, &f.at, &f.Field, &f.Before, &f.After); err != nil {
			return err
		}
		if o.violations.corrected[f]--; o.violations.corrected[f] < 0 && o.facts.unread == 0 && f.at >= o.violations.known {
			c.Problemf("correction", o.name, "commit "+f.commit, "no event says that its %s were corrected at %s from %q to %q",
				f.Field, f.at, f.Before, f.After)
		}
		return nil
	}, `
SELECT c.repo_id, c.sha, x.at, x.field, x.before, x.after
FROM repos r /*+ordered*/ JOIN commits c ON c.repo_id = r.id /*+ordered*/ JOIN corrections x ON x.commit_id = c.id
WHERE r.org_id = ?`, o.id)
	if err != nil {
		return fmt.Errorf("read corrections: %w", err)
	}

	for f, n := range o.violations.corrected {
		if n > 0 {
			c.Problemf("correction", o.name, "commit "+f.commit, "an event says that its %s were corrected at %s, and no row",
				f.Field, f.at)
		}
	}
	return nil
}

// violationEvents checks that the list of the events of violations has those of a page.
func (c *checker) violationEvents(org string, events []*event, rows map[int64]listedEvent) {
	for _, e := range events {
		row, ok := rows[e.seq]
		delete(rows, e.seq)
		switch isOne := e.kind == ledger.EventViolation; {
		case ok != isOne:
			c.Problemf("violation", org, e.row(), "it is of a violation: %t, and the list of those has it: %t", isOne, ok)
		case ok && row != listedEvent{e.repoID, e.id}:
			c.Problemf("violation", org, e.row(), "the list of events of violations has %+v of it", row)
		}
	}
	for seq := range rows {
		c.Problemf("violation", org, eventRange(seq, seq+1), "the list of events of violations has it, and it is missing")
	}
}

// A listedEvent is a row of the table violation_events.
type listedEvent struct{ repo, event int64 }

// readViolationEvents reads the events of violations among those of a page, by their sequence numbers.
func readViolationEvents(conn *sqldb.Conn, org, from, to int64) (map[int64]listedEvent, error) {
	rows := make(map[int64]listedEvent)
	err := conn.Each(func(row sqldb.Scanner) error {
		var seq int64
		var v listedEvent
		err := row.Scan(&seq, &v.repo, &v.event)
		rows[seq] = v
		return err
	}, "SELECT seq, repo_id, event FROM violation_events WHERE org_id = ? AND seq >= ? AND seq < ?", org, from, to)
	if err != nil {
		return nil, fmt.Errorf("read events of violations: %w", err)
	}
	return rows, nil
}
