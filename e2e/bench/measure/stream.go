package measure

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/r3labs/sse/v2"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
)

// A Stream is a run of bench stream.
type Stream struct {
	Core
	Subscribers, Events, Slow int
}

// Check returns an error if an option is invalid.
func (b *Stream) Check() error {
	if b.Subscribers < 1 || b.Events < 1 || b.Slow < 1 || b.Connections < 1 || b.ReadingTime < time.Second {
		return fmt.Errorf("--subscribers, --events, --slowdown and --connections must be at least 1, " +
			"--seconds at least 1s")
	}
	return nil
}

// Measure runs the benchmark.
func (b *Stream) Measure(ctx context.Context, env Env) error {
	b.Env, b.Commits = env, 50
	return b.withTempDir(ctx, func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		return b.withServer(ctx, b.warmUp, b.steady, b.flood, b.bare, b.slowdown)
	})
}

const (
	eventsPath = "/v1/orgs/bench/events"
	// steadyRate is the rate of the steady load, in attestations per second.
	steadyRate = 5
	// slowdownSubscribers is how many subscribers read while recording is measured.
	slowdownSubscribers = 100
)

// line prints the result of a workload.
func (b *Stream) line(workload, format string, values ...any) {
	fmt.Fprintf(b.Stdout, "%-58s %s\n", workload, fmt.Sprintf(format, values...))
}

// steady measures the time from POST to arrival at a low rate.
func (b *Stream) steady(ctx context.Context) error {
	requests, err := b.sign(int(b.ReadingTime.Seconds() * steadyRate))
	if err != nil {
		return fmt.Errorf("sign statements: %w", err)
	}
	sent := make([]atomic.Int64, len(requests))
	a, err := newAudience(ctx, b.server.address, eventsPath, b.token, b.Subscribers, sent)
	if err != nil {
		return err
	}
	defer a.close()

	tick := time.NewTicker(time.Second / steadyRate)
	defer tick.Stop()
	for i, request := range requests {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		sent[i].Store(time.Now().UnixNano())
		if _, err := b.post([][]byte{request}, 1); err != nil {
			return err
		}
	}

	if _, err := a.wait(ctx, int64(len(requests))); err != nil {
		return err
	}
	memory, ok := b.server.residentMemory() // with all subscribers connected
	result := a.close()
	b.line(fmt.Sprintf("POST to arrival, %d subscribers, %d attestations/s", b.Subscribers, steadyRate),
		"p50 %6.2f ms  p99 %6.2f ms", load.MS(result.Percentile(0.50)), load.MS(result.Percentile(0.99)))
	b.memory("memory of the server then", memory, ok)
	return nil
}

func (b *Stream) memory(what string, bytes int64, ok bool) {
	if ok {
		b.line(what, "%8.0f MB", float64(bytes)/1e6)
	}
}

// flood measures the stream while attestations are recorded as fast as possible.
func (b *Stream) flood(ctx context.Context) error {
	requests, err := b.sign(b.Events)
	if err != nil {
		return fmt.Errorf("sign statements: %w", err)
	}
	a, err := newAudience(ctx, b.server.address, eventsPath, b.token, b.Subscribers, nil)
	if err != nil {
		return err
	}
	defer a.close()

	start := time.Now()
	if _, err := b.post(requests, b.Connections); err != nil {
		return err
	}
	if err := b.delivered(ctx, "ledgerd", a, start); err != nil {
		return err
	}
	memory, ok := b.server.residentMemory()
	b.memory("memory of the server then", memory, ok)
	return nil
}

// delivered waits until the audience has all events and prints the rate.
func (b *Stream) delivered(ctx context.Context, server string, a *audience, start time.Time) error {
	end, err := a.wait(ctx, int64(b.Events))
	if err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	b.line(fmt.Sprintf("%s: %d events to %d subscribers", server, b.Events, b.Subscribers),
		"%8.0f deliveries/s", float64(b.Events*b.Subscribers)/end.Sub(start).Seconds())
	return nil
}

// bare measures a bare r3labs/sse server with the same messages, for comparison.
func (b *Stream) bare(ctx context.Context) error {
	process, err := startSelf(ctx, b.Stderr, "stream", "bare-server")
	if err != nil {
		return err
	}
	defer process.kill()
	a, err := newAudience(ctx, process.address, "/events?stream=bench", "none", b.Subscribers, nil)
	if err != nil {
		return err
	}
	defer a.close()

	start := time.Now()
	_, err = load.Load{Address: process.address, Conns: 1,
		Requests: [][]byte{load.Request(http.MethodPost, fmt.Sprint("/publish?n=", b.Events), "none", nil)}}.Run()
	if err != nil {
		return err
	}
	if err := b.delivered(ctx, "bare r3labs/sse", a, start); err != nil {
		return err
	}
	memory, ok := process.residentMemory()
	b.memory("memory of that server then", memory, ok)
	return nil
}

// slowdown measures how much subscribers slow down recording. Rounds with and without
// subscribers alternate, to cancel out machine noise.
func (b *Stream) slowdown(ctx context.Context) error {
	var without, with time.Duration
	for range 2 {
		result, err := b.record(b.Slow)
		if err != nil {
			return err
		}
		without += result.Elapsed

		a, err := newAudience(ctx, b.server.address, eventsPath, b.token, slowdownSubscribers, nil)
		if err != nil {
			return err
		}
		if result, err = b.record(b.Slow); err == nil {
			with += result.Elapsed
			_, err = a.wait(ctx, int64(b.Slow))
		}
		a.close()
		if err != nil {
			return err
		}
	}

	b.line("attest, no subscribers", "%8.0f/s", float64(2*b.Slow)/without.Seconds())
	b.line(fmt.Sprintf("attest, %d subscribers", slowdownSubscribers), "%8.0f/s",
		float64(2*b.Slow)/with.Seconds())
	return nil
}

// ServeBareStream runs a bare r3labs/sse server with one stream, without storage or
// resumption, and prints its address. bench stream starts it as a separate process.
func ServeBareStream(stdout io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	bare := sse.New()
	bare.AutoReplay = false
	bare.CreateStream("bench")
	mux := http.NewServeMux()
	mux.Handle("GET /events", bare)
	mux.HandleFunc("POST /publish", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		publishBare(bare, n)
		_, _ = io.WriteString(w, "published")
	})

	fmt.Fprintf(stdout, "listening on http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}

// publishBare publishes n messages like those of the steady load.
func publishBare(bare *sse.Server, n int) {
	body := ledger.Render(ledger.AttestationEvent{
		ID: "evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE", Commit: commitID(1), Predicate: predicates()[0],
		Identity: "cn=test-go,ou=build,o=bench",
		Repo:     "repo", Timestamp: ledger.TimeOf(time.Now()), Result: ledger.Result{Status: ledger.Pass, DurationMS: 1200},
	})
	data, err := eventstream.Data(ledger.EventAttestation, body)
	if err != nil {
		panic(err) // body is valid
	}
	for range n {
		bare.Publish("bench", &sse.Event{ID: []byte("evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE"), Event: []byte(ledger.EventAttestation),
			Data: data})
	}
}
