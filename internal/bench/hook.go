package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// A Webhook is one run of bench webhook.
type Webhook struct {
	Core
	Events, Webhooks, Single, Slow int
}

// orgName and repoName name the repo whose webhooks are measured.
const orgName, repoName = "bench", "repo"

// client returns a client of the server that runs now.
func (b *Webhook) client() (*client.Client, error) {
	return client.New("http://"+b.server.address, client.Options{Token: b.token})
}

// A hook is a webhook and its receiver.
type hook struct {
	*catcher
	id string
}

// addHooks makes webhooks that get attestations.
func (b *Webhook) addHooks(ctx context.Context, n int, silent bool) ([]hook, error) {
	c, err := b.client()
	if err != nil {
		return nil, err
	}
	var list []hook
	for range n {
		caught, err := newCatcher(silent)
		if err != nil {
			return nil, err
		}
		w, err := c.CreateWebhook(
			ctx, orgName, repoName, ledger.NewWebhook{URL: caught.url(), Events: []ledger.EventType{ledger.EventAttestation}})
		if err != nil {
			return nil, fmt.Errorf("make a webhook: %w", err)
		}
		list = append(list, hook{caught, w.ID})
	}
	return list, nil
}

func catchers(hooks []hook) []*catcher {
	list := make([]*catcher, len(hooks))
	for i, t := range hooks {
		list[i] = t.catcher
	}
	return list
}

// setActive pauses webhooks or lets them go on.
func (b *Webhook) setActive(ctx context.Context, hooks []hook, active bool) error {
	c, err := b.client()
	if err != nil {
		return err
	}
	for _, t := range hooks {
		if _, err := c.ChangeWebhook(ctx, orgName, repoName, t.id, ledger.WebhookChange{Active: &active}); err != nil {
			return fmt.Errorf("change a webhook: %w", err)
		}
	}
	return nil
}

// finish waits until each hook has so many deliveries and the ledger knows
// that it has. It returns when the last one arrived.
func (b *Webhook) finish(ctx context.Context, hooks []hook, each int) (time.Time, error) {
	end, err := caught(ctx, catchers(hooks), each)
	if err != nil {
		return end, err
	}
	c, err := b.client()
	if err != nil {
		return end, err
	}
	for _, t := range hooks {
		for pending := true; pending; {
			pending = false
			for _, err := range c.Deliveries(
				ctx, orgName, repoName, t.id, client.DeliveryFilter{Status: ledger.DeliveryPending}) {
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

// close ends webhooks and their receivers.
func (b *Webhook) close(ctx context.Context, hooks []hook) error {
	err := b.setActive(ctx, hooks, false)
	for _, t := range hooks {
		t.catcher.close()
	}
	return err
}
