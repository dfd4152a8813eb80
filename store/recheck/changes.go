package recheck

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	ledgerfacts "github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// checkChanges compares the paths that commits change, from which states are derived, with their key, which is in
// the log, and with the change record of the last registration.
func checkChanges(rd txn.Reader, commits []*facts.CommitRow, r *Result) error {
	shas, ids := make(map[int64]string, len(commits)), make([]any, len(commits))
	for i, c := range commits {
		shas[c.ID], ids[i] = c.SHA, c.ID
	}
	err := rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var key string
		var changes, text []byte
		if err := row.Scan(&id, &key, &changes, &text); err != nil {
			return err
		}

		last, err := facts.PathsIn(changes)
		paths := last
		if err == nil && text != nil {
			err = json.Unmarshal(text, &paths)
		}

		switch {
		case err != nil:
			r.differ(shas[id], "its changed paths cannot be read: %v", err)
		case key == ledgerfacts.ManyChangesKey:
		case key != "" && key != ledgerfacts.ChangesKey(paths) || !containsAll(paths, last):
			r.differ(shas[id], "its changed paths are not those of its change records, or not those that the log has")
		}
		return nil
	}, `
SELECT commit_id, paths_key, changes, paths FROM commit_details WHERE changes IS NOT NULL AND commit_id IN `, 1, ids)
	if err != nil {
		return fmt.Errorf("read the changes of commits: %w", err)
	}
	return nil
}

// containsAll reports whether all paths of a list are also in another one.
func containsAll(all, paths []string) bool {
	has := make(map[string]bool, len(all))
	for _, path := range all {
		has[path] = true
	}
	return !slices.ContainsFunc(paths, func(path string) bool { return !has[path] })
}
