package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
)

const (
	// singleInterval is the time between attestations on an idle server.
	singleInterval = 25 * time.Millisecond
	// healthyInterval is the time between attestations sent to a healthy webhook.
	healthyInterval = 10 * time.Millisecond
	// healthyRounds is how many times a healthy webhook is measured with and without a
	// hanging one.
	healthyRounds = 10
)

// arrivals records n attestations one at a time, and measures the time from POST to
// arrival of each.
func (b *Webhook) arrivals(ctx context.Context, to hook, n int, interval time.Duration) (load.Result, error) {
	c, err := b.client()
	if err != nil {
		return load.Result{}, err
	}

	before, _ := to.arrived()
	sent := make(map[string]time.Time, n)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for range n {
		envelope, err := b.envelope(b.recorded)
		if err != nil {
			return load.Result{}, fmt.Errorf("sign a statement: %w", err)
		}
		select {
		case <-ctx.Done():
			return load.Result{}, ctx.Err()
		case <-tick.C:
		}

		start := time.Now()
		record, _, err := c.Record(ctx, orgName, repoName, envelope)
		if err != nil {
			return load.Result{}, fmt.Errorf("attest: %w", err)
		}
		sent[record.ID] = start
		b.recorded++
	}

	if _, err := waitForDeliveries(ctx, []*receiver{to.receiver}, before+n); err != nil {
		return load.Result{}, err
	}
	result := load.Result{Latencies: to.latencies(sent)}
	if len(result.Latencies) != n {
		return result, fmt.Errorf("%d of %d attestations arrived", len(result.Latencies), n)
	}
	slices.Sort(result.Latencies)
	return result, nil
}

// idle measures the time from POST to arrival on an otherwise idle server.
func (b *Webhook) idle(ctx context.Context) error {
	hooks, err := b.addHooks(ctx, 1, false)
	if err != nil {
		return err
	}
	result, err := b.arrivals(ctx, hooks[0], b.Single, singleInterval)
	if err != nil {
		return err
	}
	b.figure(latencyFigure(fmt.Sprintf("POST to arrival, %d attestations/s", time.Second/singleInterval), result))
	return b.close(ctx, hooks)
}

// healthy measures a healthy webhook, alone and together with one whose receiver
// never responds. The two alternate, to cancel out machine noise.
func (b *Webhook) healthy(ctx context.Context) error {
	healthy, err := b.addHooks(ctx, 1, false)
	if err != nil {
		return err
	}

	n := int(b.ReadingTime / healthyInterval / healthyRounds)
	var alone, together load.Result
	for range healthyRounds {
		result, err := b.arrivals(ctx, healthy[0], n, healthyInterval)
		if err != nil {
			return err
		}
		alone.Latencies = append(alone.Latencies, result.Latencies...)

		hanging, err := b.addHooks(ctx, 1, true)
		if err != nil {
			return err
		}
		if result, err = b.arrivals(ctx, healthy[0], n, healthyInterval); err != nil {
			return err
		}
		together.Latencies = append(together.Latencies, result.Latencies...)
		if attempts, _ := hanging[0].arrived(); attempts == 0 {
			return fmt.Errorf("the hanging webhook got no deliveries")
		}
		if err := b.close(ctx, hanging); err != nil {
			return err
		}
	}

	slices.Sort(alone.Latencies)
	slices.Sort(together.Latencies)
	rate := time.Second / healthyInterval
	b.figure(latencyFigure(fmt.Sprintf("one webhook, %d attestations/s", rate), alone))
	f := latencyFigure("the same with a webhook whose receiver never responds", together)
	f.Ratio = f.P99 / load.MS(alone.Percentile(0.99))
	b.figure(f)
	return b.close(ctx, healthy)
}

// slowdownWebhooks is how many webhooks are active while recording is measured.
const slowdownWebhooks = 3

// slowdown measures how much webhooks slow down recording. Rounds with and without
// webhooks alternate; the next one begins when all queued events are delivered.
func (b *Webhook) slowdown(ctx context.Context) error {
	hooks, err := b.addHooks(ctx, slowdownWebhooks, false)
	if err != nil {
		return err
	}

	var without, with, delivered time.Duration
	for round := range 2 {
		if err := b.setActive(ctx, hooks, false); err != nil {
			return err
		}
		result, err := b.record(b.Slow)
		if err != nil {
			return err
		}
		without += result.Elapsed

		if err := b.setActive(ctx, hooks, true); err != nil {
			return err
		}
		start := time.Now()
		if result, err = b.record(b.Slow); err != nil {
			return err
		}
		with += result.Elapsed
		end, err := b.finish(ctx, hooks, (round+1)*b.Slow)
		if err != nil {
			return err
		}
		delivered += end.Sub(start)
	}

	n := float64(2 * b.Slow)
	b.figure(figure{Workload: "attest, no webhooks", Rate: n / without.Seconds()})
	b.figure(figure{Workload: fmt.Sprintf("attest, %d webhooks for all events", slowdownWebhooks),
		Rate: n / with.Seconds(), Ratio: without.Seconds() / with.Seconds()})
	b.figure(figure{Workload: "their deliveries, first POST to last arrival",
		Rate: n * slowdownWebhooks / delivered.Seconds()})
	return b.close(ctx, hooks)
}
