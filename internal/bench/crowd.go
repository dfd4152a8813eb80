package bench

import (
	"context"
	"fmt"
	"time"
)

// A Crowd is a run of bench crowd, which measures recording while many streams are
// open and many people view pages.
type Crowd struct {
	Core
	Streams, Unread, Rate int
	Viewers, Slow         int
}

// Check returns an error if an option is invalid.
func (b *Crowd) Check() error {
	switch {
	case b.Streams < 1 || b.Viewers < 1 || b.Rate < 1 || b.Slow < 1 || b.Connections < 1:
		return fmt.Errorf("--streams, --viewers, --rate, --slowdown and --connections must be at least 1")
	case b.Unread < 0 || b.Unread >= b.Streams:
		return fmt.Errorf("invalid --unread %d: use 0 to %d (less than --streams)", b.Unread, b.Streams-1)
	case b.ReadingTime < time.Second:
		return fmt.Errorf("invalid --seconds %v: use at least 1s", b.ReadingTime)
	}
	return nil
}

// Measure runs the benchmark.
func (b *Crowd) Measure(ctx context.Context, env Env) error {
	b.Env, b.Commits = env, 200
	return b.withTempDir(func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		if err := b.withServer(ctx, b.warmUp, b.slowdownByStreams, b.slowdownByViewers); err != nil {
			return err
		}
		return b.printFigures()
	})
}

const (
	// streamsPerToken is how many streams of a benchmark share a token. The default of
	// streams.per_token is 2000.
	streamsPerToken = 1000
	// pacedConnections is how many requests of a load with a fixed rate can be in
	// flight.
	pacedConnections = 64
)

// slowdownByStreams measures recording at a fixed rate, before streams are opened and
// while they are open.
func (b *Crowd) slowdownByStreams(ctx context.Context) error {
	alone, err := b.recordAt(b.Rate)
	if err != nil {
		return err
	}
	b.crowdFigure(fmt.Sprintf("attest, %d/s asked for", b.Rate), alone, 0)

	tokens, err := b.readTokens(ctx, "streams", (b.Streams+streamsPerToken-1)/streamsPerToken)
	if err != nil {
		return err
	}
	audiences, err := b.openStreams(ctx, tokens)
	if err != nil {
		return err
	}
	defer func() {
		for _, a := range audiences {
			a.close()
		}
	}()

	together, err := b.recordAt(b.Rate)
	if err != nil {
		return err
	}
	for _, a := range audiences {
		if _, err := a.wait(ctx, int64(len(together.latencies))); err != nil {
			return err
		}
	}
	b.crowdFigure(fmt.Sprintf("the same, %d streams, %d of them not read", b.Streams, b.Unread), together,
		together.rate()/alone.rate())
	b.crowdMemory()
	return nil
}

// recordAt records attestations at a fixed rate for the reading time.
func (b *Crowd) recordAt(rate int) (loadResult, error) {
	requests, err := b.sign(int(b.ReadingTime.Seconds() * float64(rate)))
	if err != nil {
		return loadResult{}, fmt.Errorf("sign statements: %w", err)
	}
	result, err := load{address: b.server.address, conns: pacedConnections, requests: requests, rate: rate}.run()
	if err != nil {
		return result, fmt.Errorf("attest: %w", err)
	}
	b.recorded += len(requests)
	return result, nil
}

// openStreams opens the streams, as an audience for each token. The first ones are not
// read.
func (b *Crowd) openStreams(ctx context.Context, tokens []string) ([]*audience, error) {
	var audiences []*audience
	unread, left := b.Unread, b.Streams
	for _, token := range tokens {
		n := min(left, streamsPerToken)
		a, err := connectAudience(ctx, b.server.address, eventsPath, token, n, min(unread, n))
		if err != nil {
			for _, opened := range audiences {
				opened.close()
			}
			return nil, err
		}
		a.read(nil)
		audiences = append(audiences, a)
		left, unread = left-n, unread-min(unread, n)
	}
	return audiences, nil
}

// readTokens creates n tokens with the scope read.
func (b *Crowd) readTokens(ctx context.Context, name string, n int) ([]string, error) {
	tokens := make([]string, n)
	for i := range tokens {
		token, err := b.ledgerd(ctx, "token", "create", "--org", orgName, "--name", fmt.Sprintf("%s-%d", name, i),
			"--scope", "read")
		if err != nil {
			return nil, err
		}
		tokens[i] = token
	}
	return tokens, nil
}

// slowdownByViewers measures how much viewers of live pages slow down recording. Rounds
// with and without viewers alternate, to cancel out machine noise.
func (b *Crowd) slowdownByViewers(ctx context.Context) error {
	tokens, err := b.readTokens(ctx, "viewers", (b.Viewers+viewersPerToken-1)/viewersPerToken)
	if err != nil {
		return err
	}

	var alone, together, refreshes loadResult
	for range 2 {
		result, err := b.record(b.Slow)
		if err != nil {
			return err
		}
		alone.add(result)

		v, err := newViewers(ctx, b.server.address, tokens, b.Viewers)
		if err != nil {
			return err
		}
		start := time.Now()
		result, err = b.record(b.Slow)
		pages := loadResult{elapsed: time.Since(start)}
		var failed error
		if pages.latencies, failed = v.close(); err == nil {
			err = failed
		}
		if err != nil {
			return err
		}
		together.add(result)
		refreshes.add(pages)
	}

	b.crowdFigure(fmt.Sprintf("attest, %d connections", b.Connections), alone, 0)
	b.crowdFigure(fmt.Sprintf("the same, %d viewers", b.Viewers), together, together.rate()/alone.rate())
	b.crowdFigure("refreshes of their pages", refreshes, 0)
	b.crowdMemory()
	return nil
}

func (b *Crowd) crowdFigure(workload string, result loadResult, ratio float64) {
	f := latencyFigure(workload, result)
	f.Rate, f.Ratio = result.rate(), ratio
	b.figure(f)
}

func (b *Crowd) crowdMemory() {
	if bytes, ok := b.server.residentMemory(); ok {
		b.print("%-58s %8.0f MB", "memory of the server then", float64(bytes)/1e6)
	}
}
