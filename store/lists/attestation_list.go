package lists

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An AttestationFilter selects the attestations of a list. Empty fields do not filter.
type AttestationFilter struct {
	txn.Query
	Predicate string // a predicate, or a prefix followed by *; with ://, a PredicateType
	// PredicateType is a predicate type, or a prefix followed by *.
	PredicateType string
	Identity      string // a DN, or a plain name if it contains no "="
	Commit        string // a full commit id or a prefix
	Status        ledger.Status
	Since         ledger.Time
	Ascending     bool // oldest first
	Verification  bool // with how the signatures were verified
}

// Attestations lists a repo's attestations by the time of recording, newest first by
// default.
func (li *Lists) Attestations(
	ctx context.Context, org, repo string, f AttestationFilter,
) (ledger.Page[ledger.AttestationRecord], error) {
	return txn.Read(ctx, li.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[ledger.AttestationRecord],
		err error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return list, err
		}
		l := rd.Listing("attestations", r.ID)
		position, err := l.Position(f.Query, 2)
		if err != nil {
			return list, err
		}
		p, err := li.attestations(rd, f, r, position)
		if err != nil {
			return list, err
		}

		if err := facts.MarkDistrusted(rd, r, p.Rows); err != nil {
			return list, err
		}
		if f.Verification {
			err = facts.AddVerification(rd, p.Rows)
		}
		return p.Page(l), err
	})
}

// attestations reads the filtered page.
func (li *Lists) attestations(
	rd txn.Reader, f AttestationFilter, r txn.Repo, position []int64,
) (p txn.Section[ledger.AttestationRecord], err error) {
	q := attestationQuery{facts: li.facts, repo: r, status: f.Status, since: f.Since, position: position,
		ascending: f.Ascending,
		limit:     f.Limit}

	if f.Commit != "" {
		commit, err := facts.FindCommit(rd, r, f.Commit)
		if err != nil {
			return p, err
		}
		q.commit, q.attested = commit.ID, commit.Row.Attested
	}
	if q.predicates, q.types, err = li.subjects(rd, f, r.OrgID); err != nil {
		return p, err
	}
	if q.signers, err = f.signers(rd, r.OrgID); err != nil {
		return p, err
	}

	if q.isShort() {
		return q.readCommit(rd)
	}
	p, err = txn.RunAll(rd.Conn, q.walks(rd), q.start(), q.limit)
	if err != nil {
		return p, fmt.Errorf("list attestations: %w", err)
	}
	return p, nil
}

// subjects returns the predicates and the predicate types that match the filter. An
// attestation matches all sets of types.
func (li *Lists) subjects(rd txn.Reader, f AttestationFilter, orgID int64) (predicates *idSet, types []*idSet,
	err error) {
	patterns := []string{f.PredicateType}
	if policy.IsTypePattern(f.Predicate) {
		patterns = append(patterns, f.Predicate)
	} else if predicates, err = matchingPredicates(rd, orgID, f.Predicate); err != nil {
		return nil, nil, err
	}

	for _, pattern := range patterns {
		set, err := matchingTypes(rd, orgID, pattern)
		if err != nil {
			return nil, nil, err
		}
		if named, err := li.predicatesOf(rd, orgID, set); err != nil {
			return nil, nil, err
		} else if named != nil && (predicates == nil || len(named.Ids) == 0) {
			predicates = named
		} else if set != nil {
			types = append(types, set)
		}
	}
	return predicates, types, nil
}

// matchingPredicates returns the predicates that match a pattern.
func matchingPredicates(rd txn.Reader, orgID int64, pattern string) (*idSet, error) {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	switch {
	case pattern == "" || pattern == "*":
		return nil, nil
	case isPrefix:
		return findIDs(rd, " AND EXISTS (SELECT 1 FROM predicates p WHERE p.id = a.predicate_id AND"+
			" p.org_id = ? AND p.name >= ? AND p.name < ?)",
			"SELECT id FROM predicates WHERE org_id = ? AND name >= ? AND name < ?", orgID, prefix, prefix+lastRune)
	default:
		return PredicateNamed(rd, orgID, pattern)
	}
}

// PredicateNamed returns the predicate with a name: a set that is empty if it is not stored.
func PredicateNamed(rd txn.Reader, orgID int64, name string) (*idSet, error) {
	return findIDs(rd, "", "SELECT id FROM predicates WHERE org_id = ? AND name = ?", orgID, name)
}

// lastRune sorts after every character that is valid in a predicate or in its type.
const lastRune = "\U0010FFFF"

// matchingTypes returns the predicate types that match a pattern.
func matchingTypes(rd txn.Reader, orgID int64, pattern string) (*idSet, error) {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	switch {
	case pattern == "" || pattern == "*":
		return nil, nil
	case isPrefix:
		return findIDs(rd, " AND EXISTS (SELECT 1 FROM predicate_types y WHERE y.id = a.type_id AND"+
			" y.org_id = ? AND y.uri >= ? AND y.uri < ?)",
			"SELECT id FROM predicate_types WHERE org_id = ? AND uri >= ? AND uri < ?", orgID, prefix, prefix+lastRune)
	default:
		return findIDs(rd, "", "SELECT id FROM predicate_types WHERE org_id = ? AND uri = ?", orgID, pattern)
	}
}

// predicatesOf returns the predicates that are named like the types, by which there is an
// index, or nil if attestations of these types have other predicates.
func (li *Lists) predicatesOf(rd txn.Reader, orgID int64, types *idSet) (*idSet, error) {
	if !types.isFew() {
		return nil, nil
	}
	predicates := &idSet{}
	for _, id := range types.Ids {
		uri, err := li.signers.PredicateType(rd, id)
		if err != nil || attestation.IsUnderstood(uri) {
			return nil, err
		}
		named, err := PredicateNamed(rd, orgID, uri)
		if err != nil {
			return nil, err
		}
		predicates.Ids = append(predicates.Ids, named.Ids...)
	}
	return predicates, nil
}

// signers returns the signers that match the filter.
func (f AttestationFilter) signers(rd txn.Reader, orgID int64) (*idSet, error) {
	switch {
	case f.Identity == "":
		return nil, nil
	case strings.Contains(f.Identity, "="):
		dn, err := identity.ParseDN(f.Identity)
		if err != nil {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidParameter, "identity", "%v", err)
		}
		return findIDs(rd, "", "SELECT id FROM signers WHERE org_id = ? AND dn = ?", orgID, dn.String())
	default:
		return findIDs(rd, " AND EXISTS (SELECT 1 FROM signers s WHERE s.id = a.signer_id AND s.org_id = ? AND s.cn = ?)",
			"SELECT id FROM signers WHERE org_id = ? AND cn = ?", orgID, f.Identity)
	}
}

func scanPredicate(row txn.Scanner) (txn.Keyed[ledger.PredicateCount], error) {
	var p txn.Keyed[ledger.PredicateCount]
	err := row.Scan(&p.ID, &p.Row.Predicate, &p.Row.Count, &p.Row.LastRecordedAt)
	return p, err
}

// Predicates lists the predicates of an org's attestations, in the order in which they
// were first recorded. It leaves out those whose attestations are now mapped to others.
func (li *Lists) Predicates(ctx context.Context, org string, q txn.Query) (ledger.Page[ledger.PredicateCount], error) {
	list, err := txn.ListOf(ctx, li.db, org, "predicates", q, scanPredicate,
		"SELECT id, name, attestations, last_at FROM predicates WHERE org_id = ? AND id > ? ORDER BY id LIMIT ?")
	list.Data = slices.DeleteFunc(list.Data, func(p ledger.PredicateCount) bool { return p.Count == 0 })
	return list, err
}
