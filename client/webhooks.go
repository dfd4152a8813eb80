package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// Webhooks lists the webhooks of a repo, the oldest first.
func (c *Client) Webhooks(ctx context.Context, org, repo string) iter.Seq2[ledger.Webhook, error] {
	return list[ledger.Webhook](ctx, c, webhookPath(org, repo), parameters())
}

// Webhook returns one webhook.
func (c *Client) Webhook(ctx context.Context, org, repo, id string) (ledger.Webhook, error) {
	return get[ledger.Webhook](ctx, c, webhookPath(org, repo, id))
}

// CreateWebhook makes a webhook. Its Secret is in this answer and never again.
func (c *Client) CreateWebhook(ctx context.Context, org, repo string, n ledger.NewWebhook) (ledger.Webhook, error) {
	return post[ledger.Webhook](ctx, c, webhookPath(org, repo), n)
}

// ChangeWebhook changes what change names of a webhook and returns it as it is
// then.
func (c *Client) ChangeWebhook(
	ctx context.Context, org, repo, id string, change ledger.WebhookChange,
) (ledger.Webhook, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return ledger.Webhook{}, fmt.Errorf("writing the request as JSON: %w", err)
	}
	w, _, err := call[ledger.Webhook](
		ctx, c, request{method: http.MethodPatch, path: webhookPath(org, repo, id), body: body})
	return w, err
}

// DeleteWebhook deletes a webhook and forgets its deliveries. What waits for it
// is not sent.
func (c *Client) DeleteWebhook(ctx context.Context, org, repo, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: webhookPath(org, repo, id)})
	return err
}

// PingWebhook sends a webhook something to try it out. The delivery that it
// returns waits to be sent: Delivery tells what came of it.
func (c *Client) PingWebhook(ctx context.Context, org, repo, id string) (ledger.Delivery, error) {
	d, _, err := call[ledger.Delivery](ctx, c, request{method: http.MethodPost, path: webhookPath(org, repo, id, "ping")})
	return d, err
}

// RotateWebhook gives a webhook a new Secret, which is in this answer and never
// again. The old one signs too for the overlap, which may be 0.
func (c *Client) RotateWebhook(
	ctx context.Context, org, repo, id string, overlap ledger.Duration,
) (ledger.Webhook, error) {
	return post[ledger.Webhook](ctx, c, webhookPath(org, repo, id, "rotate"), ledger.Rotation{Overlap: &overlap})
}

// ReplayWebhook queues the events since then that a webhook wants and has
// neither acknowledged nor waiting.
func (c *Client) ReplayWebhook(ctx context.Context, org, repo, id string, since ledger.Time) (ledger.Replayed, error) {
	return post[ledger.Replayed](ctx, c, webhookPath(org, repo, id, "replay"), ledger.Replay{Since: since})
}

// A DeliveryFilter narrows a list of deliveries; its zero value lets all pass.
type DeliveryFilter struct {
	Status ledger.DeliveryStatus
	// Event is the id of an event.
	Event string
}

func (f DeliveryFilter) query() url.Values {
	return parameters("status", string(f.Status), "event", f.Event)
}

// Deliveries lists the deliveries of a webhook, the newest first.
func (c *Client) Deliveries(
	ctx context.Context, org, repo, webhook string, f DeliveryFilter,
) iter.Seq2[ledger.Delivery, error] {
	return list[ledger.Delivery](ctx, c, webhookPath(org, repo, webhook, "deliveries"), f.query())
}

// DeliveriesPage returns one page of what Deliveries lists.
func (c *Client) DeliveriesPage(
	ctx context.Context, org, repo, webhook string, f DeliveryFilter, q Query,
) (ledger.Page[ledger.Delivery], error) {
	return page[ledger.Delivery](ctx, c, webhookPath(org, repo, webhook, "deliveries"), f.query(), q)
}

// WebhooksPage returns one page of what Webhooks lists.
func (c *Client) WebhooksPage(ctx context.Context, org, repo string, q Query) (ledger.Page[ledger.Webhook], error) {
	return page[ledger.Webhook](ctx, c, webhookPath(org, repo), parameters(), q)
}

// Delivery returns one delivery with its body and its attempts.
func (c *Client) Delivery(ctx context.Context, org, repo, webhook, id string) (ledger.DeliveryRecord, error) {
	return get[ledger.DeliveryRecord](ctx, c, webhookPath(org, repo, webhook, "deliveries", id))
}

// Redeliver sends a delivery once more, whatever became of it: the same bytes
// under the same ids, with a fresh signature. It is returned as it waits.
func (c *Client) Redeliver(ctx context.Context, org, repo, webhook, id string) (ledger.Delivery, error) {
	d, _, err := call[ledger.Delivery](ctx, c, request{
		method: http.MethodPost,
		path:   webhookPath(org, repo, webhook, "deliveries", id, "redeliver"),
	})
	return d, err
}

// webhookPath returns the path of a repo's webhooks, or of something below it.
func webhookPath(org, repo string, more ...string) string {
	return pathOf(append([]string{"orgs", org, "repos", repo, "webhooks"}, more...)...)
}
