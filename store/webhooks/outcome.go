package webhooks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// minFailures is the number of consecutive failures required to disable a webhook. If the
// server was stopped for long, two failures can be far apart.
const minFailures = 5

// RecordOutcomes records the outcomes of attempts. A webhook is disabled if all attempts
// have failed for at least disableAfter, and at least minFailures in a row. If
// disableAfter is 0, only outcomes with Disable set disable it.
func (ob *Outbox) RecordOutcomes(ctx context.Context, outcomes []outbound.Outcome, disableAfter time.Duration) error {
	rows := make([]outcomeRow, len(outcomes))
	for i, o := range outcomes { // outside the writer
		rows[i] = outcomeRow{Outcome: o, request: marshal(o.Attempt.Request), response: marshal(o.Attempt.Response)}
	}
	owners, err := ob.ownersOfWebhooks(ctx, webhooksOf(outcomes)...)
	if err != nil {
		return fmt.Errorf("record outcomes: %w", err)
	}

	disabled, err := txn.Write(ctx, ob.db, sqldb.Write{Yields: true, Owners: owners}, func(t *txn.Tx) ([]string, error) {
		return ob.recordOutcomes(t, rows, disableAfter)
	})
	for _, id := range disabled {
		// The reason is not logged: it may contain a URL with a secret.
		ob.db.Log.Warn("webhook disabled", "webhook", id)
	}
	return err
}

// recordOutcomes records outcomes, and returns the ids of the webhooks that it disabled.
func (ob *Outbox) recordOutcomes(
	t *txn.Tx, rows []outcomeRow, disableAfter time.Duration,
) (disabled []string, err error) {
	health := make(map[string]*hookHealth)
	for _, r := range rows {
		h, err := healthOf(t, health, r.Webhook)
		if err != nil {
			return nil, err
		}
		if h == nil { // deleted since
			continue
		}
		if err := settleDelivery(t, h, r); err != nil {
			return nil, err
		}
		h.update(r.Outcome, disableAfter)
	}

	for _, h := range health {
		if err := ob.saveHealth(t, h); err != nil {
			return nil, err
		}
		if h.disable != "" && h.active {
			disabled = append(disabled, h.Public)
		}
	}
	return disabled, nil
}

// marshal encodes the logged part of a request or response: its headers and the start of
// its body. Invalid UTF-8 is allowed.
func marshal(v any) []byte {
	data, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return []byte("{}") // an attempt that cannot be logged must not stop deliveries
	}
	return data
}

// An outcomeRow is an outcome with its columns in the database.
type outcomeRow struct {
	outbound.Outcome
	request, response []byte
}

// Each of these statements writes one row and returns none. For other statements SQLite
// keeps a statement journal of all pages that they change, which is slow.
const (
	// settleSuccess ends a delivery, even if the lease has expired.
	settleSuccess = `
UPDATE outbox
SET attempts = attempts + 1, tries = tries + 1, leased = 0, status = 'succeeded', due_at = 0, ended_at = ?
WHERE webhook_id = ? AND delivery_id = ?`
	// settleFailure records a failed attempt if its lease is the current one. If the row
	// has fewer tries than when it was claimed, the delivery was redelivered during the
	// attempt: it is due immediately, with the full schedule of retries. The parameters
	// are the webhook, the delivery, the lease, the tries, the status, due_at and
	// ended_at.
	settleFailure = `
UPDATE outbox
SET attempts = attempts + 1, leased = 0,
  tries = CASE WHEN tries < ?4 THEN tries ELSE tries + 1 END,
  status = CASE WHEN tries < ?4 THEN 'pending' ELSE ?5 END,
  due_at = CASE WHEN tries < ?4 THEN 1 ELSE CAST(?6 AS BIGINT) END,
  ended_at = CASE WHEN tries < ?4 THEN 0 ELSE CAST(?7 AS BIGINT) END
WHERE webhook_id = ?1 AND delivery_id = ?2 AND leased = 1 AND due_at = ?3`
	// settleLate only counts a failed attempt, if its lease has expired.
	settleLate    = `UPDATE outbox SET attempts = attempts + 1 WHERE webhook_id = ? AND delivery_id = ?`
	insertAttempt = `
INSERT INTO attempts (webhook_id, delivery_id, number, at, duration_ms, status, error, request, response)
VALUES (?1, ?2, (SELECT attempts FROM outbox WHERE webhook_id = ?1 AND delivery_id = ?2), ?3, ?4, ?5, ?6, ?7, ?8)`
)

// settleDelivery records an attempt, and updates its delivery.
func settleDelivery(t *txn.Tx, h *hookHealth, r outcomeRow) error {
	ok, err := settleStatus(t, h, r.Outcome)
	if err != nil {
		return fmt.Errorf("update delivery: %w", err)
	}
	if !ok {
		return nil // pruned since
	}
	a := r.Attempt
	_, err = t.Exec(insertAttempt, h.ID, r.Delivery, a.At, a.DurationMS, a.Response.Status, a.Error, r.request, r.response)
	if err != nil {
		return fmt.Errorf("insert attempt: %w", err)
	}
	return nil
}

// settleStatus updates a delivery for an outcome. It reports whether the delivery exists.
func settleStatus(t *txn.Tx, h *hookHealth, o outbound.Outcome) (ok bool, err error) {
	if o.Status == outbound.DeliverySucceeded {
		return execAny(t, settleSuccess, t.Now, h.ID, o.Delivery)
	}
	status, due, ended := o.Status, o.RetryAt, ledger.Time(0)
	if o.Disable != "" && o.Attempt.Request.URL != h.url {
		status, due = outbound.DeliveryPending, dueAtOnce // the URL has changed since: try the new one
	}
	if status != outbound.DeliveryPending {
		due, ended = 0, t.Now
	}
	ok, err = execAny(t, settleFailure, h.ID, o.Delivery, o.Lease, o.Tries, status, due, ended)
	if err != nil || ok {
		return ok, err
	}
	return execAny(t, settleLate, h.ID, o.Delivery)
}

// execAny runs a statement and reports whether it changed any row.
func execAny(t *txn.Tx, query string, args ...any) (bool, error) {
	n, err := t.Exec(query, args...)
	return n > 0, err
}

// A hookHealth is the health of a webhook while outcomes are recorded.
type hookHealth struct {
	events.HookKey
	url          string
	active       bool
	changedAt    ledger.Time
	failingSince ledger.Time
	failures     int    // consecutive failures
	disable      string // why to disable the webhook; empty to leave it active
	changed      bool   // whether failingSince or failures have changed
}

// healthOf returns the health of a webhook, from known or the database. It returns nil if
// the webhook was deleted.
func healthOf(t *txn.Tx, known map[string]*hookHealth, webhook string) (*hookHealth, error) {
	if h, ok := known[webhook]; ok {
		return h, nil
	}
	h := &hookHealth{HookKey: events.HookKey{Public: webhook}}
	err := t.Row(`
SELECT id, url, active, changed_at, failing_since, failures FROM webhooks
WHERE webhook_id = ? AND deleted_at = 0`, webhook).
		Scan(&h.ID, &h.url, &h.active, &h.changedAt, &h.failingSince, &h.failures)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read webhook: %w", err)
	}
	known[webhook] = h
	return h, nil
}

// update updates the health for an outcome. It ignores attempts to an earlier URL, and
// those made before the webhook was activated again.
func (h *hookHealth) update(o outbound.Outcome, disableAfter time.Duration) {
	if o.Attempt.Request.URL != h.url || o.Attempt.At < h.changedAt {
		return
	}
	if o.Attempt.Error == "" {
		h.changed = h.changed || h.failures > 0
		h.failingSince, h.failures = 0, 0
		return
	}
	if h.failures == 0 {
		h.failingSince = o.Attempt.At
	}
	h.failures++
	h.changed = true
	switch failing := o.Attempt.At.Sub(h.failingSince); {
	case o.Disable != "":
		h.disable = o.Disable
	case disableAfter > 0 && failing >= disableAfter && h.failures >= minFailures:
		h.disable = fmt.Sprintf("all attempts since %s failed; last error: %s", h.failingSince, o.Attempt.Error)
	}
}

func (ob *Outbox) saveHealth(t *txn.Tx, h *hookHealth) error {
	if h.changed {
		_, err := t.Exec("UPDATE webhooks SET failing_since = ?, failures = ? WHERE id = ?", h.failingSince, h.failures, h.ID)
		if err != nil {
			return fmt.Errorf("update webhook: %w", err)
		}
	}
	if h.disable == "" || !h.active {
		return nil
	}
	_, err := t.Exec("UPDATE webhooks SET active = 0, changed_at = ?, disabled_at = ?, disabled_reason = ? WHERE id = ?",
		t.Now, t.Now, strings.ToValidUTF8(h.disable, "\uFFFD"), h.ID)
	if err != nil {
		return fmt.Errorf("disable webhook: %w", err)
	}
	ob.journal.MarkChanged(h.Public)
	if err := updateEventTypesOf(t, h.ID); err != nil {
		return err
	}

	w, err := scanWebhook(t.Row(selectWebhook+"WHERE w.id = ?", h.ID))
	if err != nil {
		return fmt.Errorf("read webhook: %w", err)
	}
	before := w.Row
	before.Active = true
	return ob.auditWebhook(t, ledger.AuditWebhookChanged, w.Row, webhookFields(before, hookSecrets{}),
		webhookFields(w.Row, hookSecrets{}))
}

// webhooksOf returns the ids of the webhooks that outcomes are about.
func webhooksOf(outcomes []outbound.Outcome) []string {
	ids := make([]string, len(outcomes))
	for i, o := range outcomes {
		ids[i] = o.Webhook
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
