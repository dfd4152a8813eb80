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
