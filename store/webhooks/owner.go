package webhooks

import (
	"context"
	"slices"

	"github.com/ledgerd/ledgerd/store/txn"
)

// ownersOfWebhooks returns the row ids of the orgs of webhooks. Webhooks that were deleted have
// none.
func (ob *Outbox) ownersOfWebhooks(ctx context.Context, webhooks ...string) (owners []int64, err error) {
	var unknown []any
	for _, webhook := range webhooks {
		if id, ok := ob.orgs.Get(webhook); ok {
			owners = append(owners, id)
		} else {
			unknown = append(unknown, webhook)
		}
	}
	if len(unknown) == 0 {
		return owners, nil
	}

	return txn.ReadLoose(ctx, ob.db, txn.ForWrite(""), func(rd txn.Reader) ([]int64, error) {
		found := slices.Clone(owners)
		err := rd.EachIn(func(row txn.Scanner) error {
			var webhook string
			var id int64
			err := row.Scan(&webhook, &id)
			ob.orgs.Put(webhook, id)
			found = append(found, id)
			return err
		}, `
SELECT w.webhook_id, r.org_id FROM webhooks w JOIN repos r ON r.id = w.repo_id WHERE w.webhook_id IN `, 1, unknown)
		return found, err
	})
}
