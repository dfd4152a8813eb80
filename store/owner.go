package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Background work knows the row ids of repos and the ids of webhooks, and has to say to which orgs
// these belong: with a database that several servers write to, a write first locks its orgs. The org
// of a repo and of a webhook never changes.

// writeFor runs fn in the writer's next transaction, as background work about some orgs.
func (s *Store) writeFor(ctx context.Context, owners []int64, fn func(*tx) error) error {
	_, err := writeAs(ctx, s, sqldb.Write{Owners: owners}, func(t *tx) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}

// ownersOfRepo returns the row id of the org of a repo.
func (s *Store) ownersOfRepo(ctx context.Context, repoID int64) ([]int64, error) {
	if id, ok := s.caches.orgOfRepo.Get(repoID); ok {
		return []int64{id}, nil
	}
	id, err := readLoose(ctx, s, txn.ForWrite(""), func(rd reader) (id int64, err error) {
		return id, rd.Row("SELECT org_id FROM repos WHERE id = ?", repoID).Scan(&id)
	})
	if err != nil {
		return nil, fmt.Errorf("read the org of a repo: %w", err)
	}
	s.caches.orgOfRepo.Put(repoID, id)
	return []int64{id}, nil
}
