package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// singleEvery is how far apart attestations are that come one at a time.
	singleEvery = 25 * time.Millisecond
	// besideEvery is how far apart those are that a healthy webhook gets.
	besideEvery = 10 * time.Millisecond
	// besideTurns is how often it is measured alone and not alone, in turns.
	besideTurns = 10
)

// arrivals records n attestations one at a time, and measures the time from the
// POST to each one's arrival.
func (b *Webhook) arrivals(ctx context.Context, to hook, n int, every time.Duration) (loadResult, error) {
	c, err := b.client()
	if err != nil {
		return loadResult{}, err
	}
	before, _ := to.arrived()
	sent := make(map[string]time.Time, n)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range n {
		envelope, err := b.envelope(b.recorded)
		if err != nil {
			return loadResult{}, fmt.Errorf("sign a statement: %w", err)
		}
		select {
		case <-ctx.Done():
			return loadResult{}, ctx.Err()
		case <-tick.C:
		}
		start := time.Now()
		record, _, err := c.Record(ctx, orgName, repoName, envelope)
		if err != nil {
			return loadResult{}, fmt.Errorf("attest: %w", err)
		}
		sent[record.ID] = start
		b.recorded++
	}
	if _, err := caught(ctx, []*catcher{to.catcher}, before+n); err != nil {
		return loadResult{}, err
	}
	o := loadResult{latencies: to.latencies(sent)}
	if len(o.latencies) != n {
		return o, fmt.Errorf("of %d attestations %d arrived", n, len(o.latencies))
	}
	slices.Sort(o.latencies)
	return o, nil
}

// idle measures the time from POST to arrival with nothing else to do.
func (b *Webhook) idle(ctx context.Context) error {
	hooks, err := b.addHooks(ctx, 1, false)
	if err != nil {
		return err
	}
	o, err := b.arrivals(ctx, hooks[0], b.Single, singleEvery)
	if err != nil {
		return err
	}
	b.figure(latencyFigure(fmt.Sprintf("POST to arrival, %d attestations a second", time.Second/singleEvery), o))
	return b.close(ctx, hooks)
}

// beside measures a healthy webhook alone and while another one's receiver
// never answers: in turns, to cancel out the noise of the machine.
func (b *Webhook) beside(ctx context.Context) error {
	healthy, err := b.addHooks(ctx, 1, false)
	if err != nil {
		return err
	}
	n := int(b.ReadingTime / besideEvery / besideTurns)
	var alone, accompanied loadResult
	for range besideTurns {
		o, err := b.arrivals(ctx, healthy[0], n, besideEvery)
		if err != nil {
			return err
		}
		alone.latencies = append(alone.latencies, o.latencies...)
		hanging, err := b.addHooks(ctx, 1, true)
		if err != nil {
			return err
		}
		if o, err = b.arrivals(ctx, healthy[0], n, besideEvery); err != nil {
			return err
		}
		accompanied.latencies = append(accompanied.latencies, o.latencies...)
		if tried, _ := hanging[0].arrived(); tried == 0 {
			return fmt.Errorf("nothing was sent to the webhook whose receiver hangs")
		}
		if err := b.close(ctx, hanging); err != nil {
			return err
		}
	}
	slices.Sort(alone.latencies)
	slices.Sort(accompanied.latencies)
	rate := time.Second / besideEvery
	b.figure(latencyFigure(fmt.Sprintf("a webhook alone, %d attestations a second", rate), alone))
	f := latencyFigure("the same beside one whose receiver never answers", accompanied)
	f.Ratio = f.P99 / ms(alone.percentile(0.99))
	b.figure(f)
	return b.close(ctx, healthy)
}

// slowdownWebhooks are active while the writing load is measured.
const slowdownWebhooks = 3

// slowdown measures how recording suffers from webhooks, in turns. The next
// turn begins when all that was queued is delivered.
func (b *Webhook) slowdown(ctx context.Context) error {
	hooks, err := b.addHooks(ctx, slowdownWebhooks, false)
	if err != nil {
		return err
	}
	var without, with, delivered time.Duration
	for turn := range 2 {
		if err := b.setActive(ctx, hooks, false); err != nil {
			return err
		}
		o, err := b.record(b.Slow)
		if err != nil {
			return err
		}
		without += o.elapsed
		if err := b.setActive(ctx, hooks, true); err != nil {
			return err
		}
		start := time.Now()
		if o, err = b.record(b.Slow); err != nil {
			return err
		}
		with += o.elapsed
		end, err := b.finish(ctx, hooks, (turn+1)*b.Slow)
		if err != nil {
			return err
		}
		delivered += end.Sub(start)
	}
	n := float64(2 * b.Slow)
	b.figure(figure{Workload: "attest, no webhook", Rate: n / without.Seconds()})
	b.figure(figure{Workload: fmt.Sprintf("attest, %d webhooks get all of it", slowdownWebhooks), Rate: n / with.Seconds(),
		Ratio: without.Seconds() / with.Seconds()})
	b.figure(figure{Workload: "their deliveries, from the first POST to the last arrival",
		Rate: n * slowdownWebhooks / delivered.Seconds()})
	return b.close(ctx, hooks)
}
