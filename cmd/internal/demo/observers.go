package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/events"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// observerTimeout limits how long the demo waits for events to reach the observers.
const observerTimeout = 30 * time.Second

// observers receive events: a reader of the live stream, and the receiver of a webhook.
type observers struct {
	cancel  context.CancelFunc // stops the reader
	reading sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // signals a change of the fields below
	stream  inbox
	webhook inbox
	err     error
}

// An inbox holds the events that one observer received.
type inbox struct {
	events map[string]bool // all, by id
	unread []receivedEvent // those that take has not returned yet
}

type receivedEvent struct{ id, label string }

func newObservers() *observers {
	return &observers{
		cancel:  func() {},
		changed: make(chan struct{}, 1),
		stream:  inbox{events: make(map[string]bool)},
		webhook: inbox{events: make(map[string]bool)},
	}
}

// A hook is a webhook with its receiver in this process.
type hook struct {
	outbound.Webhook
	status int // of the receiver's responses
	server *events.Server
}

// follow reads the live stream of a repo after the event with this id.
func (o *observers) follow(ctx context.Context, reader *client.Client, org, repo, after string) {
	ctx, o.cancel = context.WithCancel(ctx)
	o.reading.Go(func() {
		for e, err := range reader.Follow(ctx, org, client.FollowOptions{Repo: repo, After: after}) {
			o.receive(&o.stream, e, err)
		}
	})
}

func (o *observers) delivered(t events.Receipt) {
	e, err := t.Event()
	if err == nil && !t.Verified {
		err = fmt.Errorf("webhook delivery does not verify: %s", t.Problem)
	}
	o.receive(&o.webhook, e, err)
}

func (o *observers) receive(in *inbox, e client.Event, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.err = err
	} else if !in.events[e.ID] { // webhooks may deliver an event twice
		in.events[e.ID] = true
		in.unread = append(in.unread, receivedEvent{e.ID, label(e)})
	}
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// label describes an event in one or two words.
func label(e client.Event) string {
	if e.State != nil {
		return fmt.Sprintf("%s %s", e.Type, e.State.To)
	}
	return string(e.Type)
}

// await waits until each observer has received n events that take has not returned.
func (o *observers) await(ctx context.Context, n int) error {
	timeout := time.After(observerTimeout)
	for {
		stream, webhook, err := o.counts()
		if err != nil || stream >= n && webhook >= n {
			return err
		}
		select {
		case <-o.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return fmt.Errorf("of %s, %d reached the stream and %d the webhook within %v", terminal.Plural(int64(n), "event"),
				stream, webhook, observerTimeout)
		}
	}
}

// counts returns how many events of each observer are unread, and the latest error.
func (o *observers) counts() (stream, webhook int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.stream.unread), len(o.webhook.unread), o.err
}

// take returns the labels of the events received since the last call, in the order
// of the events. Webhooks may deliver them in another order.
func (o *observers) take() (stream, webhook []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stream.take(), o.webhook.take()
}

func (in *inbox) take() []string {
	slices.SortFunc(in.unread, func(a, b receivedEvent) int { return strings.Compare(a.id, b.id) })
	var labels []string
	for _, e := range in.unread {
		labels = append(labels, e.label)
	}
	in.unread = nil
	return labels
}

// unfollow stops reading the stream.
func (o *observers) unfollow() {
	o.cancel()
	o.reading.Wait()
}
