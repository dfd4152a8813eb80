package boards

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An EnvironmentFilter selects the environments of a list. Empty fields do not filter.
type EnvironmentFilter struct {
	txn.Query
	Repo string
	Name string
}

// Environments lists what runs in the environments of an org: by repo, the oldest repo
// first, and within a repo the last changed environment first. Of a repo with more than
// ledger.MaxEnvironments it lists those changed last, unless the filter names the repo. A
// page ends with the last environment of a repo, unless it has only one repo.
func (bo *Boards) Environments(
	ctx context.Context, org string, f EnvironmentFilter,
) (ledger.Page[ledger.Environment], error) {
	return txn.Read(ctx, bo.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[ledger.Environment], err error) {
		l, err := bo.environmentList(rd, org, f)
		if err != nil {
			return list, err
		}
		cursors := rd.Listing("environments", l.orgID)
		position, err := cursors.Position(f.Query, 3)
		if err != nil {
			return list, err
		}
		if position != nil {
			l.after = environmentRow{repoID: position[0], latest: position[1], nth: position[2]}
		}
		p, err := l.page(f.Limit)
		if err != nil {
			return list, fmt.Errorf("list environments: %w", err)
		}
		return p.Page(cursors), nil
	})
}

// An environmentRow is a row of the table environments, and its place among those of its
// repo in a list, from 1.
type environmentRow struct {
	repoID, predicateID, latest, nth int64
}

func scanEnvironmentRow(row txn.Scanner) (e environmentRow, err error) {
	return e, row.Scan(&e.repoID, &e.predicateID, &e.latest)
}

// An environmentList reads a page of environments.
type environmentList struct {
	txn.Reader
	bo                         *Boards
	orgID, repoID, predicateID int64 // a repo or predicate of 0 does not filter
	after                      environmentRow
	examined                   int
}

func (bo *Boards) environmentList(rd txn.Reader, org string, f EnvironmentFilter) (l *environmentList, err error) {
	l = &environmentList{Reader: rd, bo: bo}
	if l.orgID, err = rd.OrgID(org); err != nil {
		return nil, err
	}
	if f.Repo != "" {
		r, err := rd.FindRepo(org, f.Repo)
		if err != nil {
			return nil, err
		}
		l.repoID = r.ID
	}
	if f.Name == "" {
		return l, nil
	}

	set, err := lists.PredicateNamed(rd, l.orgID, ledger.EnvironmentPredicate(f.Name))
	if err != nil {
		return nil, err
	}
	if l.predicateID = -1; len(set.Ids) > 0 { // no predicate has this id
		l.predicateID = set.Ids[0]
	}
	return l, nil
}

// page reads up to limit environments, with what they show. It ends the page early if that
// examines many rows.
func (l *environmentList) page(limit int) (p txn.Section[ledger.Environment], err error) {
	rows, err := l.rows(limit + 1)
	if err != nil {
		return p, err
	}
	more := len(rows) > limit
	if more {
		rows = wholeRepos(rows, limit)
	}

	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].repoID == rows[0].repoID {
			n++
		}
		environments, err := l.ofRepo(rows[:n])
		if err != nil {
			return p, err
		}
		p.Rows = append(p.Rows, environments...)
		last := rows[n-1]
		if rows = rows[n:]; len(rows) > 0 && l.examined >= txn.MaxExamined || len(rows) == 0 && more {
			p.End = []any{last.repoID, last.latest, last.nth}
			break
		}
	}
	return p, nil
}

// wholeRepos cuts rows to at most limit, which is less than there are. It does not separate
// rows of one repo, unless all are of that repo.
func wholeRepos(rows []environmentRow, limit int) []environmentRow {
	n := limit
	for n > 0 && rows[n-1].repoID == rows[limit].repoID {
		n--
	}
	return rows[:cmp.Or(n, limit)]
}

// rows reads up to limit rows of the list.
func (l *environmentList) rows(limit int) (rows []environmentRow, err error) {
	const columns = "SELECT repo_id, predicate_id, latest_id FROM environments "
	switch {
	case l.repoID != 0 && l.predicateID != 0:
		return txn.All(l.Reader, scanEnvironmentRow, columns+"WHERE predicate_id = ? AND repo_id = ? AND repo_id > ?",
			l.predicateID, l.repoID, l.after.repoID)
	case l.predicateID != 0:
		return txn.All(l.Reader, scanEnvironmentRow, columns+`
WHERE predicate_id = ? AND repo_id > ? ORDER BY repo_id LIMIT ?`, l.predicateID, l.after.repoID, limit)
	case l.repoID != 0:
		l.after.repoID = l.repoID
		return l.rowsOfRepo(limit)
	}

	for len(rows) < limit {
		if l.after.repoID != 0 {
			more, err := l.rowsOfRepo(min(limit-len(rows), ledger.MaxEnvironments-int(l.after.nth)))
			if err != nil {
				return nil, err
			}
			rows = append(rows, more...)
		}
		next := environmentRow{}
		err := l.Row("SELECT coalesce(min(repo_id), 0) FROM environments /*+index environments_by_org*/"+
			" WHERE org_id = ? AND repo_id > ?", l.orgID, l.after.repoID).Scan(&next.repoID)
		if err != nil {
			return nil, fmt.Errorf("find the next repo: %w", err)
		}
		if l.after = next; next.repoID == 0 {
			break
		}
	}
	return rows, nil
}

// rowsOfRepo reads up to limit rows of the repo of l.after, after it.
func (l *environmentList) rowsOfRepo(limit int) ([]environmentRow, error) {
	if limit <= 0 {
		return nil, nil
	}
	const query = `
SELECT repo_id, predicate_id, latest_id FROM environments /*+index environments_by_repo*/ WHERE repo_id = ?`
	var rows []environmentRow
	var err error
	if l.after.latest == 0 {
		rows, err = txn.All(l.Reader, scanEnvironmentRow, query+" ORDER BY latest_id DESC LIMIT ?", l.after.repoID, limit)
	} else {
		rows, err = txn.All(l.Reader, scanEnvironmentRow, query+" AND latest_id < ? ORDER BY latest_id DESC LIMIT ?",
			l.after.repoID, l.after.latest, limit)
	}
	for i := range rows {
		rows[i].nth = l.after.nth + int64(i) + 1
	}
	return rows, err
}

// ofRepo returns what environments of one repo show.
func (l *environmentList) ofRepo(rows []environmentRow) ([]txn.Keyed[ledger.Environment], error) {
	r, err := l.RepoByID(rows[0].repoID)
	if err != nil {
		return nil, err
	}

	if r.Deleted {
		l.examined += len(rows)
		return nil, nil
	}

	list := make([]txn.Keyed[ledger.Environment], len(rows))
	runs := make([]running, len(rows))
	oldest := int64(-1)
	for i, e := range rows {
		l.examined++
		v := &list[i].Row
		v.Org, v.Repo = r.Org, r.Name
		if v.Predicate, err = l.bo.signers.Predicate(l.Reader, e.predicateID); err != nil {
			return nil, err
		}
		v.Name, _ = ledger.EnvironmentOf(v.Predicate)
		if runs[i], err = l.addBase(e, v); err != nil {
			return nil, err
		}
		if err := l.addRollback(e, runs[i].attestationID, v); err != nil {
			return nil, err
		}
		if r.Violated {
			if err := l.addViolation(e, v); err != nil {
				return nil, err
			}
		}
		if id := runs[i].commitID; id != 0 && (oldest < 0 || id < oldest) {
			oldest = id
		}
	}
	if oldest < 0 {
		return list, nil
	}

	if err := l.setStates(r, runs, list); err != nil {
		return nil, fmt.Errorf("derive states: %w", err)
	}
	ready, err := l.readyCommits(r.ID, oldest)
	if err != nil {
		return nil, err
	}
	for i, run := range runs {
		if d := list[i].Row.Deployment; d != nil {
			d.Behind, d.BehindMore = ready.behind(r, run)
		}
	}
	return list, nil
}

// derivedRows is the number of rows as which deriving the state of a commit is counted.
const derivedRows = 20

// setStates sets the present states and standings of the commits that run.
func (l *environmentList) setStates(r txn.Repo, runs []running, list []txn.Keyed[ledger.Environment]) error {
	var ids []int64
	for i, run := range runs {
		if list[i].Row.Deployment != nil && !slices.Contains(ids, run.commitID) {
			ids = append(ids, run.commitID)
			l.examined += derivedRows
		}
	}
	if ids == nil {
		return nil
	}

	d, err := l.bo.facts.Deriver(l.Reader, r)
	if err != nil {
		return err
	}
	now, err := l.bo.states.PresentStates(l.Reader, d, ids)
	if err != nil {
		return err
	}
	for i, run := range runs {
		if p, ok := now[run.commitID]; ok {
			list[i].Row.Deployment.State, list[i].Row.Deployment.Standing = p.State, p.Standing
		}
	}
	return nil
}

// running is the commit whose deployment is the base of an environment; its ids are 0 without one.
type running struct {
	commitID, attestationID int64
	target                  string
	treeID                  int64
}

// addBase adds to an environment what runs there.
func (l *environmentList) addBase(e environmentRow, v *ledger.Environment) (running, error) {
	b, examined, err := l.bo.lists.Base(l.Reader, lists.Environment{
		OrgID: l.orgID, RepoID: e.repoID, Name: v.Name, PredicateID: e.predicateID,
	})
	l.examined += examined
	switch {
	case err != nil || b.CommitID == 0:
		return running{}, err
	case b.IsBaseline:
		v.Baseline = baseline(&b)
		return running{}, nil
	}
	v.Deployment = deployment(&b)
	return running{b.CommitID, b.AttestationID, b.Target, b.TreeID}, nil
}

// deployment returns a base as a deployment.
func deployment(b *lists.Base) *ledger.Deployment {
	return &ledger.Deployment{
		Commit: b.Commit, State: b.State, Standing: min(b.State, ledger.Promotable), Branch: b.Branch, Subject: b.Subject,
		Identity: b.Identity, Attestation: b.Attestation, DeployedAt: b.At, Required: b.Required,
	}
}

// baseline returns a base as a baseline.
func baseline(b *lists.Base) *ledger.Baseline {
	return &ledger.Baseline{
		Commit: b.Commit, Subject: b.Subject, Identity: b.Identity, Attestation: b.Attestation, At: b.At, Reason: b.Reason,
	}
}

// addRollback adds to an environment the latest rollback after an attestation.
func (l *environmentList) addRollback(e environmentRow, attestationID int64, v *ledger.Environment) error {
	err := l.Each(func(row txn.Scanner) error {
		v.Rollback = &ledger.Rollback{}
		return row.Scan(&v.Rollback.Commit, &v.Rollback.Attestation, &v.Rollback.At)
	}, `
SELECT c.sha, a.attestation_id, a.recorded_at
FROM deployments d /*+index deployments_ended*/ /*+ordered*/ JOIN attestations a ON a.id = d.ended_id
/*+ordered*/ JOIN commits c ON c.id = d.commit_id
WHERE d.repo_id = ? AND d.predicate_id = ? AND d.ended_id > 0 AND d.ended_id >= ? ORDER BY d.ended_id DESC LIMIT 1`,
		e.repoID, e.predicateID, attestationID)
	if err != nil {
		return fmt.Errorf("read rollback: %w", err)
	}
	return nil
}

// addViolation adds to an environment its open violations.
func (l *environmentList) addViolation(e environmentRow, v *ledger.Environment) error {
	err := l.Row(`
SELECT count(*) FROM (SELECT 1 FROM violations /*+index violations_open*/
WHERE repo_id = ? AND predicate_id = ? AND closed_at = 0 LIMIT ?) counted`,
		e.repoID, e.predicateID, ledger.MaxEnvironmentViolations).Scan(&v.OpenViolations)
	l.examined += v.OpenViolations
	if err != nil || v.OpenViolations == 0 {
		return err
	}

	scan := func(row txn.Scanner) (txn.Keyed[ledger.Violation], error) {
		return l.bo.states.ScanViolation(l.Reader, row)
	}
	newest, err := txn.All(l.Reader, scan,
		states.SelectViolation+" FROM violations v /*+index violations_open*/"+states.JoinViolation+`
WHERE v.repo_id = ? AND v.predicate_id = ? AND v.closed_at = 0 ORDER BY v.id DESC LIMIT 1`, e.repoID, e.predicateID)
	if err != nil {
		return fmt.Errorf("read violation: %w", err)
	}
	for _, n := range newest {
		v.Violation = &ledger.EnvironmentViolation{Commit: n.Row.Commit, Identity: n.Row.Identity,
			Attestation: n.Row.Attestation, OpenedAt: n.Row.OpenedAt}
	}
	return nil
}

// A readyCommit is a commit that has reached PROMOTABLE.
type readyCommit struct {
	id     int64
	target string
	treeID int64
}

// readyCommits are the newest commits of a repo that have reached PROMOTABLE. since is the
// id after which they are complete.
type readyCommits struct {
	list  []readyCommit
	since int64
}

// readyCommits reads the commits that were registered after a commit and have reached
// PROMOTABLE: of each state, the newest ledger.MaxBehind.
func (l *environmentList) readyCommits(repoID, commitID int64) (ready readyCommits, err error) {
	for _, state := range []ledger.State{ledger.Promotable, ledger.Deployed} {
		list, err := txn.All(l.Reader, func(row txn.Scanner) (c readyCommit, err error) {
			return c, row.Scan(&c.id, &c.target, &c.treeID)
		}, `
SELECT id, target, tree_id FROM commits /*+index commits_by_state*/
WHERE repo_id = ? AND state = ? AND id > ? ORDER BY id DESC LIMIT ?`, repoID, state, commitID, ledger.MaxBehind+1)
		if err != nil {
			return ready, fmt.Errorf("read commits in state %s: %w", state, err)
		}
		l.examined += len(list)
		if len(list) > ledger.MaxBehind {
			ready.since = max(ready.since, list[ledger.MaxBehind].id)
		}
		ready.list = append(ready.list, list...)
	}
	return ready, nil
}

// behind counts the commits that were registered after the one that runs, and are for the
// same target. more reports whether there may be others.
func (c readyCommits) behind(r txn.Repo, run running) (n int, more bool) {
	more = run.commitID < c.since
	trees := map[int64]bool{run.treeID: true}
	for _, commit := range c.list {
		if commit.id <= run.commitID ||
			cmp.Or(commit.target, r.DefaultBranch) != cmp.Or(run.target, r.DefaultBranch) ||
			commit.treeID != 0 && trees[commit.treeID] {
			continue
		}
		trees[commit.treeID] = true
		n++
	}
	return min(n, ledger.MaxBehind), more || n > ledger.MaxBehind
}
