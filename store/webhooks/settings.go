package webhooks

import (
	"errors"

	"github.com/ledgerd/ledgerd/ledger/settings"
	"github.com/ledgerd/ledgerd/store/internal/sealed"
	"github.com/ledgerd/ledgerd/store/txn"
)

// WebhookSettings reads the webhooks of repos, with the fields that audit events have. A signing secret is
// left out if its key is missing.
func (ob *Outbox) WebhookSettings(rd txn.Reader, repos []any) (rows []settings.Row, err error) {
	secrets := make(map[int64]hookSecrets)
	err = rd.EachIn(func(row txn.Scanner) error {
		var h hookSecrets
		err := row.Scan(&h.id, &h.public, &h.secret)
		secrets[h.id] = h
		return err
	}, "SELECT w.id, w.webhook_id, w.secret FROM webhooks w WHERE w.deleted_at = 0 AND w.repo_id IN ", 1, repos)
	if err != nil {
		return nil, err
	}

	err = rd.EachIn(func(row txn.Scanner) error {
		w, err := scanWebhook(row)
		if err != nil {
			return err
		}
		secret, _, err := secrets[w.ID].open(ob.keys, rd.Now)
		if err != nil {
			secret = secrets[w.ID].secret // which is not the one in any event
		}
		fields := webhookFields(w.Row, secret)
		if errors.Is(err, sealed.ErrNoKey) {
			fields = fields[:len(fields)-1]
		}
		rows = append(rows, settings.Row{Kind: settings.Webhook, Target: w.Row.ID, Repo: w.Row.Repo, Fields: fields})
		return nil
	}, selectWebhook+"WHERE w.deleted_at = 0 AND w.repo_id IN ", 1, repos)
	return rows, err
}
