package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/receiver"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// witnessWait is how long the demo waits for events to reach its witnesses.
const witnessWait = 30 * time.Second

// witnesses are who hears of the demo's events: a reader of the live stream,
// and a receiver that the repo's webhook posts to.
type witnesses struct {
	reception *receiver.Server
	cancel    context.CancelFunc // of the reading
	reading   sync.WaitGroup

	mu      sync.Mutex
	heard   chan struct{} // signals a change of what follows
	stream  hearing
	webhook hearing
	failed  error
}

// A hearing is what reached one of the witnesses.
type hearing struct {
	events map[string]bool // all, by their id
	lately []heardEvent    // those not yet told of
}

type heardEvent struct{ id, label string }

func newWitnesses() *witnesses {
	return &witnesses{
		cancel:  func() {},
		heard:   make(chan struct{}, 1),
		stream:  hearing{events: make(map[string]bool)},
		webhook: hearing{events: make(map[string]bool)},
	}
}

// subscribe makes a webhook of the repo that posts to a receiver in this
// program.
func (w *witnesses) subscribe(ctx context.Context, admin *client.Client, org, repo string) (ledger.Webhook, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ledger.Webhook{}, err
	}
	hook, err := admin.CreateWebhook(
		ctx, org, repo, ledger.NewWebhook{URL: "http://" + listener.Addr().String() + "/ledger", Description: "demo"})
	if err != nil {
		listener.Close()
		return hook, err
	}
	w.reception = receiver.Serve(listener, &receiver.Handler{Secret: hook.Secret, Took: w.delivered},
		slog.New(slog.DiscardHandler))
	return hook, nil
}

// follow reads the org's live stream from its beginning on.
func (w *witnesses) follow(ctx context.Context, reader *client.Client, org string) {
	ctx, w.cancel = context.WithCancel(ctx)
	w.reading.Go(func() {
		for e, err := range reader.Follow(ctx, org, client.FollowOptions{After: client.Earliest}) {
			w.hear(&w.stream, e, err)
		}
	})
}

func (w *witnesses) delivered(t receiver.Receipt) {
	e, err := t.Event()
	if err == nil && !t.Verified {
		err = fmt.Errorf("a delivery does not verify: %s", t.Problem)
	}
	w.hear(&w.webhook, e, err)
}

func (w *witnesses) hear(h *hearing, e client.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed = err
	} else if !h.events[e.ID] { // a webhook may get one twice
		h.events[e.ID] = true
		h.lately = append(h.lately, heardEvent{e.ID, label(e)})
	}
	select {
	case w.heard <- struct{}{}:
	default:
	}
}

// label tells of an event in two words.
func label(e client.Event) string {
	if e.State != nil {
		return fmt.Sprintf("%s %s", e.Type, e.State.To)
	}
	return string(e.Type)
}

// await waits until so many events have come both ways.
func (w *witnesses) await(ctx context.Context, n int) error {
	timeout := time.After(witnessWait)
	for {
		stream, webhook, err := w.counts()
		if err != nil || stream >= n && webhook >= n {
			return err
		}
		select {
		case <-w.heard:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return fmt.Errorf("of %s, %d came on the stream and %d to the webhook within %v", terminal.Plural(int64(n), "event"),
				stream, webhook, witnessWait)
		}
	}
}

func (w *witnesses) counts() (stream, webhook int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.stream.events), len(w.webhook.events), w.failed
}

// news returns what has come both ways since it was last called, in the order
// of the events: a webhook's deliveries have no order of their own.
func (w *witnesses) news() (stream, webhook []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stream.news(), w.webhook.news()
}

func (h *hearing) news() []string {
	slices.SortFunc(h.lately, func(a, b heardEvent) int { return strings.Compare(a.id, b.id) })
	var labels []string
	for _, e := range h.lately {
		labels = append(labels, e.label)
	}
	h.lately = nil
	return labels
}

// leave ends the reading of the stream.
func (w *witnesses) leave() {
	w.cancel()
	w.reading.Wait()
}

// close ends the receiving.
func (w *witnesses) close() error {
	if w.reception == nil {
		return nil
	}
	return w.reception.Stop()
}
