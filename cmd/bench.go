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
and starts the server again on the file.`,
		Example: `  ledgerd bench
  ledgerd bench --attestations 1000000 --seconds 10s`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			err := b.run(ctx)
			if err != nil && ctx.Err() != nil {
				return errors.New("interrupted")
			}
			return err
		},
	}
	flags := command.Flags()
	flags.IntVar(&b.attestations, "attestations", 50_000, "how many attestations to record")
	flags.IntVar(&b.commits, "commits", 1000, "how many commits they are about")
	flags.IntVar(&b.conns, "connections", 64, "connections of the writing load")
	flags.IntVar(&b.readers, "readers", 16, "connections of the reading loads")
	flags.DurationVar(&b.seconds, "seconds", 5*time.Second, "how long each reading load lasts")
	flags.StringVar(&b.dir, "dir", "", "folder for the temporary database (default: the system's)")
	command.AddCommand(newEmptyHandler(p), newBenchStream(p), newBenchWebhook(p))
	return command
}

// A benchRun is one run of bench.
type benchRun struct {
	p *program

	attestations, commits, conns, readers int
	seconds                               time.Duration

	dir        string
	database   string
	serveFlags []string // of its servers, beside the usual ones
	server     *process
	token      string
	signers    []benchSigner
	recorded   int
}

func (b *benchRun) run(ctx context.Context) error {
	if b.attestations < 1 || b.commits < 1 || b.conns < 1 || b.readers < 1 {
		return usagef("--attestations, --commits, --connections and --readers must be at least 1")
	}
	dir, err := os.MkdirTemp(b.dir, "ledgerd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir, b.database = dir, filepath.Join(dir, "ledger.db")

	if err := b.describeMachine(ctx); err != nil {
		return err
	}
	if err := b.setUp(ctx); err != nil {
		return err
	}
	if err := b.startServer(ctx); err != nil {
		return err
	}
	defer func() { b.server.kill() }()
	return b.workloads(ctx)
}

func (b *benchRun) describeMachine(ctx context.Context) error {
	fmt.Fprintf(b.p.stdout, "ledgerd %s, %s/%s, %d cores\n\n", version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	m, err := b.measureMachine(ctx)
	if err != nil {
		return err
	}
	t := newTable(b.p.stdout, "MACHINE", "RATE")
	t.row("empty net/http handler", fmt.Sprintf("%.0f/s at %d connections", m.handler.rate(), b.conns))
	t.row("Ed25519 verifications", fmt.Sprintf("%.0f/s on one core", m.verify))
	t.row("fsyncs of 4 KiB", fmt.Sprintf("%.0f/s", m.fsync))
	t.flush()
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

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
