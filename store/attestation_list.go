package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// An AttestationFilter selects the attestations of a list. Empty fields do not filter.
type AttestationFilter struct {
	Query
	Predicate string // a predicate, or a prefix followed by *
	Identity  string // a DN, or a plain name if it contains no "="
	Commit    string // a full commit id or a prefix
	Status    ledger.Status
	Since     ledger.Time
	Ascending bool // oldest first
}

// Attestations lists a repo's attestations by the time of recording, newest first by
// default.
func (s *Store) Attestations(
	ctx context.Context, org, repo string, f AttestationFilter,
) (ledger.Page[ledger.AttestationRecord], error) {
	position, err := f.keys(2)
	if err != nil {
		return ledger.Page[ledger.AttestationRecord]{}, err
	}
	return read(ctx, s, byOrg(org), func(rd reader) (list ledger.Page[ledger.AttestationRecord], err error) {
		r, err := rd.findRepo(org, repo)
		if err != nil {
			return list, err
		}
		rows, err := f.run(rd, r, position)
		list = page(rows, f.Limit)
		if list.NextCursor != "" {
			last := rows[f.Limit-1]
			at, _ := idTime(attestationPrefix, last.row.ID)
			list.NextCursor = cursor(int64(at), last.id)
		}
		return list, err
	})
}

// run reads the filtered page, and one more row. It runs a query per matching
// predicate and signer. Each reads an index in the order of the list until the page
// is full. Only a status, or a predicate together with a signer, is filtered row by
// row.
func (f AttestationFilter) run(rd reader, r repoRow, position []int64) ([]keyed[ledger.AttestationRecord], error) {
	q := attestationQuery{repo: r, status: f.Status, since: f.Since, position: position, ascending: f.Ascending,
		limit: f.Limit + 1}

	if f.Commit != "" {
		commit, err := rd.findCommit(r, f.Commit)
		if err != nil {
			return nil, err
		}
		q.commit, q.fits = commit.id, commit.row.Attested <= int64(q.limit)
	}

	predicates, err := f.predicates(rd, r.orgID)
	if err != nil {
		return nil, err
	}
	signers, err := f.signers(rd, r.orgID)
	if err != nil {
		return nil, err
	}

	if q.commit != 0 { // one query reads all attestations of the commit
		q.predicates, q.signers = predicates, signers
		return q.run(rd)
	}

	var rows []keyed[ledger.AttestationRecord]
	for predicate := range predicates.each() {
		for signer := range signers.each() {
			q.predicates, q.signers = predicate, signer
			part, err := q.run(rd)
			if err != nil {
				return nil, err
			}
			rows = append(rows, part...)
		}
	}

	slices.SortFunc(rows, q.compare)
	return rows[:min(len(rows), q.limit)], nil
}

// An idSet is a set of row ids; nil means all rows.
type idSet struct {
	ids []int64
	// query and args are the query for the ids, and its parameters.
	query string
	args  []any
}

// each yields a set for each id, or nil if s is nil.
func (s *idSet) each() iter.Seq[*idSet] {
	return func(yield func(*idSet) bool) {
		if s == nil {
			yield(nil)
			return
		}
		for i := range s.ids {
			if !yield(&idSet{ids: s.ids[i : i+1]}) {
				return
			}
		}
	}
}

// where appends to a condition that column is in the set.
func (s *idSet) where(column, where string, args []any) (string, []any) {
	switch {
	case s == nil:
		return where, args
	case len(s.ids) == 1:
		return where + " AND " + column + " = ?", append(args, s.ids[0])
	}
	return where + " AND " + column + " IN (" + s.query + ")", append(args, s.args...)
}

func (rd reader) findIDs(query string, args ...any) (*idSet, error) {
	ids, err := all(rd, scanID, query, args...)
	return &idSet{ids, query, args}, err
}

// predicates returns the predicates that match the filter.
func (f AttestationFilter) predicates(rd reader, orgID int64) (*idSet, error) {
	prefix, isPrefix := strings.CutSuffix(f.Predicate, "*")
	switch {
	case f.Predicate == "" || f.Predicate == "*":
		return nil, nil
	case isPrefix:
		// U+10FFFF sorts after every character that is valid in a predicate.
		return rd.findIDs("SELECT id FROM predicates WHERE org_id = ? AND name >= ? AND name < ?",
			orgID, prefix, prefix+"\U0010FFFF")
	default:
		return rd.findIDs("SELECT id FROM predicates WHERE org_id = ? AND name = ?", orgID, f.Predicate)
	}
}

// signers returns the signers that match the filter.
func (f AttestationFilter) signers(rd reader, orgID int64) (*idSet, error) {
	switch {
	case f.Identity == "":
		return nil, nil
	case strings.Contains(f.Identity, "="):
		dn, err := identity.ParseDN(f.Identity)
		if err != nil {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidParameter, "identity", "%v", err)
		}
		return rd.findIDs("SELECT id FROM signers WHERE org_id = ? AND dn = ?", orgID, dn.String())
	default:
		return rd.findIDs("SELECT id FROM signers WHERE org_id = ? AND cn = ?", orgID, f.Identity)
	}
}

// An attestationQuery is a query for one page of attestations.
type attestationQuery struct {
	repo       repoRow
	commit     int64 // 0 means all commits
	fits       bool  // whether all attestations of the commit fit on the page
	predicates *idSet
	signers    *idSet
	status     ledger.Status
	since      ledger.Time
	position   []int64 // (recorded_at, id) of the row before the page; nil for the first page
	ascending  bool
	limit      int
}

func (q attestationQuery) run(rd reader) ([]keyed[ledger.AttestationRecord], error) {
	query, args := q.sql()
	rows, err := all(rd, rd.attestationScanner(q.repo), query, args...)
	if err != nil {
		return nil, fmt.Errorf("list attestations: %w", err)
	}
	switch {
	case q.isChain(): // by row id, which is the order of recording
		slices.SortFunc(rows, func(a, b keyed[ledger.AttestationRecord]) int { return cmp.Compare(b.id, a.id) })
	case q.commit != 0:
		slices.SortFunc(rows, q.compare)
	}
	return rows, nil
}

// sql returns the query and its parameters. The query names its index, because
// without statistics SQLite may choose a bad one.
func (q attestationQuery) sql() (string, []any) {
	if q.commit != 0 {
		return q.sqlOfCommit()
	}
	index, where, args := "attestations_by_time", "a.repo_id = ?", []any{q.repo.id}
	switch {
	case q.predicates != nil:
		index = "attestations_by_predicate"
	case q.signers != nil:
		index = "attestations_by_signer"
	}
	where, args = q.filter(where, args)
	where, order, args := q.page(where, args)
	return "SELECT " + attestationColumns + `
FROM attestations a /*+index ` + index + `*/ /*+ordered*/ JOIN commits c ON c.id = a.commit_id
WHERE ` + where + order, append(args, q.limit)
}

// chain lists a commit's attestations, newest first. Its parameters are the row id
// after which it starts (0 means the newest), the commit and the number of rows. It
// checks the commit of each row, because a cursor can contain any row id.
const chain = `
WITH RECURSIVE chain (id, n) AS (
  SELECT CASE WHEN ?1 > 0 THEN ?1 ELSE newest END, 1 FROM commits WHERE id = ?2
  UNION ALL
  SELECT a.previous, chain.n + 1 FROM chain JOIN attestations a ON a.id = chain.id
  WHERE a.previous > 0 AND chain.n < ?3)
SELECT ` + attestationColumns + `
FROM commits c /*+ordered*/ JOIN chain ON 1 = 1 /*+ordered*/ JOIN attestations a ON a.id = chain.id
WHERE c.id = ?2 AND a.commit_id = ?2 AND a.id <> ?1`

// isChain reports whether the query lists the newest attestations of a commit that has
// more than one page of them. It then uses chain: each attestation links to the previous
// one of its commit.
func (q attestationQuery) isChain() bool {
	return q.commit != 0 && !q.fits && !q.ascending &&
		q.predicates == nil && q.signers == nil && q.status == "" && q.since == 0
}

// sqlOfCommit is like sql, for the attestations of one commit. If they fit on the page
// or are filtered, it uses an index that groups them by commit, and sorts them.
func (q attestationQuery) sqlOfCommit() (string, []any) {
	const table = "attestations a /*+index attestations_by_commit*/"
	if q.isChain() {
		if q.position == nil {
			return chain, []any{0, q.commit, q.limit}
		}
		return chain, []any{q.position[1], q.commit, q.limit + 1}
	}
	where, args := q.filter("a.commit_id = ?", []any{q.commit})
	where, order, args := q.page(where, args)
	if q.fits {
		return "SELECT " + attestationColumns + `
FROM commits c /*+ordered*/ JOIN ` + table + ` ON a.commit_id = c.id
WHERE ` + where, args
	}
	return selectAttestation + "WHERE a.id IN (SELECT a.id FROM " + table + " WHERE " + where + order + ")",
		append(args, q.limit)
}

// filter appends the conditions of the filter.
func (q attestationQuery) filter(where string, args []any) (string, []any) {
	where, args = q.predicates.where("a.predicate_id", where, args)
	where, args = q.signers.where("a.signer_id", where, args)
	if q.status != "" {
		where, args = where+" AND a.status = ?", append(args, q.status)
	}
	return where, args
}

// page appends the condition of the page, and returns its order.
func (q attestationQuery) page(where string, before []any) (page, order string, args []any) {
	if q.ascending {
		at, id := q.start(int64(q.since), -1)
		if at < int64(q.since) {
			at, id = int64(q.since), -1
		}
		return where + " AND (a.recorded_at, a.id) > (?, ?)", " ORDER BY a.recorded_at, a.id LIMIT ?", append(before, at, id)
	}
	at, id := q.start(math.MaxInt64, math.MaxInt64)
	return where + " AND a.recorded_at >= ? AND (a.recorded_at, a.id) < (?, ?)",
		" ORDER BY a.recorded_at DESC, a.id DESC LIMIT ?",
		append(before, q.since, at, id)
}

func (q attestationQuery) start(at, id int64) (int64, int64) {
	if q.position == nil {
		return at, id
	}
	return q.position[0], q.position[1]
}

// compare compares rows in the order of the list: by recorded_at, which is the time in the
// id, and by row id.
func (q attestationQuery) compare(a, b keyed[ledger.AttestationRecord]) int {
	order := cmp.Or(strings.Compare(timeOfID(a.row.ID), timeOfID(b.row.ID)), cmp.Compare(a.id, b.id))
	if q.ascending {
		return order
	}
	return -order
}

func scanPredicate(row scanner) (keyed[ledger.PredicateCount], error) {
	var p keyed[ledger.PredicateCount]
	err := row.Scan(&p.id, &p.row.Predicate, &p.row.Count, &p.row.LastRecordedAt)
	return p, err
}

// Predicates lists the predicates of an org's attestations, in the order in which they
// were first recorded.
func (s *Store) Predicates(ctx context.Context, org string, q Query) (ledger.Page[ledger.PredicateCount], error) {
	return listOf(ctx, s, org, q, scanPredicate,
		"SELECT id, name, attestations, last_at FROM predicates WHERE org_id = ? AND id > ? ORDER BY id LIMIT ?")
}
