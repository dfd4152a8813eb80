package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// A Webhook is a run of bench webhook.
type Webhook struct {
	Core
	Events, Webhooks, Single, Slow int
}

// client returns a client of the current server.
func (b *Core) client() (*client.Client, error) {
	return client.New("http://"+b.server.address, client.Options{Token: b.token})
}

// A hook is a webhook and its receiver.
type hook struct {
	*receiver
	id string
}

// addHooks creates n webhooks that get attestation events.
func (b *Webhook) addHooks(ctx context.Context, n int, silent bool) ([]hook, error) {
	c, err := b.client()
	if err != nil {
		return nil, err
	}
	var list []hook
	for range n {
		receiver, err := newReceiver(silent)
		if err != nil {
			return nil, err
		}
		w, err := c.CreateWebhook(ctx, orgName, repoName,
			outbound.NewWebhook{URL: receiver.url(), Events: []ledger.EventType{ledger.EventAttestation}})
		if err != nil {
			return nil, fmt.Errorf("create a webhook: %w", err)
		}
		list = append(list, hook{receiver, w.ID})
	}
	return list, nil
}

func receivers(hooks []hook) []*receiver {
	list := make([]*receiver, len(hooks))
	for i, h := range hooks {
		list[i] = h.receiver
	}
	return list
}

// setActive activates or deactivates webhooks.
func (b *Webhook) setActive(ctx context.Context, hooks []hook, active bool) error {
	c, err := b.client()
	if err != nil {
		return err
	}
	for _, h := range hooks {
		if _, err := c.ChangeWebhook(ctx, orgName, repoName, h.id, outbound.WebhookChange{Active: &active}); err != nil {
			return fmt.Errorf("change a webhook: %w", err)
		}
	}
	return nil
}

// finish waits until each hook has the given number of deliveries and the ledger has
// none pending. It returns when the last one arrived.
func (b *Webhook) finish(ctx context.Context, hooks []hook, each int) (time.Time, error) {
	end, err := waitForDeliveries(ctx, receivers(hooks), each)
	if err != nil {
		return end, err
	}
	c, err := b.client()
	if err != nil {
		return end, err
	}

	for _, h := range hooks {
		for pending := true; pending; {
			pending = false
			for _, err := range c.Deliveries(
				ctx, orgName, repoName, h.id, client.DeliveryFilter{Status: outbound.DeliveryPending}) {
				if err != nil {
					return end, fmt.Errorf("list deliveries: %w", err)
				}
				pending = true
				time.Sleep(20 * time.Millisecond)
				break
			}
		}
	}
	return end, nil
}

// close deactivates webhooks and closes their receivers.
func (b *Webhook) close(ctx context.Context, hooks []hook) error {
	err := b.setActive(ctx, hooks, false)
	for _, h := range hooks {
		h.receiver.close()
	}
	return err
}
