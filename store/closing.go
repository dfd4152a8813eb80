package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// closedAtOnce is the number of violations that an attestation closes in its own write.
// Evaluate closes the others, so that other writes do not wait for a large number.
const closedAtOnce = 50

// A closing says which open violations an attestation closes: those of a predicate, in the
// repo or on one commit.
type closing struct {
	id                            int64 // only of a row
	repoID, predicateID, commitID int64 // 0: all commits
	upTo                          int64
	at                            ledger.Time
	how                           ledger.ClosingType
	by                            string
}

// closeViolations closes the open violations of a predicate in a repo.
func (t *tx) closeViolations(r repoRow, c closing) error {
	if err := t.flush(); err != nil {
		return err
	}
	after, err := t.closedUpTo(c.repoID, c.predicateID, 0)
	if err != nil {
		return err
	}
	list, err := all(t.reader, t.scanOne, selectViolation+`
FROM violations v /*+index violations_open*/`+joinViolation+`
WHERE v.repo_id = ? AND v.predicate_id = ? AND v.closed_at = 0 AND v.id > ? ORDER BY v.id LIMIT ?`,
		c.repoID, c.predicateID, after, closedAtOnce+1)
	if err != nil {
		return fmt.Errorf("read violations: %w", err)
	}

	if len(list) > closedAtOnce {
		list = list[:closedAtOnce]
		err := t.Row("SELECT max(id) FROM violations /*+index violations_open*/"+
			" WHERE repo_id = ? AND predicate_id = ? AND closed_at = 0", c.repoID, c.predicateID).Scan(&c.upTo)
		if err != nil {
			return fmt.Errorf("find the last violation: %w", err)
		}
		rows := sqldb.NewRows(insertClosing, "", closingColumns)
		c.addTo(rows)
		if err := t.closeLater(rows); err != nil {
			return err
		}
	}
	return t.closeAll(r, c, list)
}

// closedUpTo returns the row id up to which the violations of a predicate and a commit are
// closed, even if they are not marked as closed yet.
func (t *tx) closedUpTo(repoID, predicateID, commitID int64) (id int64, err error) {
	err = t.Row(`
SELECT coalesce(max(up_to), 0) FROM closings WHERE repo_id = ? AND predicate_id = ? AND commit_id IN (0, ?)`,
		repoID, predicateID, commitID).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("read closings: %w", err)
	}
	return id, nil
}

const (
	insertClosing = `
INSERT INTO closings (repo_id, predicate_id, commit_id, up_to, closed_at, closed_how, closed_by) VALUES `
	closingColumns = 7
)

func (c closing) addTo(rows *sqldb.Rows) {
	rows.Add(c.repoID, c.predicateID, c.commitID, c.upTo, int64(c.at), string(c.how), c.by)
}

// closeLater has Evaluate close violations, according to rows of the table closings.
func (t *tx) closeLater(rows *sqldb.Rows) error {
	if err := rows.Flush(t.Conn); err != nil {
		return fmt.Errorf("plan to close violations: %w", err)
	}
	t.gathered.wakeEvaluate = true
	return nil
}

// closeExcused closes the open violations of a commit for whose requirement the exception
// that was just recorded stands in.
func (t *tx) closeExcused(s *subject, c closing) error {
	excused := s.d.contract.Excused(s.facts, t.now, c.by)
	if len(excused) == 0 {
		return nil
	}
	open, err := t.openViolations(s.id)
	if err != nil {
		return err
	}

	var list []keyed[ledger.Violation]
	rows := sqldb.NewRows(insertClosing, "", closingColumns)
	for _, v := range open {
		switch isNamed := func(r policy.Requirement) bool { return r.Names(v.row.Predicate, v.predicateType) }; {
		case !slices.ContainsFunc(excused, isNamed):
		case len(list) < closedAtOnce:
			list = append(list, v.keyed)
		default:
			c.predicateID, c.upTo = v.predicateID, v.id
			c.addTo(rows)
		}
	}
	if err := t.closeLater(rows); err != nil {
		return err
	}
	return t.closeAll(s.d.repo, c, list)
}

// A violationRow is an open violation with its predicate.
type violationRow struct {
	keyed[ledger.Violation]
	predicateID   int64
	predicateType string
}

// openViolations reads the open violations of a commit.
func (t *tx) openViolations(commitID int64) ([]violationRow, error) {
	if err := t.flush(); err != nil {
		return nil, err
	}
	list, err := all(t.reader, func(row scanner) (v violationRow, err error) {
		var typeID int64
		if v.keyed, err = t.scanViolation(row, &typeID, &v.predicateID); err != nil {
			return v, err
		}
		v.predicateType, err = t.predicateType(typeID)
		return v, err
	}, selectViolation+", a.type_id, v.predicate_id FROM violations v /*+index violations_open_by_commit*/"+
		joinViolation+" WHERE v.commit_id = ? AND v.closed_at = 0 LIMIT ?", commitID, ledger.MaxOpenViolations)
	if err != nil {
		return nil, fmt.Errorf("read violations: %w", err)
	}
	return list, nil
}

// closeAll marks open violations of a repo as closed.
func (t *tx) closeAll(r repoRow, c closing, list []keyed[ledger.Violation]) error {
	for _, v := range list {
		_, err := t.Exec("UPDATE violations SET closed_at = ?, closed_how = ?, closed_by = ? WHERE id = ?",
			c.at, string(c.how), c.by, v.id)
		if err != nil {
			return fmt.Errorf("close violation: %w", err)
		}
		if c.how == ledger.ClosedByException {
			if err := t.makeGood(v); err != nil {
				return err
			}
		}
		v.row.Status, v.row.ClosedBy = ledger.ViolationClosed, &ledger.Closing{Type: c.how, ID: c.by}
		if err := t.violationEvent(r, v.row); err != nil {
			return err
		}
	}
	t.countOpen(r, -int64(len(list)))
	return nil
}

// makeGood makes the deployment of a violation count, because an exception stands in for
// what it lacked.
func (t *tx) makeGood(v keyed[ledger.Violation]) error {
	if _, ok := ledger.EnvironmentOf(v.row.Predicate); !ok {
		return nil
	}
	_, err := t.Exec(`
INSERT INTO deployments (repo_id, predicate_id, commit_id, attestation_id, required)
SELECT repo_id, predicate_id, commit_id, attestation_id, 1 FROM violations WHERE id = ?
ON CONFLICT (repo_id, predicate_id, commit_id) DO UPDATE SET attestation_id = excluded.attestation_id,
  required = excluded.required, ended_id = 0 WHERE excluded.attestation_id > deployments.attestation_id`, v.id)
	if err != nil {
		return fmt.Errorf("make the deployment count: %w", err)
	}
	return nil
}

// countOpen adds n to the number of open violations of a repo and its org.
func (t *tx) countOpen(r repoRow, n int64) {
	t.count(openOfRepo, r.id, n)
	t.count(openOfOrg, r.orgID, n)
}

// closePlanned closes the violations that are left for Evaluate.
func (s *Store) closePlanned(ctx context.Context) error {
	for {
		next, err := read(ctx, s, forWrite(""), func(rd reader) (c closing, err error) {
			return c, rd.Row("SELECT id, repo_id FROM closings ORDER BY id LIMIT 1").Scan(&c.id, &c.repoID)
		})
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read closings: %w", err)
		}

		for last := false; !last; {
			last, err = writeOfRepo(ctx, s, next.repoID, func(t *tx) (bool, error) { return t.closeNext(next.id) })
			if err != nil {
				return err
			}
		}
	}
}

// closeNext closes the next violations of a closing that was left for Evaluate.
func (t *tx) closeNext(id int64) (last bool, err error) {
	closings, err := all(t.reader, scanClosing, `
SELECT id, repo_id, predicate_id, commit_id, up_to, closed_at, closed_how, closed_by FROM closings WHERE id = ?`, id)
	if err != nil || len(closings) == 0 {
		return true, err // done by another process
	}
	c := closings[0]
	r, err := t.repoByID(c.repoID)
	if err != nil {
		return false, err
	}

	from, where, of := "violations_open*/", "v.repo_id = ?", c.repoID
	if c.commitID != 0 {
		from, where, of = "violations_open_by_commit*/", "v.commit_id = ?", c.commitID
	}
	list, err := all(t.reader, t.scanOne, selectViolation+" FROM violations v /*+index "+from+joinViolation+
		" WHERE "+where+" AND v.predicate_id = ? AND v.closed_at = 0 AND v.id <= ? ORDER BY v.id LIMIT ?",
		of, c.predicateID, c.upTo, closedAtOnce)
	if err != nil {
		return false, fmt.Errorf("read violations: %w", err)
	}

	if err := t.closeAll(r, c, list); err != nil {
		return false, err
	}
	if len(list) == closedAtOnce {
		return false, nil
	}
	_, err = t.Exec("DELETE FROM closings WHERE id = ?", c.id)
	return true, err
}

// scanOne is scanViolation without further columns.
func (t *tx) scanOne(row scanner) (keyed[ledger.Violation], error) { return t.scanViolation(row) }

func scanClosing(row scanner) (closing, error) {
	var c closing
	err := row.Scan(&c.id, &c.repoID, &c.predicateID, &c.commitID, &c.upTo, &c.at, &c.how, &c.by)
	return c, err
}
