package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newBench(p *program) *cobra.Command {
	b := &benchRun{p: p}
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a server is on this machine",
		Long: `Bench starts a server of its own on a temporary database, loads it through its
HTTP API and prints what it did. Server and load share the machine's cores.

First it measures the machine: an HTTP handler that does nothing, Ed25519
verifications and fsyncs. Read the figures as ratios to those.

Then it records attestations until there are as many as asked for, every one
signed, new and on disk before it is answered; reads pages and commit records;
and starts the server again on the file.

The commits get their attestations in turns, without end. With --per-commit, each
gets so many and then a new commit takes its place, as in a repo under work.`,
		Example: `  ledgerd bench
  ledgerd bench --attestations 1000000 --seconds 10s
  ledgerd bench --attestations 1000000 --commits 50 --per-commit 20`,
		Args: cobra.NoArgs,
		RunE: interruptible(b.run),
	}
	flags := command.Flags()
	flags.IntVar(&b.attestations, "attestations", 50_000, "how many attestations to record")
	flags.IntVar(&b.commits, "commits", 1000, "how many commits get attestations at the same time")
	flags.IntVar(&b.perCommit, "per-commit", 0, "how many attestations a commit gets before a new one takes its place (0: no limit)")
	flags.IntVar(&b.conns, "connections", 64, "connections of the writing load")
	flags.IntVar(&b.readers, "readers", 16, "connections of the reading loads")
	flags.DurationVar(&b.seconds, "seconds", 5*time.Second, "how long each reading load lasts")
	flags.StringVar(&b.dir, "dir", "", "folder for the temporary database (default: the system's)")
	command.AddCommand(newEmptyHandler(p), newBenchStream(p), newBenchWebhook(p), newBenchRadar(p))
	return command
}

// interruptible returns the RunE of a benchmark, which says so where a signal
// ended it.
func interruptible(run func(context.Context) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
		defer release()
		err := run(ctx)
		if err != nil && ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
}

// A benchRun is one run of bench.
type benchRun struct {
	p *program

	attestations, conns, readers int
	commits, perCommit           int // see commitOf
	seconds                      time.Duration

	dir        string
	database   string
	serveFlags []string // of its servers, beside the usual ones
	server     *process
	token      string
	signers    []benchSigner
	recorded   int
	figures    []benchFigure // of those that print JSON too
}

// A benchFigure is what -o json prints of a workload.
type benchFigure struct {
	Workload string  `json:"workload"`
	Rate     float64 `json:"per_second,omitzero"`
	P50      float64 `json:"p50_ms,omitzero"`
	P99      float64 `json:"p99_ms,omitzero"`
	// Ratio is to the same without what the workload is about.
	Ratio float64 `json:"ratio,omitzero"`
}

func (b *benchRun) run(ctx context.Context) error {
	if b.attestations < 1 || b.commits < 1 || b.conns < 1 || b.readers < 1 {
		return usagef("--attestations, --commits, --connections and --readers must be at least 1")
	}
	if b.perCommit < 0 {
		return usagef("--per-commit must not be negative; 0 is no limit")
	}
	return b.within(func() error {
		if err := b.describeMachine(ctx); err != nil {
			return err
		}
		if err := b.setUp(ctx); err != nil {
			return err
		}
		return b.serving(ctx, b.workloads)
	})
}

// within says what is measured and on what, and gives the run a temporary
// folder while f runs.
func (b *benchRun) within(f func() error) error {
	dir, err := os.MkdirTemp(b.dir, "ledgerd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir, b.database = dir, filepath.Join(dir, "ledger.db")
	b.say("ledgerd %s, %s/%s, %d cores\n", buildinfo.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	return f()
}

// serving runs the workloads on a server, one after the other.
func (b *benchRun) serving(ctx context.Context, workloads ...func(context.Context) error) error {
	if err := b.startServer(ctx); err != nil {
		return err
	}
	defer func() { b.server.kill() }() // not always the one that began
	for _, workload := range workloads {
		if err := workload(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *benchRun) describeMachine(ctx context.Context) error {
	m, err := b.measureMachine(ctx)
	if err != nil {
		return err
	}
	t := terminal.NewTable(b.p.stdout, "MACHINE", "RATE")
	t.Row("empty net/http handler", fmt.Sprintf("%.0f/s at %d connections", m.handler.rate(), b.conns))
	t.Row("Ed25519 verifications", fmt.Sprintf("%.0f/s on one core", m.verify))
	t.Row("fsyncs of 4 KiB", fmt.Sprintf("%.0f/s", m.fsync))
	t.Flush()
	fmt.Fprintln(b.p.stdout)
	return nil
}

// ledgerd runs one of the program's own commands on the benchmark's database
// and returns what it printed.
func (b *benchRun) ledgerd(ctx context.Context, args ...string) (string, error) {
	var out, problem strings.Builder
	args = append(args, "--database", b.database)
	if status := Main(ctx, args, strings.NewReader(""), &out, &problem); status != 0 {
		return "", fmt.Errorf("ledgerd %s: exit status %d: %s", strings.Join(args, " "), status, problem.String())
	}
	return strings.TrimSpace(out.String()), nil
}

func (b *benchRun) startServer(ctx context.Context) (err error) {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--database", b.database, "--log-level", "warn"}
	b.server, err = startProcess(ctx, b.p.stderr, append(args, b.serveFlags...)...)
	return err
}

// report prints a workload's line as soon as it is known.
func (b *benchRun) report(workload string, o loadResult) {
	fmt.Fprintf(b.p.stdout, "%-58s %8.0f/s  p50 %6.2f ms  p99 %6.2f ms\n", workload, o.rate(), ms(o.percentile(0.50)), ms(o.percentile(0.99)))
}

// say prints a line for people.
func (b *benchRun) say(format string, values ...any) {
	if b.p.global.output != "json" {
		fmt.Fprintf(b.p.stdout, format+"\n", values...)
	}
}

// figure tells of a workload as soon as it is known.
func (b *benchRun) figure(f benchFigure) {
	b.figures = append(b.figures, f)
	line := fmt.Sprintf("%-58s", f.Workload)
	if f.Rate != 0 {
		line += fmt.Sprintf(" %8.0f/s", f.Rate)
	}
	if f.P99 != 0 {
		line += fmt.Sprintf("  p50 %6.2f ms  p99 %6.2f ms", f.P50, f.P99)
	}
	if f.Ratio != 0 {
		line += fmt.Sprintf("  ratio %.2f", f.Ratio)
	}
	b.say("%s", line)
}

func latencyFigure(what string, o loadResult) benchFigure {
	return benchFigure{Workload: what, P50: ms(o.percentile(0.50)), P99: ms(o.percentile(0.99))}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
