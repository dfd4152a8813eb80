package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// leastFailures is how many attempts in a row must have failed before a webhook
// is disabled for having failed too long: a clock that was set forward makes
// two of them look far apart.
const leastFailures = 5

// RecordOutcomes records what came of attempts. A webhook becomes inactive when
// all attempts have failed for as long as disableAfter, and at least five.
func (s *Store) RecordOutcomes(ctx context.Context, outcomes []ledger.Outcome, disableAfter time.Duration) error {
	rows := make([]settledRow, len(outcomes))
	for i, o := range outcomes { // before the writer waits for it
		rows[i] = settledRow{Outcome: o, request: marshal(o.Attempt.Request), response: marshal(o.Attempt.Response)}
	}
	disabled, err := writeYielding(ctx, s, func(t *tx) ([]string, error) { return t.recordOutcomes(rows, disableAfter) })
	for _, id := range disabled {
		// The reason may hold a URL, and that a secret: it is for admins to read.
		s.log.Warn("webhook disabled", "webhook", id)
	}
	return err
}

// recordOutcomes returns the webhooks that it has disabled.
func (t *tx) recordOutcomes(rows []settledRow, disableAfter time.Duration) (disabled []string, err error) {
	health := make(map[string]*hookHealth)
	for _, r := range rows {
		h, err := t.health(health, r.Webhook)
		if err != nil {
			return nil, err
		}
		if h == nil { // deleted meanwhile
			continue
		}
		if err := t.settleDelivery(h, r); err != nil {
			return nil, err
		}
		h.note(r.Outcome, disableAfter)
	}
	for _, h := range health {
		if err := t.saveHealth(h); err != nil {
			return nil, err
		}
		if h.disable != "" && h.active {
			disabled = append(disabled, h.public)
		}
	}
	return disabled, nil
}

// marshal writes what is kept of a request or a response: headers and the
// beginning of a body, which may be anything.
func marshal(v any) []byte {
	data, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return []byte("{}") // a log that cannot be written must not stop the deliveries
	}
	return data
}

// A settledRow is an outcome as the database keeps it.
type settledRow struct {
	ledger.Outcome
	request, response []byte
}

// Each of these writes one row and returns none: SQLite journals all pages that
// other statements touch once more, in a list that it goes through each time.
const (
	// A success ends a delivery, whoever holds it by now.
	settleSuccess = `
UPDATE outbox
SET attempts = attempts + 1, tries = tries + 1, leased = 0, status = 'succeeded', due_at = 0, ended_at = ?
WHERE webhook_id = ? AND delivery_id = ?`
	// A failure counts for the lease under which it was tried. Where the row has
	// fewer tries than that try was told of, somebody has asked for the delivery
	// during the try: then it begins anew, at once. Its parameters: the webhook,
	// the delivery, the lease, the tries, then the status, when it is due and
	// when it ended.
	settleFailure = `
UPDATE outbox
SET attempts = attempts + 1, leased = 0,
  tries = CASE WHEN tries < ?4 THEN tries ELSE tries + 1 END,
  status = CASE WHEN tries < ?4 THEN 'pending' ELSE ?5 END,
  due_at = CASE WHEN tries < ?4 THEN 1 ELSE ?6 END,
  ended_at = CASE WHEN tries < ?4 THEN 0 ELSE ?7 END
WHERE webhook_id = ?1 AND delivery_id = ?2 AND leased = 1 AND due_at = ?3`
	// A failure that comes too late is only counted.
	settleLate    = `UPDATE outbox SET attempts = attempts + 1 WHERE webhook_id = ? AND delivery_id = ?`
	insertAttempt = `
INSERT INTO attempts (webhook_id, delivery_id, number, at, duration_ms, status, error, request, response)
VALUES (?1, ?2, (SELECT attempts FROM outbox WHERE webhook_id = ?1 AND delivery_id = ?2), ?3, ?4, ?5, ?6, ?7, ?8)`
)

// settleDelivery records one attempt and what it makes of its delivery.
func (t *tx) settleDelivery(h *hookHealth, r settledRow) error {
	known, err := t.settleStatus(h, r.Outcome)
	if err != nil {
		return fmt.Errorf("update delivery: %w", err)
	}
	if !known {
		return nil // pruned meanwhile
	}
	a := r.Attempt
	_, err = t.Exec(insertAttempt, h.id, r.Delivery, a.At, a.DurationMS, a.Response.Status, a.Error, r.request, r.response)
	if err != nil {
		return fmt.Errorf("insert attempt: %w", err)
	}
	return nil
}

// settleStatus makes of a delivery what the outcome says, and reports whether
// there is one.
func (t *tx) settleStatus(h *hookHealth, o ledger.Outcome) (known bool, err error) {
	if o.Status == ledger.DeliverySucceeded {
		return t.changes(settleSuccess, t.now, h.id, o.Delivery)
	}
	status, due, ended := o.Status, o.RetryAt, ledger.Time(0)
	if o.Disable != "" && o.Attempt.Request.URL != h.url {
		status, due = ledger.DeliveryPending, dueAtOnce // the webhook's new URL has not refused it
	}
	if status != ledger.DeliveryPending {
		due, ended = 0, t.now
	}
	held, err := t.changes(settleFailure, h.id, o.Delivery, o.Lease, o.Tries, status, due, ended)
	if err != nil || held {
		return held, err
	}
	return t.changes(settleLate, h.id, o.Delivery)
}

// changes runs a statement and reports whether it changed any row.
func (t *tx) changes(query string, args ...any) (bool, error) {
	n, err := t.Exec(query, args...)
	return n > 0, err
}

// hookHealth is how a webhook has fared, while outcomes are being recorded.
type hookHealth struct {
	hookKey
	url          string
	active       bool
	changedAt    ledger.Time
	failingSince ledger.Time
	failures     int
	disable      string
	changed      bool
}

// health returns the record of a webhook, or nil if there is none any more.
func (t *tx) health(known map[string]*hookHealth, webhook string) (*hookHealth, error) {
	if h, ok := known[webhook]; ok {
		return h, nil
	}
	h := &hookHealth{hookKey: hookKey{public: webhook}}
	err := t.Row(`
SELECT id, url, active, changed_at, failing_since, failures FROM webhooks
WHERE webhook_id = ? AND deleted_at = 0`, webhook).
		Scan(&h.id, &h.url, &h.active, &h.changedAt, &h.failingSince, &h.failures)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read webhook: %w", err)
	}
	known[webhook] = h
	return h, nil
}

// note takes an outcome into account. What another URL answered, or this one
// before the webhook was made active again, says nothing about it as it is now.
func (h *hookHealth) note(o ledger.Outcome, disableAfter time.Duration) {
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
	case disableAfter > 0 && failing >= disableAfter && h.failures >= leastFailures:
		h.disable = fmt.Sprintf("all attempts since %s failed; last error: %s", h.failingSince, o.Attempt.Error)
	}
}

func (t *tx) saveHealth(h *hookHealth) error {
	if h.changed {
		_, err := t.Exec("UPDATE webhooks SET failing_since = ?, failures = ? WHERE id = ?", h.failingSince, h.failures, h.id)
		if err != nil {
			return fmt.Errorf("update webhook: %w", err)
		}
	}
	if h.disable == "" || !h.active {
		return nil
	}
	_, err := t.Exec("UPDATE webhooks SET active = 0, changed_at = ?, disabled_at = ?, disabled_reason = ? WHERE id = ?",
		t.now, t.now, strings.ToValidUTF8(h.disable, "\uFFFD"), h.id)
	if err != nil {
		return fmt.Errorf("disable webhook: %w", err)
	}
	t.change(h.public)
	return t.repoWebhooksChanged(h.id)
}
