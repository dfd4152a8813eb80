package lists

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// chain lists a commit's attestations, newest first. Its parameters are the row id
// after which it starts (0 means the newest), the commit and the number of rows. It
// checks the commit of each row, because a cursor can contain any row id.
const chain = `
WITH RECURSIVE chain (id, n) AS (
  SELECT CASE WHEN CAST(?1 AS BIGINT) > 0 THEN ?1 ELSE newest END, 1 FROM commits WHERE id = ?2
  UNION ALL
  SELECT a.previous, chain.n + 1 FROM chain JOIN attestations a ON a.id = chain.id
  WHERE a.previous > 0 AND chain.n < ?3)
SELECT ` + facts.AttestationColumns + `
FROM commits c /*+ordered*/ JOIN chain ON 1 = 1 /*+ordered*/ JOIN attestations a ON a.id = chain.id
WHERE c.id = ?2 AND a.commit_id = ?2 AND a.id <> ?1`

// isChain reports whether the query lists the newest attestations of a commit that has
// more than one page of them. It then uses chain: each attestation links to the previous
// one of its commit.
func (q attestationQuery) isChain() bool {
	return q.commit != 0 && q.attested > int64(q.limit) && !q.ascending &&
		q.predicates == nil && q.types == nil && q.signers == nil && q.status == "" && q.since == 0
}

// isShort reports whether readCommit can read the page: it lists a commit's attestations,
// and they are few, or only the newest of them are examined.
func (q attestationQuery) isShort() bool {
	return q.commit != 0 && (q.attested <= txn.MaxExamined || q.isChain())
}

// readCommit reads a page of one commit's attestations.
func (q attestationQuery) readCommit(rd txn.Reader) (txn.Section[ledger.AttestationRecord], error) {
	return q.askCommit(rd)()
}

// askCommit asks the query of readCommit.
func (q attestationQuery) askCommit(rd txn.Reader) func() (txn.Section[ledger.AttestationRecord], error) {
	query, args := q.sqlOfCommit()
	asked := txn.AskAll(rd, q.facts.AttestationScanner(rd, q.repo), query, args...)
	return func() (p txn.Section[ledger.AttestationRecord], err error) {
		rows, err := asked()
		if err != nil {
			return p, fmt.Errorf("list attestations: %w", err)
		}
		return q.page(rows), nil
	}
}

// page returns the page in rows. The index of a commit's attestations is not in the order of the list, so they are
// all that match, and are sorted.
func (q attestationQuery) page(
	rows []txn.Keyed[ledger.AttestationRecord],
) (p txn.Section[ledger.AttestationRecord]) {
	if q.isChain() { // by row id, which is the order of recording
		slices.SortFunc(rows, func(a, b txn.Keyed[ledger.AttestationRecord]) int { return cmp.Compare(b.ID, a.ID) })
	} else {
		slices.SortFunc(rows, q.compare)
	}
	p.Rows = rows[:min(len(rows), q.limit)]
	if len(rows) > q.limit {
		p.End = attestationKey(rows[q.limit-1])
	}
	return p
}

// sqlOfCommit returns the query for the attestations of one commit, and one more than fit
// on the page. Without a filter, it uses chain.
func (q attestationQuery) sqlOfCommit() (string, []any) {
	const table = "attestations a /*+index attestations_by_commit*/"
	if q.isChain() {
		if q.position == nil {
			return chain, []any{0, q.commit, q.limit + 1}
		}
		return chain, []any{q.position[1], q.commit, q.limit + 2}
	}

	where, args := q.filter("a.commit_id = ?", []any{q.commit}, q.predicates, q.signers, q.status)
	if q.since != 0 {
		where, args = where+" AND a.recorded_at >= ?", append(args, q.since)
	}
	order := " ORDER BY a.recorded_at DESC, a.id DESC LIMIT ?"
	if q.ascending {
		order = " ORDER BY a.recorded_at, a.id LIMIT ?"
	}
	switch {
	case q.position == nil:
	case q.ascending:
		where, args = where+" AND (a.recorded_at, a.id) > (?, ?)", append(args, q.position[0], q.position[1])
	default:
		where, args = where+" AND (a.recorded_at, a.id) < (?, ?)", append(args, q.position[0], q.position[1])
	}

	if q.attested <= int64(q.limit) {
		return "SELECT " + facts.AttestationColumns + `
FROM commits c /*+ordered*/ JOIN ` + table + ` ON a.commit_id = c.id
WHERE ` + where, args
	}
	return facts.SelectAttestation + "WHERE a.id IN (SELECT a.id FROM " + table + " WHERE " + where + order + ")",
		append(args, q.limit+1)
}

// compare compares rows in the order of the list: by recorded_at, which is the time in the
// id, and by row id.
func (q attestationQuery) compare(a, b txn.Keyed[ledger.AttestationRecord]) int {
	if !q.ascending {
		a, b = b, a
	}
	return cmp.Or(strings.Compare(txn.TimeOfID(a.Row.ID), txn.TimeOfID(b.Row.ID)), cmp.Compare(a.ID, b.ID))
}
