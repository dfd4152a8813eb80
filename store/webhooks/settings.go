package webhooks

import (
	"errors"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/settings"
	"github.com/ledgerd/ledgerd/store/internal/sealed"
	"github.com/ledgerd/ledgerd/store/txn"
)

// WebhookSettings reads the webhooks of repos, with the fields that audit events have. The secrets are left out
// if their key is missing.
func (ob *Outbox) WebhookSettings(rd txn.Reader, repos []any) (rows []settings.Row, err error) {
	secrets := make(map[int64]sealedSecrets)
	err = rd.EachIn(func(row txn.Scanner) error {
		var h sealedSecrets
		err := row.Scan(&h.id, &h.public, &h.secret, &h.authorization)
		secrets[h.id] = h
		return err
	}, `
SELECT w.id, w.webhook_id, w.secret, w.auth_header FROM webhooks w WHERE w.deleted_at = 0 AND w.repo_id IN `, 1, repos)
	if err != nil {
		return nil, err
	}

	err = rd.EachIn(func(row txn.Scanner) error {
		w, err := scanWebhook(row)
		if err != nil {
			return err
		}
		stored := secrets[w.ID]
		opened, err := stored.open(ob.keys, rd.Now)
		if err != nil { // then they are not the ones in any event
			opened = hookSecrets{secret: stored.secret, authorization: authorization(stored.authorization)}
		}
		fields := webhookFields(w.Row, opened)
		if errors.Is(err, sealed.ErrNoKey) {
			fields = slices.DeleteFunc(fields, func(f ledger.Field) bool {
				return f.Name == secretDigest || f.Name == authorizationDigest
			})
		}
		rows = append(rows, settings.Row{Kind: settings.Webhook, Target: w.Row.ID, Repo: w.Row.Repo, Fields: fields})
		return nil
	}, selectWebhook+"WHERE w.deleted_at = 0 AND w.repo_id IN ", 1, repos)
	return rows, err
}
