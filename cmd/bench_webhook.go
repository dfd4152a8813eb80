package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// A webhookBench is one run of bench webhook.
type webhookBench struct {
	*benchRun
	events, webhooks, single, slow int
}

func newBenchWebhook(p *program) *cobra.Command {
	b := &webhookBench{benchRun: &benchRun{p: p, commits: 50}}
	command := &cobra.Command{
		Use:   "webhook",
		Short: "Measure webhooks on this machine",
		Long: `Bench webhook starts a server of its own on a temporary database and records
attestations through its HTTP API, whose events it posts to receivers on
loopback that answer at once. Server, load and receivers share the machine's
cores.

For the drains, events are queued while no server runs; the time counts from the
start of the server to the last arrival. Every figure stands for deliveries of
which none was lost.`,
		Example: `  ledgerd bench webhook
  ledgerd bench webhook --events 2000 -o json`,
		Args: cobra.NoArgs,
		RunE: interruptible(b.run),
	}
	flags := command.Flags()
	flags.IntVar(&b.events, "events", 10_000, "how many events to queue for each webhook")
	flags.IntVar(&b.webhooks, "webhooks", 20, "how many webhooks drain at once")
	flags.IntVar(&b.single, "single", 500, "how many attestations to record one at a time")
	flags.IntVar(&b.slow, "slowdown", 10_000, "how many attestations to record each time to see what webhooks cost")
	flags.DurationVar(&b.seconds, "seconds", 20*time.Second, "how long a healthy webhook is watched, alone and beside one that hangs")
	flags.IntVar(&b.conns, "connections", 64, "connections of the writing load")
	flags.StringVar(&b.dir, "dir", "", "folder for the temporary database (default: the system's)")
	return command
}

func (b *webhookBench) run(ctx context.Context) error {
	if b.events < 1 || b.webhooks < 2 || b.webhooks > maxBenchWebhooks || b.single < 1 || b.slow < 1 || b.conns < 1 || b.seconds < time.Second {
		return usagef("--events, --single, --slowdown and --connections must be at least 1, --webhooks 2 to %d, --seconds at least 1s", maxBenchWebhooks)
	}
	b.serveFlags = []string{"--webhooks-allowed-networks", "127.0.0.0/8"}
	return b.within(func() (err error) {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		if b.token, err = b.ledgerd(ctx, "token", "create", "--org", "bench", "--name", "bench-webhook", "--scope", "admin"); err != nil {
			return err
		}
		if err := b.serving(ctx, b.warmUp, b.idle, b.beside, b.slowdown, b.drainOne, b.drainAll); err != nil {
			return err
		}
		return b.p.print(b.figures, func() {})
	})
}

// maxBenchWebhooks is within what a repo may have, beside those of the other
// workloads.
const maxBenchWebhooks = 30

// repo of the benchmark, whose webhooks are measured.
const benchOrg, benchRepo = "bench", "repo"

// client returns a client of the server that runs now.
func (b *webhookBench) client() (*client.Client, error) {
	return client.New("http://"+b.server.address, client.Options{Token: b.token})
}

// A hook is a webhook and its receiver.
type hook struct {
	*catcher
	id string
}

// addHooks makes webhooks that get attestations.
func (b *webhookBench) addHooks(ctx context.Context, n int, silent bool) ([]hook, error) {
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
		w, err := c.CreateWebhook(ctx, benchOrg, benchRepo, ledger.NewWebhook{URL: caught.url(), Events: []ledger.EventType{ledger.EventAttestation}})
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
func (b *webhookBench) setActive(ctx context.Context, hooks []hook, active bool) error {
	c, err := b.client()
	if err != nil {
		return err
	}
	for _, t := range hooks {
		if _, err := c.ChangeWebhook(ctx, benchOrg, benchRepo, t.id, ledger.WebhookChange{Active: &active}); err != nil {
			return fmt.Errorf("change a webhook: %w", err)
		}
	}
	return nil
}

// finish waits until each hook has so many deliveries and the ledger knows
// that it has. It returns when the last one arrived.
func (b *webhookBench) finish(ctx context.Context, hooks []hook, each int) (time.Time, error) {
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
			for _, err := range c.Deliveries(ctx, benchOrg, benchRepo, t.id, client.DeliveryFilter{Status: ledger.DeliveryPending}) {
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

func (b *webhookBench) drainOne(ctx context.Context) error { return b.drain(ctx, 1) }

func (b *webhookBench) drainAll(ctx context.Context) error { return b.drain(ctx, b.webhooks) }

// drain measures deliveries of what was queued while no server ran.
func (b *webhookBench) drain(ctx context.Context, webhooks int) error {
	hooks, err := b.addHooks(ctx, webhooks, false)
	if err != nil {
		return err
	}
	if err := b.setActive(ctx, hooks, false); err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond) // what was recorded before is not replayed
	since := ledger.TimeOf(time.Now())
	if _, err := b.record(b.events); err != nil {
		return err
	}
	if err := b.setActive(ctx, hooks, true); err != nil {
		return err
	}
	if err := b.server.stop(); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	for _, t := range hooks {
		if err := b.replay(ctx, t.id, since); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := b.startServer(ctx); err != nil {
		return err
	}
	end, err := b.finish(ctx, hooks, b.events)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d queued events to one webhook", b.events)
	if webhooks > 1 {
		what = fmt.Sprintf("%d queued events to each of %d webhooks, in all", b.events, webhooks)
	}
	b.figure(benchFigure{Workload: what, Rate: float64(b.events*webhooks) / end.Sub(start).Seconds()})
	return b.close(ctx, hooks)
}

// replay queues what a webhook has missed, and checks that it is all.
func (b *webhookBench) replay(ctx context.Context, webhook string, since ledger.Time) error {
	text, err := b.ledgerd(ctx, "webhook", "replay", benchOrg+"/"+benchRepo, webhook, "--since", since.String(), "-o", "json")
	if err != nil {
		return err
	}
	var replayed ledger.Replayed
	if err := json.Unmarshal([]byte(text), &replayed); err != nil {
		return fmt.Errorf("read what webhook replay printed: %w", err)
	}
	if replayed.Queued != int64(b.events) {
		return fmt.Errorf("%d events were replayed of %d", replayed.Queued, b.events)
	}
	return nil
}

// close ends webhooks and their receivers.
func (b *webhookBench) close(ctx context.Context, hooks []hook) error {
	err := b.setActive(ctx, hooks, false)
	for _, t := range hooks {
		t.catcher.close()
	}
	return err
}
