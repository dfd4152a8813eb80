package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/events"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// deliveryTimeout limits how long the story waits for deliveries, which receivers on this
// machine answer at once.
const deliveryTimeout = 30 * time.Second

// subscribe creates a webhook whose receiver responds with a status.
func (st *stage) subscribe(ctx context.Context, repo, path, description string, status int) (*hook, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hook{status: status}
	h.Webhook, err = st.admin.CreateWebhook(ctx, st.org, repo,
		outbound.NewWebhook{URL: "http://" + listener.Addr().String() + path, Description: description})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}

	received := func(events.Receipt) {}
	if status == http.StatusNoContent {
		received = st.observers.delivered
	}
	h.server = events.Serve(listener,
		&events.Receiver{Secret: h.Secret, Status: status, Received: received, Now: st.now}, slog.New(slog.DiscardHandler))
	st.hooks = append(st.hooks, h)
	return h, nil
}

// awaitDeliveries waits until no delivery is due at a receiver that works. So the clock never
// moves while one is on its way.
func (st *stage) awaitDeliveries(ctx context.Context) error {
	deadline := time.Now().Add(deliveryTimeout)
	for _, h := range st.hooks {
		for h.status == http.StatusNoContent {
			pending, err := client.Collect(
				st.admin.Deliveries(ctx, h.Org, h.Repo, h.ID, client.DeliveryFilter{Status: outbound.DeliveryPending}), 1)
			if err != nil {
				return err
			}
			if len(pending) == 0 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("a webhook's delivery did not arrive within %v", deliveryTimeout)
			}
			if err := sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// stopReceivers stops the receivers of all webhooks.
func (st *stage) stopReceivers() error {
	var errs []error
	for _, h := range st.hooks {
		errs = append(errs, h.server.Stop())
	}
	return errors.Join(errs...)
}

// sleep waits for a time, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
