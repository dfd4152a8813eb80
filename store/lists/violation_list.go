package lists

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A ViolationFilter selects the violations of a list. Empty fields do not filter.
type ViolationFilter struct {
	txn.Query
	Repo      string
	Commit    string // a full commit id or a prefix; needs Repo
	Predicate string
	Status    ledger.ViolationStatus
}

// Violations lists the violations of an org or a repo, the latest first.
func (li *Lists) Violations(ctx context.Context, org string, f ViolationFilter) (ledger.Page[ledger.Violation], error) {
	find := func(rd txn.Reader, orgID int64) (txn.Walk[ledger.Violation], error) {
		return li.violationWalk(rd, orgID, org, f)
	}
	return txn.ListWalk(ctx, li.db, org, f.Query, "violations", find)
}

// violationWalk returns the walk by which a list is read.
func (li *Lists) violationWalk(
	rd txn.Reader, orgID int64, org string, f ViolationFilter,
) (w txn.Walk[ledger.Violation], err error) {
	w = txn.Walk[ledger.Violation]{Keys: []string{"v.id"}, Key: txn.IDOf[ledger.Violation], Down: true}
	w.Columns = states.SelectViolation[len("\nSELECT "):] + ", r.name"
	w.Joins = states.JoinViolation + " /*+ordered*/ JOIN repos r ON r.id = v.repo_id AND r.deleted_at = 0"
	w.Scan = func(row txn.Scanner) (v txn.Keyed[ledger.Violation], err error) {
		var repo string
		v, err = li.states.ScanViolation(rd, row, &repo)
		v.Row.Org, v.Row.Repo = org, repo
		return v, err
	}
	filter := func(condition string, args ...any) {
		w.Filter, w.FilterArgs = w.Filter+" AND "+condition, append(w.FilterArgs, args...)
	}

	var predicateID int64
	if f.Predicate != "" {
		set, err := PredicateNamed(rd, orgID, f.Predicate)
		if err != nil {
			return w, err
		}
		if predicateID = -1; len(set.Ids) > 0 { // no predicate has this id
			predicateID = set.Ids[0]
		}
	}

	var r txn.Repo
	if f.Repo != "" {
		if r, err = rd.FindRepo(org, f.Repo); err != nil {
			return w, err
		}
	}
	switch {
	case f.Commit != "":
		c, err := facts.FindCommit(rd, r, f.Commit)
		if err != nil {
			return w, err
		}
		w.From, w.Where, w.Args = "violations v /*+index violations_by_commit*/", "v.commit_id = ?", []any{c.ID}
	case f.Repo != "" && predicateID != 0 && f.Status == ledger.ViolationOpen:
		w.From = "violations v /*+index violations_open*/"
		w.Where, w.Args = "v.repo_id = ? AND v.predicate_id = ? AND v.closed_at = 0", []any{r.ID, predicateID}
		return w, nil
	case f.Repo != "":
		w.From, w.Where, w.Args = "violations v /*+index violations_by_repo*/", "v.repo_id = ?", []any{r.ID}
	default:
		w.From, w.Where, w.Args = "violations v /*+index violations_by_org*/", "v.org_id = ?", []any{orgID}
	}

	switch {
	case f.Status == ledger.ViolationClosed:
		filter("v.closed_at > 0")
	case f.Status == ledger.ViolationOpen && f.Commit != "":
		filter("v.closed_at = 0")
	case f.Status == ledger.ViolationOpen:
		w.Where += " AND v.closed_at = 0"
		w.From = "violations v /*+index violations_open_by_org*/"
		if f.Repo != "" {
			w.From = "violations v /*+index violations_open_by_repo*/"
		}
	}
	if predicateID != 0 {
		filter("v.predicate_id = ?", predicateID)
	}
	return w, nil
}

// addViolations adds to the record of a commit its open violations.
func (li *Lists) addViolations(rd txn.Reader, r txn.Repo, commitID int64, c *ledger.Commit) error {
	c.Violations = []ledger.Violation{}
	if !r.Violated {
		return nil
	}
	list, err := txn.All(rd, func(row txn.Scanner) (ledger.Violation, error) {
		v, err := li.states.ScanViolation(rd, row)
		v.Row.Org, v.Row.Repo = r.Org, r.Name
		return v.Row, err
	}, states.SelectViolation+" FROM violations v /*+index violations_open_by_commit*/"+states.JoinViolation+
		" WHERE v.commit_id = ? AND v.closed_at = 0 LIMIT ?", commitID, ledger.MaxOpenViolations)
	if err != nil {
		return fmt.Errorf("read violations: %w", err)
	}

	slices.SortFunc(list, func(a, b ledger.Violation) int { return cmp.Compare(b.Attestation, a.Attestation) })
	c.OpenViolations = len(list)
	c.Violations = list[:min(len(list), ledger.MaxViolations)]
	return nil
}

// maxCounted is the number of orgs whose violations are counted.
const maxCounted = 1000

// An OrgViolations counts the violations of an org.
type OrgViolations struct {
	Org          string
	Opened, Open int64
}

// ViolationCounts counts the violations of the orgs that have had any, at most the first
// maxCounted of them.
func (li *Lists) ViolationCounts(ctx context.Context) ([]OrgViolations, error) {
	return txn.ReadLoose(ctx, li.db, txn.ForWrite(""), func(rd txn.Reader) ([]OrgViolations, error) {
		return txn.All(rd, func(row txn.Scanner) (c OrgViolations, err error) {
			return c, row.Scan(&c.Org, &c.Opened, &c.Open)
		}, "SELECT name, violations, open_violations FROM orgs WHERE violations > 0 ORDER BY id LIMIT ?", maxCounted)
	})
}
