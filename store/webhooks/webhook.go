package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxWebhooks is the maximum number of webhooks of a repo. Every event is queued for each
// of them.
const maxWebhooks = 50

const selectWebhook = `
SELECT w.id, w.webhook_id, o.name, r.name, w.url, w.events, w.active, w.description, w.created_at,
  w.disabled_reason, w.disabled_at, w.failing_since, w.previous_until, w.auth_header
FROM webhooks w JOIN repos r ON r.id = w.repo_id JOIN orgs o ON o.id = r.org_id `

func scanWebhook(row txn.Scanner) (txn.Keyed[outbound.Webhook], error) {
	var w txn.Keyed[outbound.Webhook]
	var events txn.TypeSet
	var authorization string
	err := row.Scan(&w.ID, &w.Row.ID, &w.Row.Org, &w.Row.Repo, &w.Row.URL, &events, &w.Row.Active, &w.Row.Description,
		&w.Row.CreatedAt,
		&w.Row.DisabledReason, &w.Row.DisabledAt, &w.Row.FailingSince, &w.Row.PreviousSecretUntil, &authorization)
	w.Row.Events = events.Types()
	if authorization != "" {
		w.Row.Authorization = outbound.MaskedAuthorization
	}
	return w, err
}

// findWebhook reads a webhook of a repo. PreviousSecretUntil is 0 if the previous secret
// has expired.
func findWebhook(rd txn.Reader, org, repo, id string) (txn.Keyed[outbound.Webhook], error) {
	w, err := scanWebhook(rd.Row(selectWebhook+`
WHERE w.webhook_id = ? AND w.deleted_at = 0 AND o.name = ? AND r.name = ?`, id, org, repo))
	if w.Row.PreviousSecretUntil <= rd.Now {
		w.Row.PreviousSecretUntil = 0
	}
	return w, txn.Missing(err, "webhook %s not found in %s/%s", id, org, repo)
}

// CreateWebhook creates a webhook with a signing secret. It returns CodeLimitReached if the
// repo has too many webhooks.
func (ob *Outbox) CreateWebhook(
	ctx context.Context, org, repo string, n outbound.NewWebhook, secret string,
) (outbound.Webhook, error) {
	return txn.Write(ctx, ob.db, sqldb.Write{Org: org}, func(t *txn.Tx) (w outbound.Webhook, err error) {
		r, err := t.WritableRepo(org, repo)
		if err != nil {
			return w, err
		}
		var count int
		if err := t.Row("SELECT count(*) FROM webhooks WHERE repo_id = ? AND deleted_at = 0", r.ID).Scan(&count); err != nil {
			return w, fmt.Errorf("count webhooks: %w", err)
		}
		if count >= maxWebhooks {
			return w, ledger.Errorf(ledger.CodeLimitReached,
				"%s/%s has %d webhooks, the maximum: remove one first", r.Org, r.Name, count)
		}

		webhookID, err := t.NewID(r.OrgID, txn.WebhookPrefix)
		if err != nil {
			return w, err
		}
		active := n.Active == nil || *n.Active
		secrets := hookSecrets{secret: secret, authorization: newAuthorization(n.Authorization)}
		id, err := t.Insert(`
INSERT INTO webhooks (webhook_id, repo_id, url, events, description, active, created_at, changed_at, secret,
  auth_header)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			webhookID, r.ID, n.URL, txn.TypeSetOf(n.Events), n.Description, active, t.Now, t.Now,
			ob.keys.Seal(secret, webhookID), sealAuthorization(ob.keys, secrets.authorization, webhookID))
		if err != nil {
			return w, fmt.Errorf("insert webhook: %w", err)
		}

		if err := updateEventTypes(t, r.ID); err != nil {
			return w, err
		}
		if err := checkOrgHooks(t, org, txn.TypeSetOf(n.Events)); err != nil {
			return w, err
		}
		created, err := scanWebhook(t.Row(selectWebhook+"WHERE w.id = ?", id))
		if err != nil {
			return created.Row, fmt.Errorf("read webhook: %w", err)
		}
		fields := webhookFields(created.Row, secrets)
		return created.Row, ob.auditWebhook(t, ledger.AuditWebhookCreated, created.Row, nil, fields)
	})
}

// updateEventTypes updates the event types that the repo's active webhooks receive.
func updateEventTypes(t *txn.Tx, repoID int64) error {
	var types txn.TypeSet
	err := t.Each(func(row txn.Scanner) error {
		var events txn.TypeSet
		err := row.Scan(&events)
		types |= events
		return err
	}, "SELECT events FROM webhooks WHERE repo_id = ? AND deleted_at = 0 AND active = 1", repoID)
	if err == nil {
		_, err = t.Exec("UPDATE repos SET webhook_events = ? WHERE id = ?", types, repoID)
	}
	if err != nil {
		return fmt.Errorf("update the repo's event types: %w", err)
	}
	return nil
}

// checkOrgHooks returns CodeLimitReached if a webhook that now receives the given events is
// one too many of those that receive events of the org.
func checkOrgHooks(t *txn.Tx, org string, types txn.TypeSet) error {
	var ofOrg txn.TypeSet
	for _, kind := range ledger.EventTypes() {
		if kind.IsOfOrg() {
			ofOrg |= txn.TypeBit(kind)
		}
	}
	if types&ofOrg == 0 {
		return nil
	}

	orgID, err := t.OrgID(org)
	if err != nil {
		return err
	}
	hooks, err := txn.All(t.Reader, events.ScanHook, events.SelectOrgHooks, orgID, ofOrg, ofOrg, events.MaxOrgHooks+1)
	if err != nil {
		return fmt.Errorf("count webhooks: %w", err)
	}
	if len(hooks) > events.MaxOrgHooks {
		return ledger.Errorf(ledger.CodeLimitReached, "%s has %d active webhooks that receive events of the org (%v), "+
			"the maximum: remove the types from another one first", org, events.MaxOrgHooks, ofOrg.Types())
	}
	return nil
}

// Webhook returns one webhook of a repo.
func (ob *Outbox) Webhook(ctx context.Context, org, repo, id string) (outbound.Webhook, error) {
	return txn.Read(ctx, ob.db, txn.ByOrg(org), func(rd txn.Reader) (outbound.Webhook, error) {
		w, err := findWebhook(rd, org, repo, id)
		return w.Row, err
	})
}

// Webhooks lists the webhooks of a repo, oldest first.
func (ob *Outbox) Webhooks(ctx context.Context, org, repo string, q txn.Query) (ledger.Page[outbound.Webhook], error) {
	return txn.Read(ctx, ob.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[outbound.Webhook], err error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return list, err
		}
		return txn.PageOf(rd, "webhooks", r.ID, q, scanWebhook, selectWebhook+`
WHERE w.repo_id = ? AND w.deleted_at = 0 AND w.id > ? ORDER BY w.id LIMIT ?`)
	})
}

// ChangeWebhook sets the fields of a webhook that are not nil in c. If that activates the webhook, changes its URL
// or sets the header, its failures are reset. The Authorization header is only sent to the origin for which it was
// given: it returns a field error if c has a URL of another origin without a new value.
func (ob *Outbox) ChangeWebhook(
	ctx context.Context, org, repo, id string, c outbound.WebhookChange,
) (outbound.Webhook, error) {
	return ob.updateWebhook(ctx, org, repo, id, "", func(t *txn.Tx, w txn.Keyed[outbound.Webhook]) error {
		changed, reset := w.Row, false
		if c.URL != nil && *c.URL != changed.URL {
			changed.URL, reset = *c.URL, true
		}
		if c.Events != nil {
			changed.Events = *c.Events
		}
		if c.Description != nil {
			changed.Description = *c.Description
		}
		if c.Active != nil && *c.Active != changed.Active {
			changed.Active, reset = *c.Active, true
			changed.DisabledAt, changed.DisabledReason = 0, ""
		}
		if c.Authorization != nil {
			reset = true
			if err := ob.setAuthorization(t, w, *c.Authorization); err != nil {
				return err
			}
		} else if w.Row.Authorization != "" && changed.Origin() != w.Row.Origin() {
			return ledger.FieldErrorf(ledger.CodeInvalidField, "authorization",
				"required, since the URL has another scheme, host or port: the present value is only sent to %s (an empty value "+
					"removes it)", w.Row.Origin())
		}

		if changed.Active {
			ob.journal.Queue(changed.ID) // there may be pending deliveries
		}

		_, err := t.Exec(`
UPDATE webhooks SET url = ?, events = ?, description = ?, active = ?, disabled_at = ?, disabled_reason = ?
WHERE id = ?`,
			changed.URL, txn.TypeSetOf(changed.Events), changed.Description, changed.Active, changed.DisabledAt,
			changed.DisabledReason, w.ID)
		if err == nil && reset {
			_, err = t.Exec("UPDATE webhooks SET changed_at = ?, failing_since = 0, failures = 0 WHERE id = ?", t.Now, w.ID)
		}
		if err != nil {
			return fmt.Errorf("update webhook: %w", err)
		}
		return nil
	})
}

// setAuthorization sets the Authorization header of the deliveries of a webhook.
func (ob *Outbox) setAuthorization(t *txn.Tx, w txn.Keyed[outbound.Webhook], header string) error {
	_, err := t.Exec("UPDATE webhooks SET auth_header = ? WHERE id = ?",
		sealAuthorization(ob.keys, newAuthorization(header), w.Row.ID), w.ID)
	if err != nil {
		return fmt.Errorf("update webhook: %w", err)
	}
	return nil
}

// RotateWebhook sets a new signing secret. For the overlap period, deliveries are also
// signed with the previous secret. There is only one previous secret: a second rotation
// within the overlap period ends the older one immediately, so receivers that still use
// it can no longer verify deliveries.
func (ob *Outbox) RotateWebhook(
	ctx context.Context, org, repo, id, secret string, overlap time.Duration,
) (outbound.Webhook, error) {
	return ob.updateWebhook(ctx, org, repo, id, secret, func(t *txn.Tx, w txn.Keyed[outbound.Webhook]) error {
		until := ledger.Time(0)
		if overlap > 0 {
			until = t.Now.Add(overlap)
		}
		_, err := t.Exec(`
UPDATE webhooks SET previous_secret = CASE WHEN CAST(?1 AS BIGINT) > 0 THEN secret ELSE '' END, previous_until = ?1,
  secret = ?2
WHERE id = ?3`, until, ob.keys.Seal(secret, id), w.ID)
		if err != nil {
			return fmt.Errorf("update webhook: %w", err)
		}
		return nil
	})
}

// updateWebhook runs change on a webhook and returns the changed webhook. secret is its new signing secret, or
// empty if it stays.
func (ob *Outbox) updateWebhook(
	ctx context.Context, org, repo, id, secret string, change func(*txn.Tx, txn.Keyed[outbound.Webhook]) error,
) (outbound.Webhook, error) {
	return txn.Write(ctx, ob.db, sqldb.Write{Org: org}, func(t *txn.Tx) (outbound.Webhook, error) {
		w, err := findWebhook(t.Reader, org, repo, id)
		if err != nil {
			return w.Row, err
		}
		before, err := ob.fieldsOf(t.Reader, w, "")
		if err != nil {
			return w.Row, err
		}
		if err := change(t, w); err != nil {
			return w.Row, err
		}
		ob.journal.MarkChanged(id)
		if err := updateEventTypesOf(t, w.ID); err != nil {
			return w.Row, err
		}

		if w, err = findWebhook(t.Reader, org, repo, id); err != nil {
			return w.Row, err
		}
		if err := checkOrgHooks(t, org, txn.TypeSetOf(w.Row.Events)); err != nil {
			return w.Row, err
		}

		action := ledger.AuditWebhookRotated
		if secret == "" {
			action = ledger.AuditWebhookChanged
		}
		after, err := ob.fieldsOf(t.Reader, w, secret)
		if err != nil {
			return w.Row, err
		}
		if len(ledger.Changes(before, after)) == 0 {
			return w.Row, nil
		}
		return w.Row, ob.auditWebhook(t, action, w.Row, before, after)
	})
}

// updateEventTypesOf is like updateEventTypes, for the repo of a webhook.
func updateEventTypesOf(t *txn.Tx, webhook int64) error {
	var repoID int64
	if err := t.Row("SELECT repo_id FROM webhooks WHERE id = ?", webhook).Scan(&repoID); err != nil {
		return fmt.Errorf("read webhook: %w", err)
	}
	return updateEventTypes(t, repoID)
}

// DeleteWebhook deletes a webhook. Its pending deliveries are cancelled, and all its
// deliveries are deleted in the background.
func (ob *Outbox) DeleteWebhook(ctx context.Context, org, repo, id string) error {
	return ob.db.Change(ctx, org, func(t *txn.Tx) error {
		w, err := findWebhook(t.Reader, org, repo, id)
		if err != nil {
			return err
		}
		before, err := ob.fieldsOf(t.Reader, w, "")
		if err != nil {
			return err
		}
		if err := DeleteAll(t, "id = ?", w.ID); err != nil {
			return err
		}
		ob.journal.MarkChanged(id)
		if err := updateEventTypesOf(t, w.ID); err != nil {
			return err
		}
		return ob.auditWebhook(t, ledger.AuditWebhookDeleted, w.Row, before, nil)
	})
}

// auditWebhook appends the event of an administrative action on a webhook.
func (ob *Outbox) auditWebhook(
	t *txn.Tx, action ledger.AuditAction, w outbound.Webhook, before, after []ledger.Field,
) error {
	return ob.journal.AuditIn(t, w.Org, events.Audited{
		Action: action, Repo: w.Repo, Target: w.ID, Before: before, After: after,
	})
}

// fieldsOf returns the fields of a webhook as events have them, and of its signing secret, if it is not empty.
func (ob *Outbox) fieldsOf(rd txn.Reader, w txn.Keyed[outbound.Webhook], secret string) ([]ledger.Field, error) {
	var stored string
	if err := rd.Row("SELECT auth_header FROM webhooks WHERE id = ?", w.ID).Scan(&stored); err != nil {
		return nil, fmt.Errorf("read webhook: %w", err)
	}
	a, err := openAuthorization(ob.keys, stored, w.Row.ID)
	if err != nil {
		a = authorization(stored) // which is not the one in any event
	}
	return webhookFields(w.Row, hookSecrets{secret: secret, authorization: a}), nil
}

// The fields of a webhook's secrets in events.
const (
	secretDigest        = "secret_digest"
	authorizationDigest = "authorization_digest"
)

// webhookFields has the URL without its path and query, which are often secret, and the digests of the signing
// secret, if it is known, and of the authorization. Both contain enough random text that they cannot be guessed.
func webhookFields(w outbound.Webhook, s hookSecrets) []ledger.Field {
	return []ledger.Field{
		{Name: "url", Value: w.Origin()},
		{Name: "url_digest", Value: events.TextDigest(w.URL)},
		{Name: "events", Value: w.Events},
		{Name: "active", Value: w.Active},
		{Name: "description", Value: events.Optional(w.Description)},
		{Name: secretDigest, Value: events.Digest([]byte(s.secret))},
		{Name: authorizationDigest, Value: events.Digest([]byte(s.authorization))},
	}
}

// Stop disables the active webhooks that a condition with one parameter selects.
func (ob *Outbox) Stop(t *txn.Tx, where string, id int64, reason string) error {
	stopped, err := txn.All(t.Reader, txn.ScanText,
		"SELECT webhook_id FROM webhooks WHERE active = 1 AND deleted_at = 0 AND "+where, id)
	if err != nil {
		return fmt.Errorf("read webhooks: %w", err)
	}
	_, err = t.Exec("UPDATE webhooks SET active = 0, disabled_at = ?, disabled_reason = ? "+
		"WHERE active = 1 AND deleted_at = 0 AND "+where, t.Now, reason, id)
	if err != nil {
		return fmt.Errorf("disable webhooks: %w", err)
	}
	for _, id := range stopped {
		ob.journal.MarkChanged(id)
	}
	return nil
}

// DeleteAll deletes the webhooks that a condition with one parameter selects, with their secrets.
func DeleteAll(t *txn.Tx, where string, id int64) error {
	_, err := t.Exec(`
UPDATE webhooks SET deleted_at = ?, active = 0, secret = '', previous_secret = '', auth_header = ''
WHERE deleted_at = 0 AND `+where, t.Now, id)
	if err != nil {
		return fmt.Errorf("delete webhooks: %w", err)
	}
	return nil
}
