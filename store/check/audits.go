package check

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// An auditRow is a row of the table audits: what lists of administrative actions are filtered by.
type auditRow struct {
	seq, event         int64
	kind, action, repo string
	actor              string
}

// readAudits reads the rows of a page, by the sequence numbers of their events.
func readAudits(conn *sqldb.Conn, orgID, from, to int64) (map[int64]auditRow, error) {
	rows, err := sqldb.All(conn, func(row sqldb.Scanner) (a auditRow, err error) {
		return a, row.Scan(&a.seq, &a.event, &a.kind, &a.action, &a.repo, &a.actor)
	}, "SELECT seq, event, kind, action, repo, actor FROM audits WHERE org_id = ? AND seq >= ? AND seq < ?",
		orgID, from, to)
	if err != nil {
		return nil, fmt.Errorf("read administrative actions: %w", err)
	}
	bySeq := make(map[int64]auditRow, len(rows))
	for _, row := range rows {
		bySeq[row.seq] = row
	}
	return bySeq, nil
}

// audits checks that the rows of administrative actions are those of the events of a page.
func (c *checker) audits(org string, events []*event, rows map[int64]auditRow) {
	for _, e := range events {
		if e.kind != ledger.EventAudit {
			continue
		}
		row, ok := rows[e.seq]
		delete(rows, e.seq)
		switch want, isSaid := e.auditRow(); {
		case !ok:
			c.Problemf("audit", org, e.row(), "the list of administrative actions does not have it")
		case isSaid && row != want:
			c.Problemf("audit", org, e.row(), "the list of administrative actions has %+v of it, want %+v", row, want)
		}
	}
	for seq := range rows {
		c.Problemf("audit", org, eventRange(seq, seq+1),
			"the list of administrative actions has it, and it is not of the type %s",
			ledger.EventAudit)
	}
}

// auditRow returns the row that an audit event has. It reports false if its body is not that of the leaf.
func (e *event) auditRow() (row auditRow, ok bool) {
	said, ok := e.said.(*ledger.AuditEvent)
	if !ok {
		return row, false
	}
	kind, _, _ := strings.Cut(string(said.Action), ".")
	return auditRow{
		seq: e.seq, event: e.id, kind: kind, action: string(said.Action), repo: strings.ToLower(said.Repo),
		actor: cmp.Or(said.By.Token, said.By.Name),
	}, true
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
