package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// Check returns an error if an option is invalid.
func (b *Webhook) Check() error {
	if b.Events < 1 || b.Webhooks < 2 || b.Webhooks > maxWebhooks || b.Single < 1 || b.Slow < 1 || b.Connections < 1 ||
		b.ReadingTime < time.Second {
		return fmt.Errorf("--events, --single, --slowdown and --connections must be at least 1, --webhooks 2 to %d, "+
			"--seconds at least 1s", maxWebhooks)
	}
	return nil
}

// Measure runs the benchmark.
func (b *Webhook) Measure(ctx context.Context, env Env) error {
	b.Env, b.Commits = env, 50
	b.serveFlags = []string{"--webhooks-allowed-networks", "127.0.0.0/8"}
	return b.withTempDir(ctx, func() (err error) {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		if b.token, err = b.ledgerd(ctx, "token", "create", "--org", "bench", "--name", "bench-webhook", "--scope",
			"admin"); err != nil {
			return err
		}
		if err := b.withServer(ctx, b.warmUp, b.idle, b.healthy, b.slowdown, b.drainOne, b.drainAll); err != nil {
			return err
		}
		return b.printFigures()
	})
}

// maxWebhooks leaves room below the limit of a repo for the webhooks of the other
// workloads.
const maxWebhooks = 30

func (b *Webhook) drainOne(ctx context.Context) error { return b.drain(ctx, 1) }

func (b *Webhook) drainAll(ctx context.Context) error { return b.drain(ctx, b.Webhooks) }

// drain measures the delivery of events that were queued while no server ran.
func (b *Webhook) drain(ctx context.Context, webhooks int) error {
	hooks, err := b.addHooks(ctx, webhooks, false)
	if err != nil {
		return err
	}
	if err := b.setActive(ctx, hooks, false); err != nil {
		return err
	}

	time.Sleep(10 * time.Millisecond) // earlier events are not replayed
	since := ledger.TimeOf(time.Now())
	if _, err := b.record(b.Events); err != nil {
		return err
	}
	if err := b.setActive(ctx, hooks, true); err != nil {
		return err
	}
	if err := b.server.stop(); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	for _, h := range hooks {
		if err := b.replay(ctx, h.id, since); err != nil {
			return err
		}
	}

	start := time.Now()
	if err := b.startServer(ctx); err != nil {
		return err
	}
	end, err := b.finish(ctx, hooks, b.Events)
	if err != nil {
		return err
	}

	workload := fmt.Sprintf("%d queued events to one webhook", b.Events)
	if webhooks > 1 {
		workload = fmt.Sprintf("%d queued events to each of %d webhooks, in total", b.Events, webhooks)
	}
	b.figure(figure{Workload: workload, Rate: float64(b.Events*webhooks) / end.Sub(start).Seconds()})
	return b.close(ctx, hooks)
}

// replay queues the events that a webhook missed, and checks that there are b.Events.
func (b *Webhook) replay(ctx context.Context, webhook string, since ledger.Time) error {
	text, err := b.ledgerd(ctx, "webhook", "replay", orgName+"/"+repoName, webhook, "--since", since.String(), "-o",
		"json")
	if err != nil {
		return err
	}
	var replayed outbound.Replayed
	if err := json.Unmarshal([]byte(text), &replayed); err != nil {
		return fmt.Errorf("read the output of webhook replay: %w", err)
	}
	if replayed.Queued != int64(b.Events) {
		return fmt.Errorf("%d of %d events were queued", replayed.Queued, b.Events)
	}
	return nil
}
