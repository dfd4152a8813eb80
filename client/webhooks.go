package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// Webhooks lists the webhooks of a repo, oldest first.
func (c *Client) Webhooks(ctx context.Context, org, repo string) iter.Seq2[outbound.Webhook, error] {
	return list[outbound.Webhook](ctx, c, webhookPath(org, repo), parameters())
}

// Webhook returns one webhook.
func (c *Client) Webhook(ctx context.Context, org, repo, id string) (outbound.Webhook, error) {
	return get[outbound.Webhook](ctx, c, webhookPath(org, repo, id))
}

// CreateWebhook creates a webhook. The result contains its Secret, which cannot be
// read again.
func (c *Client) CreateWebhook(ctx context.Context, org, repo string, n outbound.NewWebhook) (outbound.Webhook, error) {
	return post[outbound.Webhook](ctx, c, webhookPath(org, repo), n)
}

// ChangeWebhook updates the fields of a webhook that are set in change, and returns
// the updated webhook.
func (c *Client) ChangeWebhook(
	ctx context.Context, org, repo, id string, change outbound.WebhookChange,
) (outbound.Webhook, error) {
	return patch[outbound.Webhook](ctx, c, webhookPath(org, repo, id), change)
}

// DeleteWebhook deletes a webhook and its delivery log. Pending deliveries are
// cancelled.
func (c *Client) DeleteWebhook(ctx context.Context, org, repo, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: webhookPath(org, repo, id)})
	return err
}

// PingWebhook queues a test delivery and returns it. Call Delivery with its id to
// get the outcome.
func (c *Client) PingWebhook(ctx context.Context, org, repo, id string) (outbound.Delivery, error) {
	d, _, err := call[outbound.Delivery](ctx, c, request{
		method: http.MethodPost, path: webhookPath(org, repo, id, "ping"),
	})
	return d, err
}

// RotateWebhook replaces the signing secret of a webhook. The result contains the new
// Secret, which cannot be read again. During the overlap, which may be 0, deliveries
// are also signed with the old one.
func (c *Client) RotateWebhook(
	ctx context.Context, org, repo, id string, overlap ledger.Duration,
) (outbound.Webhook, error) {
	return post[outbound.Webhook](ctx, c, webhookPath(org, repo, id, "rotate"), outbound.Rotation{Overlap: &overlap})
}

// ReplayWebhook queues the events since a time, of the webhook's types, that are
// neither delivered nor pending.
func (c *Client) ReplayWebhook(
	ctx context.Context, org, repo, id string, since ledger.Time,
) (outbound.Replayed, error) {
	return post[outbound.Replayed](ctx, c, webhookPath(org, repo, id, "replay"), outbound.Replay{Since: since})
}

// A DeliveryFilter filters a list of deliveries. The zero value matches all.
type DeliveryFilter struct {
	Status outbound.DeliveryStatus
	// Event is the id of an event.
	Event string
}

func (f DeliveryFilter) query() url.Values {
	return parameters("status", string(f.Status), "event", f.Event)
}

// Deliveries lists the deliveries of a webhook, newest first.
func (c *Client) Deliveries(
	ctx context.Context, org, repo, webhook string, f DeliveryFilter,
) iter.Seq2[outbound.Delivery, error] {
	return list[outbound.Delivery](ctx, c, webhookPath(org, repo, webhook, "deliveries"), f.query())
}

// DeliveriesPage returns one page of the list of Deliveries.
func (c *Client) DeliveriesPage(
	ctx context.Context, org, repo, webhook string, f DeliveryFilter, q Query,
) (ledger.Page[outbound.Delivery], error) {
	return page[outbound.Delivery](ctx, c, webhookPath(org, repo, webhook, "deliveries"), f.query(), q)
}

// Delivery returns one delivery with its body and its attempts.
func (c *Client) Delivery(ctx context.Context, org, repo, webhook, id string) (outbound.DeliveryRecord, error) {
	return get[outbound.DeliveryRecord](ctx, c, webhookPath(org, repo, webhook, "deliveries", id))
}

// Redeliver queues a delivery again, whatever its status, and returns it. The body
// and the ids stay the same; the signature is new.
func (c *Client) Redeliver(ctx context.Context, org, repo, webhook, id string) (outbound.Delivery, error) {
	d, _, err := call[outbound.Delivery](ctx, c, request{
		method: http.MethodPost,
		path:   webhookPath(org, repo, webhook, "deliveries", id, "redeliver"),
	})
	return d, err
}

// webhookPath returns the path of a repo's webhooks, or of a resource below it.
func webhookPath(org, repo string, more ...string) string {
	return pathOf(append([]string{"orgs", org, "repos", repo, "webhooks"}, more...)...)
}
