package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// An exceptionRow is a row of the table exceptions.
type exceptionRow struct {
	repo, commit        int64
	requirement, reason string
	until               ledger.Time
}

// A mergeRow is what a row of the table merges has of the statement.
type mergeRow struct {
	commit       int64
	source, kind string
	// parent is the commit of the mainline. It is empty in claims of early releases, for which parentState counts.
	parent string
}

// A storedMerge is a row of the table merges, and what is stored of its commits.
type storedMerge struct {
	mergeRow
	parentState ledger.State
	reason      string
	// tree and parents are those of the commit's object. The tree is empty if that is not known.
	tree    string
	parents []byte // a JSON array
	// isMarked reports whether the commits are marked as what they are in the merge.
	isMarked bool
}

// statements compares what is stored of exceptions, claims of merges and change records with what was signed.
func (c *checker) statements(ctx context.Context, o *org, events []*event) error {
	var exceptions, merges, records []any
	for _, e := range events {
		switch a := e.evidence; {
		case a == nil:
		case a.exception != nil:
			exceptions = append(exceptions, a.id)
		case a.merge != nil:
			merges = append(merges, a.id)
		case a.changes != nil:
			records = append(records, a.id)
		}
	}
	if exceptions == nil && merges == nil && records == nil {
		return nil
	}

	excused, merged, recorded := make(map[int64]exceptionRow), make(map[int64]storedMerge), make(map[int64][]byte)
	return c.Read(ctx, func(conn *sqldb.Conn) error {
		err := conn.EachIn(func(row sqldb.Scanner) error {
			var id int64
			var x exceptionRow
			err := row.Scan(&id, &x.repo, &x.commit, &x.requirement, &x.reason, &x.until)
			excused[id] = x
			return err
		}, "SELECT attestation_id, repo_id, commit_id, requirement, reason, ends_at FROM exceptions WHERE attestation_id IN ",
			1, exceptions)
		if err != nil {
			return fmt.Errorf("read exceptions: %w", err)
		}
		err = conn.EachIn(func(row sqldb.Scanner) error {
			var id int64
			var m storedMerge
			err := row.Scan(&id, &m.commit, &m.source, &m.kind, &m.parent, &m.parentState, &m.reason, &m.tree, &m.parents,
				&m.isMarked)
			merged[id] = m
			return err
		}, `
SELECT m.attestation_id, m.commit_id, c.sha, m.kind, coalesce(p.sha, ''), m.parent_state, m.reason, d.tree, l.parents,
  d.merged & 1 > 0 AND c.merged & 2 > 0 AND EXISTS (SELECT 1 FROM merge_sides s WHERE s.commit_id = m.source_id)
    AND (m.parent_id = 0 OR p.merged & 4 > 0 AND EXISTS (SELECT 1 FROM merge_sides s WHERE s.commit_id = m.parent_id))
FROM merges m /*+ordered*/ JOIN commits c ON c.id = m.source_id /*+ordered*/ JOIN commits d ON d.id = m.commit_id
  LEFT JOIN commit_details l ON l.commit_id = d.id LEFT JOIN commits p ON p.id = m.parent_id
WHERE m.attestation_id IN `, 1, merges)
		if err != nil {
			return fmt.Errorf("read claims of merges: %w", err)
		}
		err = conn.EachIn(func(row sqldb.Scanner) error {
			var id int64
			var paths []byte
			err := row.Scan(&id, &paths)
			recorded[id] = paths
			return err
		}, "SELECT attestation_id, paths FROM change_records WHERE attestation_id IN ", 1, records)
		if err != nil {
			return fmt.Errorf("read change records: %w", err)
		}

		for _, e := range events {
			switch a := e.evidence; {
			case a == nil:
			case a.exception != nil:
				row, ok := excused[a.id]
				c.compareException(o, e, row, ok)
			case a.merge != nil:
				if m, ok := merged[a.id]; ok { // else a later one has replaced it
					err = c.compareMerge(conn, o, e, m)
				}
			case a.changes != nil:
				c.compareChanges(o, e, recorded[a.id])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *checker) compareException(o *org, e *event, row exceptionRow, ok bool) {
	a := e.evidence
	want := exceptionRow{e.repoID, a.commitID, a.exception.Requirement, a.exception.Reason, a.exception.Until}
	switch {
	case !ok:
		c.Problemf("exception", o.name, a.row(), "it is an exception, and has no row")
		return
	case row != want:
		c.Problemf("exception", o.name, a.row(), "the row says %v, and the statement %v", row, want)
	}
	o.excused++
}

// compareChanges compares the paths in the row of a change record, nil without one, with those that were signed.
func (c *checker) compareChanges(o *org, e *event, text []byte) {
	a := e.evidence
	var paths []string
	switch err := json.Unmarshal(text, &paths); {
	case text == nil:
		c.Problemf("change record", o.name, a.row(), "it is a change record, and has no row")
		return
	case err != nil || !slices.Equal(paths, a.changes.Paths):
		c.Problemf("change record", o.name, a.row(), "the row has other paths than the statement")
	}
	o.recorded++
}

// compareMerge compares the row of a claim of a merge. The first parent had no higher state than the
// transitions say, and nothing carries by a claim that does not agree with the commit's object.
func (c *checker) compareMerge(conn *sqldb.Conn, o *org, e *event, row storedMerge) error {
	a := e.evidence
	o.merged++
	want := mergeRow{commit: a.commitID, source: a.merge.Source.SHA, kind: string(a.merge.Kind)}
	if said, ok := e.said.(*ledger.AttestationEvent); ok {
		want.parent = said.Base
	} else if row.parent != "" {
		want.parent = a.merge.Parent.SHA
	}
	if !row.isMarked {
		c.Problemf("merge", o.name, a.row(), "the commits are not marked as those of one")
	}
	if row.mergeRow != want {
		c.Problemf("merge", o.name, a.row(), "the row says %v, and the statement %v", row.mergeRow, want)
	}
	if row.reason == "" {
		var parents []string
		_ = json.Unmarshal(row.parents, &parents) // without parents, WhyNot says so
		if why := a.merge.WhyNot(row.tree, parents); why != "" {
			c.Problemf("merge", o.name, a.row(), "something carries by it, and it does not agree with the object: %s", why)
		}
	}

	highest := ledger.Draft
	if row.reason == "" && row.parent == "" {
		err := conn.Each(func(r sqldb.Scanner) error { return r.Scan(&highest) }, `
SELECT t.to_state FROM commits c /*+ordered*/ JOIN transitions t ON t.commit_id = c.id
WHERE c.repo_id = ? AND c.sha = ? AND t.event < ? ORDER BY t.event DESC LIMIT 1`, e.repoID, a.merge.Parent.SHA, e.id)
		if err != nil {
			return fmt.Errorf("read the state of a first parent: %w", err)
		}
	}
	if highest = min(highest, ledger.Promotable); row.parentState > highest {
		c.Problemf("merge", o.name, a.row(), "the row says that the first parent was %s, and it was at most %s",
			row.parentState, highest)
	}
	return nil
}

// replacedClaims checks that claims of merges without a row were replaced by later ones of the same person about the
// same source, or that the commit may have had the maximum of claims.
func (c *checker) replacedClaims(ctx context.Context, o *org) error {
	err := c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error {
			var id string
			err := row.Scan(&id)
			if err == nil {
				c.Problemf("merge", o.name, "attestation "+id, "it is a claim of a merge, and has no row")
			}
			return err
		}, selectReplaced, o.id, attestation.MergePredicateType, ledger.MaxMergeClaims)
	})
	if err != nil {
		return fmt.Errorf("read replaced claims of merges: %w", err)
	}
	return nil
}

// selectReplaced selects the claims that have no row, and should.
const selectReplaced = `
SELECT a.attestation_id
FROM predicates p /*+ordered*/ JOIN repos r ON r.org_id = p.org_id
  /*+ordered*/ JOIN attestations a ON a.repo_id = r.id AND a.predicate_id = p.id
  /*+ordered*/ JOIN predicate_types t ON t.id = a.type_id /*+ordered*/ JOIN signers s ON s.id = a.signer_id
  LEFT JOIN merges m ON m.attestation_id = a.id
WHERE p.org_id = ? AND p.name >= 'merge:' AND p.name < 'merge;' AND t.uri = ? AND m.attestation_id IS NULL
  AND (SELECT count(*) FROM merges n WHERE n.commit_id = a.commit_id) < ?
  AND NOT EXISTS (
    SELECT 1 FROM merges n JOIN attestations b ON b.id = n.attestation_id JOIN signers q ON q.id = b.signer_id
    WHERE n.commit_id = a.commit_id AND b.id > a.id AND b.slot = a.slot AND q.person = s.person)
ORDER BY a.id`

// countStatements compares the number of exceptions, claims of merges and change records with those that attestations
// are. Those of a pruned envelope are not known.
func (c *checker) countStatements(ctx context.Context, o *org) error {
	for _, table := range []struct {
		check, name string
		rows, found int64
	}{{"exception", "exceptions", o.exceptions, o.excused}, {"merge", "merges", o.merges, o.merged},
		{"change record", "change_records", o.records, o.recorded}} {
		if table.rows == table.found {
			continue
		}
		var pruned int64
		err := c.Read(ctx, func(conn *sqldb.Conn) error {
			return conn.Row(`
SELECT count(*) FROM `+table.name+` x /*+ordered*/ JOIN attestations a ON a.id = x.attestation_id
  /*+ordered*/ JOIN repos r ON r.id = a.repo_id /*+ordered*/ JOIN envelopes e ON e.attestation_id = x.attestation_id
WHERE r.org_id = ? AND e.payload_at < 0`, o.id).Scan(&pruned)
		})
		if err != nil {
			return fmt.Errorf("count %s: %w", table.name, err)
		}
		if table.rows != table.found+pruned {
			c.Problemf(table.check, o.name, "", "there are %d %s, and %d attestations are such", table.rows,
				strings.ReplaceAll(table.name, "_", " "), table.found+pruned)
		}
	}
	return nil
}
