package store

import (
	"context"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Background work knows the row ids of repos and the ids of webhooks, and has to say to which orgs
// these belong: with a database that several servers write to, a write first locks its orgs. The org
// of a repo and of a webhook never changes.

// writeFor runs fn in the writer's next transaction, as background work about some orgs.
func (s *Store) writeFor(ctx context.Context, owners []int64, fn func(*tx) error) error {
	_, err := writeAs(ctx, s, sqldb.Write{Owners: owners}, func(t *tx) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}
