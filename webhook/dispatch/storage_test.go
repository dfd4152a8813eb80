package dispatch_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// A faulty outbox fails while fails is set.
type faulty struct {
	*store.Store
	fails  atomic.Bool
	claims atomic.Int64
}

var errFull = errors.New("the disk is full")

func (f *faulty) Claim(
	ctx context.Context, webhook string, limit int, lease time.Duration,
) (outbound.Endpoint, []outbound.DueDelivery, error) {
	f.claims.Add(1)
	if f.fails.Load() {
		return outbound.Endpoint{}, nil, errFull
	}
	return f.Store.Claim(ctx, webhook, limit, lease)
}

func (f *faulty) RecordOutcomes(ctx context.Context, outcomes []outbound.Outcome, disableAfter time.Duration) error {
	if f.fails.Load() {
		return errFull
	}
	return f.Store.RecordOutcomes(ctx, outcomes, disableAfter)
}

// TestStorageFails checks that if the store fails while requests are in flight, their
// outcomes are recorded when it works again, and nothing is sent twice.
func TestStorageFails(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var served atomic.Int64
	r := receive(t, func(http.ResponseWriter, *http.Request) {
		if served.Add(1) > 7 { // seven successes allow 8 requests at once
			<-release
		}
	})

	f := newFixture(t)
	w := f.webhook(r.URL)
	ids := f.pings(w, 50)
	outbox := &faulty{Store: f.Store}
	f.start(func(c *dispatch.Config) { c.Outbox = outbox })
	eventually(t, func() bool { return r.count() == 15 })
	outbox.fails.Store(true)
	close(release)
	time.Sleep(200 * time.Millisecond)
	before := outbox.claims.Load()
	time.Sleep(200 * time.Millisecond)
	if n := outbox.claims.Load() - before; n > 1 {
		t.Errorf("%d claims while outcomes cannot be recorded, want at most 1", n)
	}

	outbox.fails.Store(false)
	for _, id := range ids {
		if d := f.attempted(w, id, 1); d.Status != outbound.DeliverySucceeded || d.Attempts != 1 {
			t.Errorf("%s after %d attempts", d.Status, d.Attempts)
		}
	}
	if n := r.count(); n != 50 {
		t.Errorf("%d requests for 50 deliveries", n)
	}
}

// A picky outbox fails to record any batch with an outcome of one delivery.
type picky struct {
	*store.Store
	refuses string
}

func (p *picky) RecordOutcomes(ctx context.Context, outcomes []outbound.Outcome, disableAfter time.Duration) error {
	if slices.ContainsFunc(outcomes, func(o outbound.Outcome) bool { return o.Delivery == p.refuses }) {
		return errors.New("refused")
	}
	return p.Store.RecordOutcomes(ctx, outcomes, disableAfter)
}

// TestOneOutcomeCannotBeRecorded checks that the other outcomes are recorded.
func TestOneOutcomeCannotBeRecorded(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	f := newFixture(t)
	w := f.webhook(r.URL)
	ids := f.pings(w, 30)
	f.start(func(c *dispatch.Config) { c.Outbox, c.Grace = &picky{f.Store, ids[3]}, time.Millisecond })
	for i, id := range ids {
		if i != 3 {
			f.attempted(w, id, 1)
		}
	}
	if d := f.delivery(w, ids[3]); d.Attempts != 0 {
		t.Errorf("the refused delivery is %+v", d)
	}
}

// TestStopWhileStorageFails checks that stopping takes bounded time.
func TestStopWhileStorageFails(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	f := newFixture(t)
	w := f.webhook(r.URL)
	id := f.ping(w).ID
	outbox := &stuck{Store: f.Store}
	stop := f.start(func(c *dispatch.Config) { c.Outbox, c.Grace = outbox, 10*time.Millisecond })
	eventually(t, func() bool { return r.count() == 1 })
	before := time.Now()
	stop()
	if took := time.Since(before); took > 3*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if d := f.delivery(w, id); d.Status != outbound.DeliveryPending {
		t.Errorf("the delivery is %s, want pending", d.Status)
	}
}

// A stuck outbox never records outcomes.
type stuck struct{ *store.Store }

func (s *stuck) RecordOutcomes(ctx context.Context, _ []outbound.Outcome, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}
