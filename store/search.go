package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/search"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Search returns what a query finds in an org. IDs, digests and names are looked up by
// indexes. Words are compared with the newest commits, and the digits of a digest with the
// payloads of the newest attestations; with a cursor, only with those before it.
func (s *Store) Search(ctx context.Context, org string, q SearchQuery) (search.Result, error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (result search.Result, err error) {
		p, err := rd.findSearched(org, "")
		if err != nil {
			return result, err
		}
		f := &finder{reader: rd, q: q, searched: p, seen: make(map[string]bool), nameIDs: make(map[string]int64)}
		if q.Cursor == "" {
			if err := f.lookUp(); err != nil {
				return result, fmt.Errorf("search by index: %w", err)
			}
		}
		if err := f.compare(); err != nil {
			return result, err
		}

		result = f.result
		result.Data, result.More = search.Ranked(f.hits, q.Limit)
		if err := f.addRepos(result.Data); err != nil {
			return result, fmt.Errorf("find the repos of names: %w", err)
		}
		result.Stopped = strings.Join(f.stopped, "; ")
		return result, nil
	})
}
