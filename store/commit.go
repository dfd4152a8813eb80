package store

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/txn"
)

// registrationOf returns the merged registrations of a commit.
func (rd reader) registrationOf(commitID int64) (n ledger.Registration, err error) {
	err = rd.Row("SELECT branch, target, base FROM commits WHERE id = ?", commitID).Scan(&n.Branch, &n.Target, &n.Base)
	if err != nil {
		return n, fmt.Errorf("read commit: %w", err)
	}
	d, err := rd.findDetails(commitID)
	n.Parents, n.Ancestors, n.Contained, n.Changes = d.parents, d.ancestors, d.contained, d.changes
	return n, err
}

// mergedRegistration returns what registrationOf would return after registering n.
func (rd reader) mergedRegistration(commitID int64, n ledger.Registration) (ledger.Registration, error) {
	stored, err := rd.registrationOf(commitID)
	if err != nil {
		return n, err
	}
	d := details{stored.Parents, stored.Ancestors, stored.Contained, stored.Changes, nil}
	d.merge(n)
	n.Branch, n.Base = cmp.Or(n.Branch, stored.Branch), cmp.Or(n.Base, stored.Base)
	n.Parents, n.Ancestors, n.Contained, n.Changes = d.parents, d.ancestors, d.contained, d.changes
	return n, nil
}

// details holds the large fields of a commit's registration.
type details struct {
	parents, ancestors, contained []string
	changes                       []radar.Change // the newest change record
	// paths are all paths ever claimed. If nil, they are those of changes.
	paths []string
}

// merge replaces what a registration sets, and adds its paths.
func (d *details) merge(n ledger.Registration) {
	if n.Parents != nil {
		d.parents = n.Parents
	}
	if n.Ancestors != nil {
		d.ancestors = n.Ancestors
	}
	if n.Contained != nil {
		d.contained = n.Contained
	}
	if n.Changes != nil {
		d.paths = addPaths(d.paths, d.changes, n.Changes)
		d.changes = n.Changes
	}
}

func (rd reader) findDetails(commitID int64) (details, error) {
	d, err := rd.findLineage(commitID)
	if err != nil {
		return d, err
	}
	d.changes, d.paths, err = rd.findClaimedChanges(commitID)
	return d, err
}

const selectLineage = "SELECT parents, ancestors, contained FROM commit_details WHERE commit_id = ?"

// findLineage reads the details without the changes, which may be large.
func (rd reader) findLineage(commitID int64) (d details, err error) {
	err = rd.Each(func(row txn.Scanner) error {
		var parents, ancestors, contained []byte
		if err := row.Scan(&parents, &ancestors, &contained); err != nil {
			return err
		}
		return errors.Join(json.Unmarshal(parents, &d.parents), json.Unmarshal(ancestors, &d.ancestors),
			json.Unmarshal(contained, &d.contained))
	}, selectLineage, commitID)
	if err != nil {
		return d, fmt.Errorf("read commit details: %w", err)
	}
	return d, nil
}

func (t *tx) saveDetails(commitID int64, d details) error {
	var columns [5][]byte
	for i, v := range []any{d.parents, d.ancestors, d.contained, d.changes, d.paths} {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode commit details: %w", err)
		}
		columns[i] = text
	}

	if d.changes == nil {
		columns[3] = nil
	}
	if d.paths == nil {
		columns[4] = nil
	}
	paths := d.paths
	if paths == nil {
		paths = facts.Paths(d.changes)
	}
	_, err := t.Exec(`
INSERT INTO commit_details (commit_id, parents, ancestors, contained, changes, paths, paths_key)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (commit_id) DO UPDATE SET parents = excluded.parents, ancestors = excluded.ancestors,
  contained = excluded.contained, changes = excluded.changes, paths = excluded.paths, paths_key = excluded.paths_key`,
		commitID, columns[0], columns[1], columns[2], columns[3], columns[4], policy.ChangesKey(paths))
	if err != nil {
		return fmt.Errorf("save commit details: %w", err)
	}
	delete(t.claimed, commitID)
	if d.changes == nil {
		return nil
	}
	if t.claimed == nil {
		t.claimed = make(map[int64][]string)
	}
	t.claimed[commitID] = paths
	return nil
}

// selectCommit reads commits. The row id, the last column, is for the cursor.
const selectCommit = `
SELECT sha, state, state_since, registered_at, branch, target, author_name, author_email, message, committed_at,
  attestations, base, policy_version, id
FROM commits `

func scanCommit(row txn.Scanner) (txn.Keyed[ledger.Commit], error) {
	var c txn.Keyed[ledger.Commit]
	v := &c.Row
	err := row.Scan(&v.SHA, &v.State, &v.StateSince, &v.RegisteredAt, &v.Branch, &v.Target, &v.Author.Name,
		&v.Author.Email,
		&v.Message, &v.CommittedAt, &v.Attested, &v.Base, &v.PolicyVersion, &c.ID)
	return c, err
}

// findChanges reads the newest change record of a commit, or nil if it has none.
func (rd reader) findChanges(commitID int64) (changes []radar.Change, err error) {
	changes, _, err = rd.findClaimedChanges(commitID)
	return changes, err
}

const selectClaimedChanges = "SELECT changes, paths FROM commit_details WHERE commit_id = ?"

// findClaimedChanges reads the newest change record of a commit, and all paths ever
// claimed, if they are others. Both are nil if the commit has no change record.
func (rd reader) findClaimedChanges(commitID int64) (changes []radar.Change, paths []string, err error) {
	err = rd.Each(func(row txn.Scanner) error {
		var changesText, pathsText []byte
		if err := row.Scan(&changesText, &pathsText); err != nil {
			return err
		}
		if changes, err = decodeChanges(changesText); err != nil || pathsText == nil {
			return err
		}
		return json.Unmarshal(pathsText, &paths)
	}, selectClaimedChanges, commitID)
	if err != nil {
		return nil, nil, fmt.Errorf("read changes: %w", err)
	}
	return changes, paths, nil
}

// findCommit finds a commit of a repo by its full id, or by a prefix that is unique in the repo.
func (rd reader) findCommit(r txn.Repo, prefix string) (txn.Keyed[ledger.Commit], error) {
	return findIn(rd, r, prefix, selectCommit, scanCommit, func(c txn.Keyed[ledger.Commit]) string { return c.Row.SHA })
}

// findRow is like findCommit, for the columns from which the state is derived.
func (rd reader) findRow(r txn.Repo, prefix string) (*commitRow, error) {
	return findIn(rd, r, prefix, selectCommitRow, scanCommitRow, func(c *commitRow) string { return c.sha })
}

// findIn finds a commit with a query that selects commits.
func findIn[T any](
	rd reader, r txn.Repo, prefix, query string, scan func(txn.Scanner) (T, error), sha func(T) string,
) (c T, err error) {
	// "g" sorts after every hex digit.
	commits, err := all(rd, scan, query+`
WHERE repo_id = ? AND sha >= ? AND sha < ? ORDER BY sha LIMIT 2`, r.ID, prefix, prefix+"g")
	switch {
	case err != nil:
		return c, fmt.Errorf("find commit: %w", err)
	case len(commits) == 0:
		return c, ledger.Errorf(ledger.CodeNotFound, "commit %s not found in %s/%s", prefix, r.Org, r.Name)
	case len(commits) > 1 && sha(commits[0]) != prefix:
		return c, ledger.Errorf(
			ledger.CodeAmbiguousCommit, "%s matches several commits of %s/%s, including %s and %s: give more digits",
			prefix, r.Org, r.Name, sha(commits[0]), sha(commits[1]))
	}
	return commits[0], nil
}

const selectCorrections = `
SELECT at, by, field, before, after FROM corrections WHERE commit_id = ? ORDER BY id DESC LIMIT ?`

// newestCorrections reads the newest corrections of a commit, newest first.
func (rd reader) newestCorrections(commitID int64) ([]ledger.Correction, error) {
	list, err := all(rd, func(row txn.Scanner) (c ledger.Correction, err error) {
		return c, row.Scan(&c.At, &c.By, &c.Field, &c.Before, &c.After)
	}, selectCorrections, commitID, ledger.MaxCorrections)
	if err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return list, nil
}

// addCorrection stores what was corrected in a commit.
func (t *tx) addCorrection(c *commitRow, v ledger.Correction) error {
	_, err := t.Exec("INSERT INTO corrections (commit_id, at, by, field, before, after) VALUES (?, ?, ?, ?, ?, ?)",
		c.id, v.At, v.By, v.Field, v.Before, v.After)
	if err != nil {
		return fmt.Errorf("insert correction: %w", err)
	}
	return nil
}

// summary describes the claimed paths as a Correction has them.
func (d *details) summary() string {
	switch {
	case d.changes == nil:
		return "all paths"
	case d.paths != nil:
		return ledger.CorrectedText(d.paths)
	}
	return ledger.CorrectedText(facts.Paths(d.changes))
}
