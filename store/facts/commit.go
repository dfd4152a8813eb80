package facts

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

// RegistrationOf returns the merged registrations of a commit.
func RegistrationOf(rd txn.Reader, commitID int64) (n ledger.Registration, err error) {
	err = rd.Row("SELECT branch, target, base FROM commits WHERE id = ?", commitID).Scan(&n.Branch, &n.Target, &n.Base)
	if err != nil {
		return n, fmt.Errorf("read commit: %w", err)
	}
	d, err := FindDetails(rd, commitID)
	n.Parents, n.Ancestors, n.Contained, n.Changes = d.Parents, d.Ancestors, d.Contained, d.Changes
	return n, err
}

// MergedRegistration returns what RegistrationOf would return after registering n.
func MergedRegistration(rd txn.Reader, commitID int64, n ledger.Registration) (ledger.Registration, error) {
	stored, err := RegistrationOf(rd, commitID)
	if err != nil {
		return n, err
	}
	d := Details{stored.Parents, stored.Ancestors, stored.Contained, stored.Changes, nil}
	d.Merge(n)
	n.Branch, n.Base = cmp.Or(n.Branch, stored.Branch), cmp.Or(n.Base, stored.Base)
	n.Parents, n.Ancestors, n.Contained, n.Changes = d.Parents, d.Ancestors, d.Contained, d.Changes
	return n, nil
}

// Details are the large fields of a commit's registration.
type Details struct {
	Parents, Ancestors, Contained []string
	Changes                       []radar.Change // the newest change record
	// Paths are all paths ever claimed. If nil, they are those of changes.
	Paths []string
}

// Merge replaces what a registration sets, and adds its paths.
func (d *Details) Merge(n ledger.Registration) {
	if n.Parents != nil {
		d.Parents = n.Parents
	}
	if n.Ancestors != nil {
		d.Ancestors = n.Ancestors
	}
	if n.Contained != nil {
		d.Contained = n.Contained
	}
	if n.Changes != nil {
		d.Paths = addPaths(d.Paths, d.Changes, n.Changes)
		d.Changes = n.Changes
	}
}

// FindDetails reads the details of a commit.
func FindDetails(rd txn.Reader, commitID int64) (Details, error) {
	d, err := FindLineage(rd, commitID)
	if err != nil {
		return d, err
	}
	d.Changes, d.Paths, err = FindClaimedChanges(rd, commitID)
	return d, err
}

// FindLineage reads the details without the changes, which may be large.
func FindLineage(rd txn.Reader, commitID int64) (Details, error) { return AskLineage(rd, commitID)() }

// AskLineage asks the query of FindLineage.
func AskLineage(rd txn.Reader, commitID int64) func() (Details, error) {
	asked := rd.Ask("SELECT parents, ancestors, contained FROM commit_details WHERE commit_id = ?", commitID)
	return func() (d Details, err error) {
		err = asked.Each(func(row txn.Scanner) error {
			var parents, ancestors, contained []byte
			if err := row.Scan(&parents, &ancestors, &contained); err != nil {
				return err
			}
			return errors.Join(json.Unmarshal(parents, &d.Parents), json.Unmarshal(ancestors, &d.Ancestors),
				json.Unmarshal(contained, &d.Contained))
		})
		if err != nil {
			return d, fmt.Errorf("read commit details: %w", err)
		}
		return d, nil
	}
}

// SaveDetails stores the details of a commit.
func (fa *Facts) SaveDetails(t *txn.Tx, commitID int64, d Details) error {
	var columns [5][]byte
	for i, v := range []any{d.Parents, d.Ancestors, d.Contained, d.Changes, d.Paths} {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode commit details: %w", err)
		}
		columns[i] = text
	}

	if d.Changes == nil {
		columns[3] = nil
	}
	if d.Paths == nil {
		columns[4] = nil
	}
	paths := d.Paths
	if paths == nil {
		paths = facts.Paths(d.Changes)
	}
	_, err := t.Exec(`
INSERT INTO commit_details (commit_id, parents, ancestors, contained, changes, paths, paths_key)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (commit_id) DO UPDATE SET parents = excluded.parents, ancestors = excluded.ancestors,
  contained = excluded.contained, changes = excluded.changes, paths = excluded.paths, paths_key = excluded.paths_key`,
		commitID, columns[0], columns[1], columns[2], columns[3], columns[4], facts.ChangesKey(paths))
	if err != nil {
		return fmt.Errorf("save commit details: %w", err)
	}
	delete(fa.claimed, commitID)
	if d.Changes == nil {
		return nil
	}
	fa.claimed[commitID] = paths
	return nil
}

// SelectCommit reads commits. The row id, the last column, is for the cursor.
const SelectCommit = `
SELECT sha, state, state_since, registered_at, branch, target, author_name, author_email, message, committed_at,
  attestations, base, policy_version, id
FROM commits `

// ScanCommit scans a row of SelectCommit.
func ScanCommit(row txn.Scanner) (txn.Keyed[ledger.Commit], error) {
	var c txn.Keyed[ledger.Commit]
	v := &c.Row
	err := row.Scan(&v.SHA, &v.State, &v.StateSince, &v.RegisteredAt, &v.Branch, &v.Target, &v.Author.Name,
		&v.Author.Email,
		&v.Message, &v.CommittedAt, &v.Attested, &v.Base, &v.PolicyVersion, &c.ID)
	return c, err
}

// FindChanges reads the newest change record of a commit, or nil if it has none.
func FindChanges(rd txn.Reader, commitID int64) (changes []radar.Change, err error) {
	changes, _, err = FindClaimedChanges(rd, commitID)
	return changes, err
}

// FindClaimedChanges reads the newest change record of a commit, and all paths ever
// claimed, if they are others. Both are nil if the commit has no change record.
func FindClaimedChanges(rd txn.Reader, commitID int64) (changes []radar.Change, paths []string, err error) {
	return AskClaimedChanges(rd, commitID)()
}

// AskClaimedChanges asks the query of FindClaimedChanges.
func AskClaimedChanges(rd txn.Reader, commitID int64) func() ([]radar.Change, []string, error) {
	asked := rd.Ask("SELECT changes, paths FROM commit_details WHERE commit_id = ?", commitID)
	return func() (changes []radar.Change, paths []string, err error) {
		err = asked.Each(func(row txn.Scanner) error {
			var changesText, pathsText []byte
			if err := row.Scan(&changesText, &pathsText); err != nil {
				return err
			}
			if changes, err = DecodeChanges(changesText); err != nil || pathsText == nil {
				return err
			}
			return json.Unmarshal(pathsText, &paths)
		})
		if err != nil {
			return nil, nil, fmt.Errorf("read changes: %w", err)
		}
		return changes, paths, nil
	}
}

// FindCommit finds a commit of a repo by its full id, or by a prefix that is unique in the repo.
func FindCommit(rd txn.Reader, r txn.Repo, prefix string) (txn.Keyed[ledger.Commit], error) {
	return findIn(rd, r, prefix, SelectCommit, ScanCommit, func(c txn.Keyed[ledger.Commit]) string { return c.Row.SHA })
}

// FindRow is like FindCommit, for the columns from which the state is derived.
func FindRow(rd txn.Reader, r txn.Repo, prefix string) (*CommitRow, error) {
	return findIn(rd, r, prefix, SelectCommitRow, ScanCommitRow, func(c *CommitRow) string { return c.SHA })
}

// findIn finds a commit with a query that selects commits.
func findIn[T any](
	rd txn.Reader, r txn.Repo, prefix, query string, scan func(txn.Scanner) (T, error), sha func(T) string,
) (c T, err error) {
	// "g" sorts after every hex digit.
	commits, err := txn.All(rd, scan, query+`
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

// AskCorrections asks for the newest corrections of a commit, newest first.
func AskCorrections(rd txn.Reader, commitID int64) func() ([]ledger.Correction, error) {
	asked := txn.AskAll(rd, func(row txn.Scanner) (c ledger.Correction, err error) {
		return c, row.Scan(&c.At, &c.By, &c.Field, &c.Before, &c.After)
	}, `
SELECT at, by, field, before, after FROM corrections WHERE commit_id = ? ORDER BY id DESC LIMIT ?`,
		commitID, ledger.MaxCorrections)
	return func() ([]ledger.Correction, error) {
		list, err := asked()
		if err != nil {
			return nil, fmt.Errorf("read corrections: %w", err)
		}
		return list, nil
	}
}

// AddCorrection stores what was corrected in a commit.
func AddCorrection(t *txn.Tx, c *CommitRow, v ledger.Correction) error {
	_, err := t.Exec("INSERT INTO corrections (commit_id, at, by, field, before, after) VALUES (?, ?, ?, ?, ?, ?)",
		c.ID, v.At, v.By, v.Field, v.Before, v.After)
	if err != nil {
		return fmt.Errorf("insert correction: %w", err)
	}
	return nil
}

// Summary describes the claimed paths as a Correction has them.
func (d *Details) Summary() string {
	switch {
	case d.Changes == nil:
		return "all paths"
	case d.Paths != nil:
		return ledger.CorrectedText(d.Paths)
	}
	return ledger.CorrectedText(facts.Paths(d.Changes))
}

// claimedBy returns the changed paths that the write has stored of a commit, if it is the write that reads.
func (fa *Facts) claimedBy(rd txn.Reader, commitID int64) (paths []string, ok bool) {
	if !rd.Writes {
		return nil, false
	}
	paths, ok = fa.claimed[commitID]
	return paths, ok
}

// gatherChanges reads the paths that commits change: all that were ever claimed.
func (fa *Facts) gatherChanges(rd txn.Reader, byID map[int64]*Commit, ids []any) error {
	var stored []any
	for _, id := range ids {
		s := byID[id.(int64)]
		if paths, ok := fa.claimedBy(rd, s.ID); ok {
			s.Facts.HasChanges, s.Facts.Changes = true, paths
		} else {
			stored = append(stored, id)
		}
	}
	return readPaths(rd, func(id int64) *policy.Facts { return &byID[id].Facts }, stored)
}

// addChanges buffers the paths of a change record, by the row of its attestation.
func (fa *Facts) addChanges(id int64, paths []string) error {
	text, err := json.Marshal(paths)
	if err != nil {
		return fmt.Errorf("encode changed paths: %w", err)
	}
	fa.rows.changes.Add(id, text)
	return nil
}

// gatherRecords reads the paths of the change records among the evidence of commits whose contracts follow them.
func gatherRecords(rd txn.Reader, list []*Commit) error {
	var ids []any
	records := make(map[int64]*policy.Evidence)
	for _, s := range list {
		if !s.Deriver.Contract.FollowsRecords() {
			continue
		}
		for i := range s.Facts.Evidence {
			if e := &s.Facts.Evidence[i]; e.PredicateType == ledger.ChangesType {
				ids, records[s.rows[i]] = append(ids, s.rows[i]), e
			}
		}
	}
	return rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var text []byte
		if err := row.Scan(&id, &text); err != nil {
			return err
		}
		return json.Unmarshal(text, &records[id].Paths)
	}, "SELECT attestation_id, paths FROM change_records WHERE attestation_id IN ", 1, ids)
}

// readPaths reads the paths that commits change, unless they are too many to match them.
func readPaths(rd txn.Reader, factsOf func(id int64) *policy.Facts, ids []any) error {
	return rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var many bool
		var text, paths []byte
		if err := row.Scan(&id, &many, &text, &paths); err != nil {
			return err
		}

		f := factsOf(id)
		f.HasChanges, f.ManyChanges, f.Changes = true, many, nil
		switch {
		case many:
			return nil
		case paths != nil:
			return json.Unmarshal(paths, &f.Changes)
		}
		var err error
		f.Changes, err = PathsIn(text)
		return err
	}, `
SELECT commit_id, paths_key = '`+facts.ManyChangesKey+`',
  CASE WHEN paths IS NULL AND paths_key <> '`+facts.ManyChangesKey+`' THEN changes END,
  CASE WHEN paths_key <> '`+facts.ManyChangesKey+`' THEN paths END
FROM commit_details WHERE changes IS NOT NULL AND commit_id IN `, 1, ids)
}

// PathsIn returns the paths of a change record. It does not decode the hunks, which take longer.
func PathsIn(text []byte) (paths []string, err error) {
	var changes []struct {
		Path    string `json:"path"`
		OldPath string `json:"old_path"`
	}
	err = json.Unmarshal(text, &changes)
	for _, c := range changes {
		if paths = append(paths, c.Path); c.OldPath != "" {
			paths = append(paths, c.OldPath)
		}
	}
	return paths, err
}

// ChangeSizes returns how many bytes readPaths decodes, by commit.
func ChangeSizes(rd txn.Reader, ids []any) (map[int64]int, error) {
	sizes := make(map[int64]int)
	err := rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var size int
		err := row.Scan(&id, &size)
		sizes[id] = size
		return err
	}, `
SELECT commit_id, length(coalesce(paths, changes)) FROM commit_details
WHERE changes IS NOT NULL AND paths_key <> '`+facts.ManyChangesKey+`' AND commit_id IN `, 1, ids)
	return sizes, err
}
