package boards

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/orgs"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An OverviewFilter selects and sorts the repos of an overview.
type OverviewFilter struct {
	txn.Query
	// Name is a part of the name, in any case.
	Name string
	// Sort defaults to the name.
	Sort ledger.OverviewSort
	// Reverse turns the order round.
	Reverse bool
}

// Overview lists the repos of an org with what people want to know of each first. Unless by
// name, it sorts the first ledger.MaxOverviewSorted repos.
func (bo *Boards) Overview(ctx context.Context, org string, f OverviewFilter) (ledger.Overview, error) {
	f.Sort = cmp.Or(f.Sort, ledger.SortByName)
	return txn.Read(ctx, bo.db, txn.ByOrg(org), func(rd txn.Reader) (v ledger.Overview, err error) {
		o := &overview{Reader: rd, bo: bo, filter: f, derivers: bo.facts.Derivers()}
		if o.orgID, err = rd.OrgID(org); err != nil {
			return v, err
		}
		l := rd.Listing("repos by "+string(f.Sort), o.orgID)
		position, err := l.Position(f.Query, 2) // the measure, and the repo
		if err != nil {
			return v, err
		}
		if err := o.find(position); err != nil {
			return v, fmt.Errorf("find repos: %w", err)
		}
		if err := o.sort(); err != nil {
			return v, fmt.Errorf("sort repos: %w", err)
		}
		v.Sorted, v.SortedMore = len(o.repos), o.more

		page, more := o.page(position)
		if v.Data, err = o.complete(page); err != nil {
			return v, fmt.Errorf("complete repos: %w", err)
		}
		if more {
			last := page[len(page)-1]
			v.NextCursor = l.Cursor(last.measure, last.id)
		}
		return v, nil
	})
}

// An overview reads the repos of an overview.
type overview struct {
	txn.Reader
	bo       *Boards
	filter   OverviewFilter
	orgID    int64
	derivers *facts.Derivers
	repos    []measuredRepo
	more     bool // whether there are more repos that match
}

// A measuredRepo is a repo with the number by which it is sorted. rank is its place in the
// order of names.
type measuredRepo struct {
	id, measure int64
	rank        int
	repoFlags
}

// repoFlags say what a repo may have.
type repoFlags struct {
	failing, conflicting bool
	violations, active   int64 // the number of open violations; when the latest event was
}

// find reads the repos that match the filter, in the order of names. If the sort is by name,
// it starts after the position.
func (o *overview) find(position []int64) error {
	w := txn.Walk[string]{
		From: "repos r", Where: "r.org_id = ?", Args: []any{o.orgID},
		Keys: []string{"r.name"}, Key: func(r txn.Keyed[string]) []any { return []any{r.Row} },
		Down:    o.filter.Sort == ledger.SortByName && o.filter.Reverse,
		Columns: "r.id, r.name",
		Scan: func(row txn.Scanner) (r txn.Keyed[string], err error) {
			return r, row.Scan(&r.ID, &r.Row)
		},
	}
	w.Filter = " AND r.deleted_at = 0"
	if o.filter.Name != "" {
		w.Filter, w.FilterArgs = w.Filter+" AND lower(r.name) LIKE ? ESCAPE '!'", []any{txn.Containing(o.filter.Name)}
	}
	var start []any
	if position != nil && o.filter.Sort == ledger.SortByName {
		r, err := o.RepoByID(position[1])
		if err != nil || r.OrgID != o.orgID {
			return txn.ErrCursor
		}
		start = []any{r.Name}
	}

	p, err := w.Run(o.Conn, start, ledger.MaxOverviewSorted, txn.MaxExamined)
	if err != nil {
		return err
	}
	o.more = p.End != nil
	for i, r := range p.Rows {
		o.repos = append(o.repos, measuredRepo{id: r.ID, rank: i})
	}
	return nil
}

// sort sorts the repos.
func (o *overview) sort() error {
	if o.filter.Sort == ledger.SortByName {
		return nil
	}
	if len(o.repos) > 0 {
		if err := o.Long(); err != nil {
			return err
		}
	}
	if err := o.addFlags(o.repos); err != nil {
		return err
	}
	for i := range o.repos {
		if err := o.measure(&o.repos[i]); err != nil {
			return err
		}
	}
	slices.SortFunc(o.repos, o.compare)
	return nil
}

// compare compares repos in the order of the list.
func (o *overview) compare(a, b measuredRepo) int {
	if o.filter.Reverse {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(b.measure, a.measure), cmp.Compare(a.rank, b.rank))
}

// page returns the repos of the page after a position, and whether others follow.
func (o *overview) page(position []int64) (page []measuredRepo, more bool) {
	page = o.repos
	if position != nil && o.filter.Sort != ledger.SortByName {
		at := measuredRepo{id: position[1], measure: position[0]}
		for _, r := range o.repos {
			if r.id == at.id {
				at.rank = r.rank
			}
		}
		page = slices.DeleteFunc(slices.Clone(page), func(r measuredRepo) bool { return o.compare(r, at) <= 0 })
	}
	if len(page) <= o.filter.Limit {
		return page, o.more && o.filter.Sort == ledger.SortByName && len(page) > 0
	}
	return page[:o.filter.Limit], true
}

// addFlags reads the flags of repos.
func (o *overview) addFlags(repos []measuredRepo) error {
	at := make(map[int64]int, len(repos))
	ids := make([]any, len(repos))
	for i, r := range repos {
		at[r.id], ids[i] = i, r.id
	}
	return o.EachIn(func(row txn.Scanner) error {
		var id int64
		var f repoFlags
		err := row.Scan(&id, &f.failing, &f.conflicting, &f.violations, &f.active)
		repos[at[id]].repoFlags = f
		return err
	}, `
SELECT r.id,
  EXISTS (SELECT 1 FROM commits c /*+index commits_failing*/ WHERE c.repo_id = r.id AND c.failing_since > 0),
  EXISTS (SELECT 1 FROM tips t /*+index tips_conflicting*/ WHERE t.repo_id = r.id AND t.`+isConflicting+`),
  r.open_violations,
  coalesce((SELECT e.at FROM events e /*+index events_by_repo*/ WHERE e.repo_id = r.id AND e.type <> 'radar'
    ORDER BY e.seq DESC LIMIT 1), 0)
FROM repos r WHERE r.id IN `, 1, ids)
}

// measure reads the number by which a repo is sorted.
func (o *overview) measure(r *measuredRepo) error {
	var v ledger.RepoOverview
	var err error
	switch o.filter.Sort {
	case ledger.SortByViolations:
		r.measure = r.violations
	case ledger.SortByActivity:
		r.measure = r.active

	case ledger.SortByProduction:
		err = o.addProduction(r.id, &v)
		if v.Production != nil {
			r.measure = int64(v.Production.DeployedAt)
		}
	case ledger.SortByFailing:
		err = o.addFailing(r, &v)
		r.measure = int64(v.Failing)
	case ledger.SortByConflicts:
		err = o.addConflicts(r, &v)
		r.measure = int64(v.Conflicts)
	case ledger.SortByBlocked:
		err = o.addBlocked(r, &v)
		r.measure = int64(v.Blocked)
	case ledger.SortByName:
	}
	return err
}

// complete returns what people see of the repos of a page.
func (o *overview) complete(page []measuredRepo) ([]ledger.RepoOverview, error) {
	if o.filter.Sort == ledger.SortByName {
		if err := o.addFlags(page); err != nil {
			return nil, err
		}
	}
	list := make([]ledger.RepoOverview, len(page))
	for i := range page {
		r, v := &page[i], &list[i]
		repo, err := orgs.ScanRepo(o.Row(orgs.SelectRepo+"WHERE r.id = ?", r.id))
		if err != nil {
			return nil, fmt.Errorf("read repo: %w", err)
		}

		v.Repo, v.LastActivityAt = repo.Row, ledger.Time(r.active)
		for _, add := range []func(*measuredRepo, *ledger.RepoOverview) error{o.addFailing, o.addConflicts, o.addBlocked} {
			if err := add(r, v); err != nil {
				return nil, err
			}
		}
		if err := o.addProduction(r.id, v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (o *overview) addFailing(r *measuredRepo, v *ledger.RepoOverview) error {
	if !r.failing {
		return nil
	}
	d, err := o.derivers.Of(o.Reader, r.id)
	if err != nil {
		return err
	}
	list, _, err := failing(o.Reader, d.Repo, ledger.MaxOverviewCount)
	v.Failing = len(list)
	return err
}

func (o *overview) addConflicts(r *measuredRepo, v *ledger.RepoOverview) error {
	if !r.conflicting {
		return nil
	}
	d, err := o.derivers.Of(o.Reader, r.id)
	if err != nil {
		return err
	}
	list, _, err := conflicting(o.Reader, d, ledger.MaxOverviewConflicts)
	v.Conflicts = len(list)
	return err
}

// addBlocked counts the blocked commits among the newest ones in flight.
func (o *overview) addBlocked(r *measuredRepo, v *ledger.RepoOverview) error {
	d, err := o.derivers.Of(o.Reader, r.id)
	if err != nil {
		return err
	}
	err = o.Row(`
SELECT count(*) FROM (SELECT commit_id, opened_at FROM tips /*+index tips_in_flight*/
  WHERE repo_id = ? AND `+facts.IsInFlight+` ORDER BY commit_id DESC LIMIT ?) newest
/*+ordered*/ JOIN commits c ON c.id = newest.commit_id WHERE newest.opened_at >= ? AND c.state IN (?, ?)`,
		r.id, ledger.MaxOverviewCount, d.Contract.Radar.Oldest(o.Now), ledger.Validating, ledger.Attested).Scan(&v.Blocked)
	if err != nil {
		return fmt.Errorf("count commits in flight: %w", err)
	}
	return nil
}

// addProduction adds what runs in production.
func (o *overview) addProduction(repoID int64, v *ledger.RepoOverview) error {
	environments, err := txn.All(o.Reader, scanEnvironmentRow, `
SELECT repo_id, predicate_id, latest_id FROM environments /*+index environments_by_repo*/
WHERE repo_id = ? ORDER BY latest_id DESC LIMIT ?`, repoID, ledger.MaxEnvironments)
	if err != nil {
		return fmt.Errorf("read environments: %w", err)
	}
	if len(environments) == 0 {
		return nil
	}

	at := lists.Environment{OrgID: o.orgID, RepoID: repoID}
	for i, e := range environments {
		predicate, err := o.bo.signers.Predicate(o.Reader, e.predicateID)
		if err != nil {
			return err
		}
		n, _ := ledger.EnvironmentOf(predicate)
		if i == 0 || n == "prod" || n == "production" && at.Name != "prod" {
			at.Name, at.PredicateID = n, e.predicateID
		}
	}
	b, _, err := o.bo.lists.Base(o.Reader, at)
	if err != nil || b.CommitID == 0 || b.IsBaseline {
		return err
	}
	v.Production = &ledger.RepoDeployment{Environment: at.Name, Commit: b.Commit, Branch: b.Branch, Subject: b.Subject,
		DeployedAt: b.At}
	return nil
}
