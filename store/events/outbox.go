package events

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Queued returns a channel that receives a value when TakeQueued has new webhooks to
// return.
func (j *Journal) Queued() <-chan struct{} { return j.queued.wake }

// TakeQueued returns the ids of the webhooks for which this process has queued
// deliveries since the last call, and of the webhooks that it has changed or deleted.
// Deliveries claimed from a changed webhook may be out of date.
func (j *Journal) TakeQueued() (queued, changed []string) {
	j.queued.mu.Lock()
	defer j.queued.mu.Unlock()
	queued = slices.Collect(maps.Keys(j.queued.webhooks))
	changed = slices.Collect(maps.Keys(j.queued.changed))
	clear(j.queued.webhooks)
	clear(j.queued.changed)
	return queued, changed
}

// Queue reports a webhook to TakeQueued as having new deliveries, if this write
// succeeds.
func (j *Journal) Queue(webhook string) { j.left.queued = append(j.left.queued, webhook) }

// MarkChanged reports a webhook to TakeQueued as changed, if this write succeeds.
func (j *Journal) MarkChanged(webhook string) {
	j.left.changed = append(j.left.changed, webhook)
}

// ScanHook scans a row of SelectOrgHooks.
func ScanHook(row txn.Scanner) (Hook, error) {
	var h Hook
	err := row.Scan(&h.ID, &h.Public, &h.events)
	return h, err
}

// enqueue buffers the deliveries of an event to the repo's webhooks that receive events
// of its type.
func (j *Journal) enqueue(t *txn.Tx, r txn.Repo, kind ledger.EventType, event int64) error {
	bit := txn.TypeBit(kind)
	if r.WebhookEvents&bit == 0 {
		return nil
	}
	hooks, err := j.hooksOf(t, r.ID)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		if h.events&bit == 0 {
			continue
		}
		if err := j.deliver(t, r.OrgID, h, event); err != nil {
			return err
		}
	}
	return nil
}

// MaxOrgHooks limits the active webhooks of an org that receive events of the org: each
// such event is queued for all of them.
const MaxOrgHooks = 200

// enqueueToOrg buffers the deliveries of an event of an org to the webhooks of its repos
// that receive events of its type.
func (j *Journal) enqueueToOrg(t *txn.Tx, orgID int64, kind ledger.EventType, event int64) error {
	hooks, err := txn.All(t.Reader, ScanHook, SelectOrgHooks, orgID, txn.TypeBit(kind), txn.TypeBit(kind), MaxOrgHooks)
	if err != nil {
		return fmt.Errorf("read webhooks: %w", err)
	}
	for _, h := range hooks {
		if err := j.deliver(t, orgID, h, event); err != nil {
			return err
		}
	}
	return nil
}

// SelectOrgHooks selects the active webhooks of an org's repos that receive events of some
// types. The types are given twice.
const SelectOrgHooks = `
SELECT w.id, w.webhook_id, w.events FROM repos r /*+ordered*/ JOIN webhooks w ON w.repo_id = r.id
WHERE r.org_id = ? AND r.webhook_events & ? <> 0 AND w.deleted_at = 0 AND w.active = 1 AND w.events & ? <> 0
LIMIT ?`

// deliver buffers the delivery of an event to a webhook.
func (j *Journal) deliver(t *txn.Tx, orgID int64, h Hook, event int64) error {
	deliveryID, err := t.NewID(orgID, txn.DeliveryPrefix)
	if err != nil {
		return err
	}
	j.rows.outbox.Add(h.ID, deliveryID, event, string(outbound.DeliveryPending), int64(t.Now), int64(t.Now))
	j.Queue(h.Public)
	return nil
}

// hooksOf returns the active webhooks of a repo. It reads them once per write.
func (j *Journal) hooksOf(t *txn.Tx, repoID int64) ([]Hook, error) {
	if hooks, ok := j.hooks[repoID]; ok {
		return hooks, nil
	}
	hooks, err := txn.All(t.Reader, ScanHook, `
SELECT id, webhook_id, events FROM webhooks
WHERE repo_id = ? AND deleted_at = 0 AND active = 1`, repoID)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	if j.hooks == nil {
		j.hooks = make(map[int64][]Hook)
	}
	j.hooks[repoID] = hooks
	return hooks, nil
}
