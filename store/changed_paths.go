package store

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// maxDecoded limits the bytes of change records that the writer decodes to derive the states
// of commits. What requirements make of longer ones must be known before.
const maxDecoded = 1 << 18

// gatherChanges reads the paths that commits change: all that were ever claimed. The writer
// leaves out those that it need not know, and those that take long.
func (rd reader) gatherChanges(byID map[int64]*subject, ids []any) error {
	left, read := math.MaxInt, []any(nil)
	if rd.writes {
		left = maxDecoded
	}
	err := rd.EachIn(func(row scanner) error {
		var id int64
		var size int
		var key string
		if err := row.Scan(&id, &key, &size); err != nil {
			return err
		}
		s := byID[id]
		f := &s.facts
		f.HasChanges, f.ChangesKey = true, pathsKey(id, key)
		if paths, ok := rd.claimed[id]; ok {
			f.Changes = paths
			return nil
		}

		f.ChangesUnread = true
		if size > left || rd.writes && s.d.contract.KnowsScopes(f) {
			return nil
		}
		left -= size
		read = append(read, id)
		return nil
	}, `
SELECT commit_id, paths_key, coalesce(length(paths), length(changes)) FROM commit_details
WHERE changes IS NOT NULL AND commit_id IN `, 1, ids)
	if err != nil {
		return err
	}
	return rd.readPaths(func(id int64) *policy.Facts { return &byID[id].facts }, read)
}

// pathsKey returns the key of a commit's paths. If none is stored, they were claimed in a
// release without keys, and have not changed since.
func pathsKey(commitID int64, stored string) string {
	if stored == "" {
		return fmt.Sprint("commit ", commitID)
	}
	return stored
}

// readPaths reads the paths that commits change, with their keys.
func (rd reader) readPaths(factsOf func(id int64) *policy.Facts, ids []any) error {
	return rd.EachIn(func(row scanner) error {
		var id int64
		var key string
		var text, paths []byte
		if err := row.Scan(&id, &key, &text, &paths); err != nil {
			return err
		}
		f := factsOf(id)
		f.HasChanges, f.ChangesKey, f.ChangesUnread, f.Changes = true, pathsKey(id, key), false, nil
		if paths != nil {
			return json.Unmarshal(paths, &f.Changes)
		}
		changes, err := decodeChanges(text)
		f.Changes = facts.Paths(changes)
		return err
	}, `
SELECT commit_id, paths_key, CASE WHEN paths IS NULL THEN changes END, paths FROM commit_details
WHERE changes IS NOT NULL AND commit_id IN `, 1, ids)
}
