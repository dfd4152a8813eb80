package store

import (
	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// gatherChanges reads the paths that commits change: all that were ever claimed.
func (rd reader) gatherChanges(byID map[int64]*subject, ids []any) error {
	var stored []any
	for _, id := range ids {
		s := byID[id.(int64)]
		if paths, ok := rd.claimed[s.id]; ok {
			s.facts.HasChanges, s.facts.Changes = true, paths
		} else {
			stored = append(stored, id)
		}
	}
	return rd.readPaths(func(id int64) *policy.Facts { return &byID[id].facts }, stored)
}

// readPaths reads the paths that commits change, unless they are too many to match them.
func (rd reader) readPaths(factsOf func(id int64) *policy.Facts, ids []any) error {
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
		f.Changes, err = pathsIn(text)
		return err
	}, `
SELECT commit_id, paths_key = '`+policy.ManyChangesKey+`',
  CASE WHEN paths IS NULL AND paths_key <> '`+policy.ManyChangesKey+`' THEN changes END,
  CASE WHEN paths_key <> '`+policy.ManyChangesKey+`' THEN paths END
FROM commit_details WHERE changes IS NOT NULL AND commit_id IN `, 1, ids)
}

// pathsIn returns the paths of a change record. It does not decode the hunks, which take longer.
func pathsIn(text []byte) (paths []string, err error) {
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

// changeSizes returns how many bytes readPaths decodes, by commit.
func (rd reader) changeSizes(ids []any) (map[int64]int, error) {
	sizes := make(map[int64]int)
	err := rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var size int
		err := row.Scan(&id, &size)
		sizes[id] = size
		return err
	}, `
SELECT commit_id, length(coalesce(paths, changes)) FROM commit_details
WHERE changes IS NOT NULL AND paths_key <> '`+policy.ManyChangesKey+`' AND commit_id IN `, 1, ids)
	return sizes, err
}
