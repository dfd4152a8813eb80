package cmd

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
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/ledger"
)

// A streamBench is one run of bench stream.
type streamBench struct {
	*benchRun
	subscribers, events, slow int
}

func newBenchStream(p *program) *cobra.Command {
	b := &streamBench{benchRun: &benchRun{p: p, commits: 50}}
	command := &cobra.Command{
		Use:   "stream",
		Short: "Measure the live stream on this machine",
		Long: `Bench stream starts a server of its own on a temporary database, has many
subscribers listen to its live stream, and records attestations through its HTTP
API. Server, load and subscribers share the machine's cores.

Beside it, it measures a bare r3labs/sse server that sends the same messages to
as many subscribers, without storing any: read the figures as ratios to that.
Every figure stands for messages of which none was lost.`,
		Example: `  ledgerd bench stream
  ledgerd bench stream --subscribers 200 --events 5000`,
		Args: cobra.NoArgs,
		RunE: interruptible(b.run),
	}
	flags := command.Flags()
	flags.IntVar(&b.subscribers, "subscribers", 1000, "how many listen")
	flags.IntVar(&b.events, "events", 5000, "how many attestations to record as fast as they go")
	flags.IntVar(&b.slow, "slowdown", 10_000, "how many attestations to record each time to see what listeners cost")
	flags.DurationVar(&b.seconds, "seconds", 10*time.Second, "how long the load with a steady rate lasts")
	flags.IntVar(&b.conns, "connections", 64, "connections of the writing load")
	flags.StringVar(&b.dir, "dir", "", "folder for the temporary database (default: the system's)")
	command.AddCommand(newBareStream(p))
	return command
}

func (b *streamBench) run(ctx context.Context) error {
	if b.subscribers < 1 || b.events < 1 || b.slow < 1 || b.conns < 1 || b.seconds < time.Second {
		return usagef("--subscribers, --events, --slowdown and --connections must be at least 1, --seconds at least 1s")
	}
	return b.within(func() error {
		if err := b.setUp(ctx); err != nil {
			return err
		}
		return b.serving(ctx, b.warmUp, b.steady, b.flood, b.bare, b.slowdown)
	})
}

const (
	eventsPath = "/v1/orgs/bench/events"
	// steadyRate is how many attestations a second the steady load records.
	steadyRate = 5
	// slowdownSubscribers listen while the writing load is measured.
	slowdownSubscribers = 100
)

// line prints one figure as soon as it is known.
func (b *streamBench) line(what, format string, values ...any) {
	fmt.Fprintf(b.p.stdout, "%-58s %s\n", what, fmt.Sprintf(format, values...))
}

// steady measures the time from a POST to its message's arrival, few at a time.
func (b *streamBench) steady(ctx context.Context) error {
	requests, err := b.sign(int(b.seconds.Seconds() * steadyRate))
	if err != nil {
		return fmt.Errorf("sign statements: %w", err)
	}
	sent := make([]atomic.Int64, len(requests))
	a, err := newAudience(ctx, b.server.address, eventsPath, b.token, b.subscribers, sent)
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
	memory, known := b.server.residentMemory() // with all of them connected
	o := a.close()
	b.line(fmt.Sprintf("POST to arrival, %d subscribers, %d attestations a second", b.subscribers, steadyRate),
		"p50 %6.2f ms  p99 %6.2f ms", ms(o.percentile(0.50)), ms(o.percentile(0.99)))
	b.memory("memory of the server then", memory, known)
	return nil
}

func (b *streamBench) memory(what string, bytes int64, known bool) {
	if known {
		b.line(what, "%8.0f MB", float64(bytes)/1e6)
	}
}

// flood measures deliveries while attestations are recorded as fast as it goes.
func (b *streamBench) flood(ctx context.Context) error {
	requests, err := b.sign(b.events)
	if err != nil {
		return fmt.Errorf("sign statements: %w", err)
	}
	a, err := newAudience(ctx, b.server.address, eventsPath, b.token, b.subscribers, nil)
	if err != nil {
		return err
	}
	defer a.close()
	start := time.Now()
	if _, err := b.post(requests, b.conns); err != nil {
		return err
	}
	if err := b.delivered(ctx, "ledgerd", a, start); err != nil {
		return err
	}
	memory, known := b.server.residentMemory()
	b.memory("memory of the server then", memory, known)
	return nil
}

// delivered waits until the audience has all events and prints the rate.
func (b *streamBench) delivered(ctx context.Context, who string, a *audience, start time.Time) error {
	end, err := a.wait(ctx, int64(b.events))
	if err != nil {
		return fmt.Errorf("%s: %w", who, err)
	}
	b.line(fmt.Sprintf("%s: %d events to %d subscribers", who, b.events, b.subscribers),
		"%8.0f deliveries/s", float64(b.events*b.subscribers)/end.Sub(start).Seconds())
	return nil
}

// bare measures the reference with the same messages.
func (b *streamBench) bare(ctx context.Context) error {
	process, err := startProcess(ctx, b.p.stderr, "bench", "stream", "bare-server")
	if err != nil {
		return err
	}
	defer process.kill()
	a, err := newAudience(ctx, process.address, "/events?stream=bench", "none", b.subscribers, nil)
	if err != nil {
		return err
	}
	defer a.close()
	start := time.Now()
	_, err = load{address: process.address, conns: 1, requests: [][]byte{httpRequest(http.MethodPost, fmt.Sprint("/publish?n=", b.events), "none", nil)}}.run()
	if err != nil {
		return err
	}
	if err := b.delivered(ctx, "bare r3labs/sse", a, start); err != nil {
		return err
	}
	memory, known := process.residentMemory()
	b.memory("memory of that server then", memory, known)
	return nil
}

// slowdown measures how recording suffers from those who listen: in turns, for
// machines have moods.
func (b *streamBench) slowdown(ctx context.Context) error {
	var alone, watched time.Duration
	for range 2 {
		o, err := b.record(b.slow)
		if err != nil {
			return err
		}
		alone += o.elapsed
		a, err := newAudience(ctx, b.server.address, eventsPath, b.token, slowdownSubscribers, nil)
		if err != nil {
			return err
		}
		if o, err = b.record(b.slow); err == nil {
			watched += o.elapsed
			_, err = a.wait(ctx, int64(b.slow))
		}
		a.close()
		if err != nil {
			return err
		}
	}
	b.line("attest, nobody listens", "%8.0f/s", float64(2*b.slow)/alone.Seconds())
	b.line(fmt.Sprintf("attest, %d subscribers read all of it", slowdownSubscribers), "%8.0f/s", float64(2*b.slow)/watched.Seconds())
	return nil
}

// newBareStream returns the hidden command of the reference: r3labs/sse with
// one stream for all, which stores and resumes nothing.
func newBareStream(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    "bare-server",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
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
			fmt.Fprintf(p.stdout, "listening on http://%s\n", listener.Addr())
			return http.Serve(listener, mux)
		},
	}
}

// publishBare publishes n messages like those of the steady load.
func publishBare(bare *sse.Server, n int) {
	body := ledger.Render(ledger.AttestationEvent{
		ID: "evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE", Commit: benchCommit(1), Predicate: benchPredicates()[0], Identity: "cn=test-go,ou=build,o=bench",
		Repo: "repo", Timestamp: ledger.TimeOf(time.Now()), Result: ledger.Result{Status: ledger.Pass, DurationMS: 1200},
	})
	data, err := ledger.StreamData(ledger.EventAttestation, body)
	if err != nil {
		panic(err) // it was made above
	}
	for range n {
		bare.Publish("bench", &sse.Event{ID: []byte("evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE"), Event: []byte(ledger.EventAttestation), Data: data})
	}
}
