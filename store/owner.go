package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
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

// webhooksOf returns the ids of the webhooks that outcomes are about.
func webhooksOf(outcomes []ledger.Outcome) []string {
	ids := make([]string, len(outcomes))
	for i, o := range outcomes {
		ids[i] = o.Webhook
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ownersOfWebhooks returns the row ids of the orgs of webhooks. Webhooks that were deleted have
// none.
func (s *Store) ownersOfWebhooks(ctx context.Context, webhooks ...string) (owners []int64, err error) {
	var unknown []any
	for _, webhook := range webhooks {
		if id, ok := s.caches.orgOfWebhook.Get(webhook); ok {
			owners = append(owners, id)
		} else {
			unknown = append(unknown, webhook)
		}
	}
	if len(unknown) == 0 {
		return owners, nil
	}

	return readLoose(ctx, s, txn.ForWrite(""), func(rd reader) ([]int64, error) {
		found := slices.Clone(owners)
		err := rd.EachIn(func(row txn.Scanner) error {
			var webhook string
			var id int64
			err := row.Scan(&webhook, &id)
			s.caches.orgOfWebhook.Put(webhook, id)
			found = append(found, id)
			return err
		}, `
SELECT w.webhook_id, r.org_id FROM webhooks w JOIN repos r ON r.id = w.repo_id WHERE w.webhook_id IN `, 1, unknown)
		return found, err
	})
}
