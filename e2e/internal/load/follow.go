package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// A Follower reads the live stream, through restarts of the server.
type Follower struct {
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	ids    []string
	err    error
}

// Follow follows the org's events from the first one on, until Close is called.
func (l *Load) Follow(ctx context.Context, url string) (*Follower, error) {
	c, err := client.New(url, client.Options{Token: l.Token})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &Follower{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for event, err := range c.Follow(ctx, "acme", client.FollowOptions{
			After: client.Earliest, Types: ledger.EventTypesFor(ledger.Read),
		}) {
			f.mu.Lock()
			if err != nil {
				f.err = err
			} else {
				f.ids = append(f.ids, event.ID)
			}
			f.mu.Unlock()
		}
	}()
	return f, nil
}

// Close ends the follower.
func (f *Follower) Close() {
	f.cancel()
	<-f.done
}

func (f *Follower) received() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[:len(f.ids):len(f.ids)], f.err
}

// Delivered waits until everything that the ledger recorded has arrived: each event once
// and in order at the follower, and each delivery at its webhook. The load must have
// ended. It returns the number of events.
func (l *Load) Delivered(ctx context.Context, url string, f *Follower, timeout time.Duration) (events int, err error) {
	c, err := client.New(url, client.Options{Token: l.Token})
	if err != nil {
		return 0, err
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(200 * time.Millisecond) {
		if events, err = l.delivered(ctx, c, f); err == nil || time.Now().After(deadline) {
			return events, err
		}
	}
}

func (l *Load) delivered(ctx context.Context, c *client.Client, f *Follower) (events int, err error) {
	history, err := historyOf(ctx, c)
	if err != nil {
		return 0, err
	}
	got, err := f.received()
	if err != nil {
		return 0, fmt.Errorf("follow: %w", err)
	}
	for i, id := range history {
		if i >= len(got) {
			return 0, fmt.Errorf("the stream sent %d events of %d", len(got), len(history))
		}
		if got[i] != id {
			return 0, fmt.Errorf("event %d on the stream is %s, want %s", i, got[i], id)
		}
	}
	if len(got) > len(history) {
		return 0, fmt.Errorf("the stream sent %d events, the history has %d", len(got), len(history))
	}

	for _, w := range l.receiver.webhooks() {
		for d, err := range c.Deliveries(ctx, w.Org, w.Repo, w.ID, client.DeliveryFilter{}) {
			if err != nil {
				return 0, err
			}
			if d.Status != outbound.DeliverySucceeded || !l.receiver.has(w, d.Event) {
				return 0, fmt.Errorf("delivery %s of event %s is %s; has it arrived: %v",
					d.ID, d.Event, d.Status, l.receiver.has(w, d.Event))
			}
		}
	}
	return len(history), nil
}

// historyOf lists the ids of all events.
func historyOf(ctx context.Context, c *client.Client) (ids []string, err error) {
	for body, err := range c.Events(ctx, "acme", client.EventFilter{Types: ledger.EventTypesFor(ledger.Read)}) {
		if err != nil {
			return nil, err
		}
		var event struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(body, &event); err != nil {
			return nil, err
		}
		ids = append(ids, event.ID)
	}
	return ids, nil
}
