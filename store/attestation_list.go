package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// An AttestationFilter says which attestations a list holds. Empty members do
// not filter.
type AttestationFilter struct {
	Query
	Predicate string // exact, or a prefix ending in *
	Identity  string // a DN, or a plain name where it holds no =
	Commit    string // a whole commit id or a prefix of one
	Status    ledger.Status
	Since     ledger.Time
	Ascending bool // oldest first
}

// Attestations lists a repo's attestations by the time of their record, the
// newest first unless the filter says otherwise.
func (s *Store) Attestations(ctx context.Context, org, repo string, f AttestationFilter) (list ledger.Page[ledger.AttestationRecord], err error) {
	position, err := f.keys(2)
	if err != nil {
		return list, err
	}
	err = s.read(ctx, func(c *conn) error {
		r, err := findRepo(c, org, repo)
		if err != nil {
			return err
		}
		rows, err := f.run(c, s.names, r, position)
		list = page(rows, f.Limit)
		if list.NextCursor != "" {
			last := rows[f.Limit-1]
			list.NextCursor = cursor(int64(last.row.RecordedAt), last.id)
		}
		return err
	})
	return list, err
}

// run answers the filter as one query for each predicate and signer that it
// matches: each walks an index in the order of the list and stops at the end
// of the page, however many attestations there are.
func (f AttestationFilter) run(c *conn, n *names, r repoRow, position []int64) ([]keyed[ledger.AttestationRecord], error) {
	q := attestationQuery{repo: r, status: f.Status, since: f.Since, position: position, ascending: f.Ascending, limit: f.Limit + 1}
	if f.Commit != "" {
		commit, err := findCommit(c, r, f.Commit)
		if err != nil {
			return nil, err
		}
		q.commit = commit.id
	}
	predicates, err := f.predicates(c, r.orgID)
	if err != nil {
		return nil, err
	}
	signers, err := f.signers(c, r.orgID)
	if err != nil {
		return nil, err
	}
	var rows []keyed[ledger.AttestationRecord]
	for _, q.predicate = range predicates {
		for _, q.signer = range signers {
			some, err := q.run(c, n)
			if err != nil {
				return nil, err
			}
			rows = append(rows, some...)
		}
	}
	if len(predicates)*len(signers) > 1 {
		slices.SortFunc(rows, q.compare)
		rows = rows[:min(len(rows), q.limit)]
	}
	return rows, nil
}

// anyID stands for every predicate or signer in a query.
const anyID = 0

// predicates returns the ids of the predicates that the filter matches.
func (f AttestationFilter) predicates(c *conn, orgID int64) ([]int64, error) {
	prefix, isPrefix := strings.CutSuffix(f.Predicate, "*")
	switch {
	case f.Predicate == "" || f.Predicate == "*":
		return []int64{anyID}, nil
	case isPrefix:
		// U+10FFFF sorts behind every character that a predicate can have.
		return all(c, scanID, "SELECT id FROM predicates WHERE org_id = ? AND name >= ? AND name < ?", orgID, prefix, prefix+"\U0010FFFF")
	default:
		return all(c, scanID, "SELECT id FROM predicates WHERE org_id = ? AND name = ?", orgID, f.Predicate)
	}
}

// signers returns the ids of the signers that the filter matches.
func (f AttestationFilter) signers(c *conn, orgID int64) ([]int64, error) {
	switch {
	case f.Identity == "":
		return []int64{anyID}, nil
	case strings.Contains(f.Identity, "="):
		dn, err := ledger.ParseDN(f.Identity)
		if err != nil {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidParameter, "identity", "%v", err)
		}
		return all(c, scanID, "SELECT id FROM signers WHERE org_id = ? AND dn = ?", orgID, dn.String())
	default:
		return all(c, scanID, "SELECT id FROM signers WHERE org_id = ? AND cn = ?", orgID, f.Identity)
	}
}

func scanID(row scanner) (id int64, err error) {
	err = row.Scan(&id)
	return id, err
}

// An attestationQuery is one walk along an index of attestations.
type attestationQuery struct {
	repo      repoRow
	commit    int64 // 0: any
	predicate int64
	signer    int64
	status    ledger.Status
	since     ledger.Time
	position  []int64 // (recorded_at, id) of the row before the first; nil: from the start
	ascending bool
	limit     int
}

func (q attestationQuery) run(c *conn, n *names) ([]keyed[ledger.AttestationRecord], error) {
	query, args := q.sql()
	rows, err := all(c, attestationScanner(c, n, q.repo), query, args...)
	if err != nil {
		return nil, fmt.Errorf("list attestations: %w", err)
	}
	return rows, nil
}

// sql writes the query so that only the index named in it can serve: without
// statistics SQLite would choose between them by guess.
func (q attestationQuery) sql() (string, []any) {
	index, where, args := "attestations_by_time", "a.repo_id = ?", []any{q.repo.id}
	switch {
	case q.commit != 0:
		index, where, args = "attestations_by_commit", "a.commit_id = ?", []any{q.commit}
	case q.predicate != anyID:
		index = "attestations_by_predicate"
	case q.signer != anyID:
		index = "attestations_by_signer"
	}
	if q.predicate != anyID {
		where, args = where+" AND a.predicate_id = ?", append(args, q.predicate)
	}
	if q.signer != anyID {
		where, args = where+" AND a.signer_id = ?", append(args, q.signer)
	}
	if q.status != "" {
		where, args = where+" AND a.status = ?", append(args, q.status)
	}
	from := strings.Replace(selectAttestation, "FROM attestations a", "FROM attestations a INDEXED BY "+index, 1)
	if q.ascending {
		at, id := q.start(int64(q.since), -1)
		if at < int64(q.since) {
			at, id = int64(q.since), -1
		}
		return from + "WHERE " + where + " AND (a.recorded_at, a.id) > (?, ?) ORDER BY a.recorded_at, a.id LIMIT ?", append(args, at, id, q.limit)
	}
	at, id := q.start(math.MaxInt64, math.MaxInt64)
	return from + "WHERE " + where + " AND a.recorded_at >= ? AND (a.recorded_at, a.id) < (?, ?) ORDER BY a.recorded_at DESC, a.id DESC LIMIT ?",
		append(args, q.since, at, id, q.limit)
}

func (q attestationQuery) start(at, id int64) (int64, int64) {
	if q.position == nil {
		return at, id
	}
	return q.position[0], q.position[1]
}

// compare orders rows as the list has them.
func (q attestationQuery) compare(a, b keyed[ledger.AttestationRecord]) int {
	order := cmp.Or(cmp.Compare(a.row.RecordedAt, b.row.RecordedAt), cmp.Compare(a.id, b.id))
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

// Predicates lists what an org's attestations are about, in the order in which
// each was first seen.
func (s *Store) Predicates(ctx context.Context, org string, q Query) (list ledger.Page[ledger.PredicateCount], err error) {
	after, err := q.after(0)
	if err != nil {
		return list, err
	}
	err = s.read(ctx, func(c *conn) error {
		orgID, err := orgID(c, org)
		if err != nil {
			return err
		}
		rows, err := all(c, scanPredicate, "SELECT id, name, attestations, last_at FROM predicates WHERE org_id = ? AND id > ? ORDER BY id LIMIT ?", orgID, after, q.Limit+1)
		list = page(rows, q.Limit)
		return err
	})
	return list, err
}
