package lists

import (
	"iter"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An idSet is the set of the predicates, types or signers that match a filter; nil means
// all.
type idSet struct {
	Ids []int64
	// many is set if there are too many ids to list. It is the condition that an
	// attestation's predicate, type or signer matches, with the parameters in args.
	many string
	args []any
}

// each yields the condition for each id.
func (s *idSet) each(column string) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, id := range s.Ids {
			if !yield(" AND "+column+" = ?", id) {
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
	case s.many != "":
		return where + s.many, append(args, s.args...)
	case len(s.Ids) == 1:
		return where + " AND " + column + " = ?", append(args, s.Ids[0])
	}
	n := 1
	for n < len(s.Ids) {
		n *= 2 // limits the number of different statements
	}
	for i := range n {
		id := int64(-1) // no row has it
		if i < len(s.Ids) {
			id = s.Ids[i]
		}
		args = append(args, id)
	}
	return where + " AND " + column + " IN (?" + strings.Repeat(", ?", n-1) + ")", args
}

// isFew reports whether the set lists its ids.
func (s *idSet) isFew() bool { return s != nil && s.many == "" }

// findIDs reads the set of a query. If it has too many ids, many is the condition for a
// row of attestations.
func findIDs(rd txn.Reader, many, query string, args ...any) (*idSet, error) {
	ids, err := txn.All(rd, txn.ScanID, query+" LIMIT ?", append(args, txn.MaxWalks+1)...)
	if len(ids) > txn.MaxWalks {
		return &idSet{many: many, args: args}, err
	}
	return &idSet{Ids: ids}, err
}

// An attestationQuery is a query for one page of attestations.
type attestationQuery struct {
	facts      *facts.Facts
	repo       txn.Repo
	commit     int64 // 0 means all commits
	attested   int64 // the number of the commit's attestations
	predicates *idSet
	types      []*idSet // an attestation matches all of them
	signers    *idSet
	status     ledger.Status
	since      ledger.Time
	position   []int64 // (recorded_at, id) of the row before the page; nil for the first page
	ascending  bool
	limit      int
}

// walks returns the walks by which the page is read. There is one for each matching
// predicate, or for each matching signer, unless there are too many. Another condition is
// checked row by row.
func (q attestationQuery) walks(rd txn.Reader) (walks []txn.Walk[ledger.AttestationRecord]) {
	if q.status != "" && q.status != ledger.Pass {
		// A literal: SQLite does not use a partial index for a parameter.
		w := q.walk(rd, "attestations_not_passed")
		w.Where, w.Args = w.Where+" AND a.status <> 'pass' AND a.status = ?", append(w.Args, q.status)
		return append(walks, q.filtered(w, q.predicates, q.signers, ""))
	}

	switch {
	case q.predicates.isFew():
		for where, id := range q.predicates.each("a.predicate_id") {
			w := q.walk(rd, "attestations_by_predicate")
			w.Where, w.Args = w.Where+where, append(w.Args, id)
			walks = append(walks, q.filtered(w, nil, q.signers, q.status))
		}
	case q.signers.isFew():
		for where, id := range q.signers.each("a.signer_id") {
			w := q.walk(rd, "attestations_by_signer")
			w.Where, w.Args = w.Where+where, append(w.Args, id)
			walks = append(walks, q.filtered(w, q.predicates, nil, q.status))
		}
	default:
		walks = append(walks, q.filtered(q.walk(rd, "attestations_by_time"), q.predicates, q.signers, q.status))
	}
	return walks
}

// walk returns a walk by an index, without a filter. It names the index, because without
// statistics SQLite may choose a bad one.
func (q attestationQuery) walk(rd txn.Reader, index string) txn.Walk[ledger.AttestationRecord] {
	w := txn.Walk[ledger.AttestationRecord]{
		From:  "attestations a /*+index " + index + "*/",
		Where: "a.repo_id = ?", Args: []any{q.repo.ID},
		Keys: []string{"a.recorded_at", "a.id"}, Key: attestationKey, Down: !q.ascending,
		Columns: facts.AttestationColumns, Joins: " /*+ordered*/ JOIN commits c ON c.id = a.commit_id",
		Scan: q.facts.AttestationScanner(rd, q.repo),
	}
	return w
}

func attestationKey(a txn.Keyed[ledger.AttestationRecord]) []any {
	at, _ := txn.IDTime(txn.AttestationPrefix, a.Row.ID)
	return []any{int64(at), a.ID}
}

// filtered adds the conditions that the walk's index does not cover.
func (q attestationQuery) filtered(
	w txn.Walk[ledger.AttestationRecord], predicates, signers *idSet, status ledger.Status,
) txn.Walk[ledger.AttestationRecord] {
	if !q.ascending && q.since != 0 {
		w.Stop = []any{int64(q.since), int64(-1)}
	}
	w.Filter, w.FilterArgs = q.filter("", nil, predicates, signers, status)
	if q.commit != 0 {
		w.Filter, w.FilterArgs = w.Filter+" AND a.commit_id = ?", append(w.FilterArgs, q.commit)
	}
	return w
}

// start returns the position at which the walks start, or nil for the begin.
func (q attestationQuery) start() []any {
	if q.ascending && (q.position == nil || q.position[0] < int64(q.since)) {
		return []any{int64(q.since), int64(-1)}
	}
	if q.position == nil {
		return nil
	}
	return []any{q.position[0], q.position[1]}
}

// filter appends the conditions of the filter.
func (q attestationQuery) filter(
	where string, args []any, predicates, signers *idSet, status ledger.Status,
) (string, []any) {
	where, args = predicates.where("a.predicate_id", where, args)
	where, args = signers.where("a.signer_id", where, args)
	for _, types := range q.types {
		where, args = types.where("a.type_id", where, args)
	}
	if status != "" {
		where, args = where+" AND a.status = ?", append(args, status)
	}
	return where, args
}
