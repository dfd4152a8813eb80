package run

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/e2e/bench/measure"
	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/config"
)

// newBench returns the command bench. Its benchmarks call the function ledgerd to
// run other commands of the program.
func newBench(p *cli.Program, ledgerd Main) *cobra.Command {
	b := new(measure.Core)
	command := &cobra.Command{
		Use:   "bench",
		Short: "Benchmark a server on this machine",
		Long: `Starts its own server on a temporary database, loads it through the HTTP API and
prints the throughput and latency. Server and load share the machine's cores.

First it measures the machine: an HTTP handler that does nothing, Ed25519
verifications and fsyncs. Read the figures as ratios to those.

Then it records --attestations attestations, each of them signed, new and on disk
before the server responds. It reads pages and commit records, and restarts the
server on the file.

The attestations go to --commits commits in turn. With --per-commit, a commit
with this many attestations is replaced by a new one, as in an active repo.`,
		Example: `  ledgerd bench
  ledgerd bench --attestations 1000000 --seconds 10s
  ledgerd bench --attestations 1000000 --commits 50 --per-commit 20`,
		Args: cobra.NoArgs,
		RunE: runBenchmark(p, b, ledgerd),
	}
	flags := command.Flags()
	flags.IntVar(&b.Attestations, "attestations", 50_000, "attestations to record")
	flags.IntVar(&b.Commits, "commits", 1000, "commits that get attestations at the same time")
	flags.IntVar(&b.PerCommit, "per-commit", 0, "attestations after which a commit is replaced by a new one "+
		"(0: no limit)")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	flags.IntVar(&b.Readers, "readers", 16, "connections of the read loads")
	flags.DurationVar(&b.ReadingTime, "seconds", 5*time.Second, "duration of each read load")
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database (default: the system's temporary folder)")
	command.AddCommand(newBenchStream(p, ledgerd), newBenchWebhook(p, ledgerd),
		newBenchRadar(p, ledgerd), benchCommand(p, ledgerd, new(measure.Crowd)), benchCommand(p, ledgerd, new(measure.Gate)),
		benchCommand(p, ledgerd, new(measure.Proof)), benchCommand(p, ledgerd, new(measure.Replicas)),
		newHidden("empty-handler", func(context.Context) error { return measure.ServeNothing(p.Stdout) }))
	return command
}

// newHidden returns a command that a benchmark starts as a separate process.
func newHidden(use string, run func(ctx context.Context) error) *cobra.Command {
	return &cobra.Command{Use: use, Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context()) }}
}

func newBenchStream(p *cli.Program, ledgerd Main) *cobra.Command {
	b := new(measure.Stream)
	command := &cobra.Command{
		Use:   "stream",
		Short: "Benchmark the live stream on this machine",
		Long: `Starts its own server on a temporary database, connects many subscribers to its
live stream, and records attestations through the HTTP API. Server, load and
subscribers share the machine's cores.

For comparison it measures a bare r3labs/sse server that sends the same messages
to as many subscribers, without storing any: read the figures as ratios to that.
The benchmark fails if a message is lost.`,
		Example: `  ledgerd bench stream
  ledgerd bench stream --subscribers 200 --events 5000`,
		Args: cobra.NoArgs,
		RunE: runBenchmark(p, b, ledgerd),
	}
	flags := command.Flags()
	flags.IntVar(&b.Subscribers, "subscribers", 1000, "number of subscribers")
	flags.IntVar(&b.Events, "events", 5000, "attestations to record at full speed")
	flags.IntVar(&b.Slow, "slowdown", 10_000, "attestations to record with and without subscribers, to measure their cost")
	flags.DurationVar(&b.ReadingTime, "seconds", 10*time.Second, "duration of the load at a steady rate")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database (default: the system's temporary folder)")
	command.AddCommand(newHidden("bare-server", func(context.Context) error { return measure.ServeBareStream(p.Stdout) }))
	return command
}

func newBenchWebhook(p *cli.Program, ledgerd Main) *cobra.Command {
	b := new(measure.Webhook)
	command := &cobra.Command{
		Use:   "webhook",
		Short: "Benchmark webhooks on this machine",
		Long: `Starts its own server on a temporary database and records attestations through
the HTTP API. The server posts their events to receivers on loopback, which
respond at once. Server, load and receivers share the machine's cores.

To measure how fast queues drain, events are queued while no server is running.
The time is measured from the start of the server to the last arrival. The
benchmark fails if a delivery is lost.`,
		Example: `  ledgerd bench webhook
  ledgerd bench webhook --events 2000 -o json`,
		Args: cobra.NoArgs,
		RunE: runBenchmark(p, b, ledgerd),
	}
	flags := command.Flags()
	flags.IntVar(&b.Events, "events", 10_000, "events to queue for each webhook")
	flags.IntVar(&b.Webhooks, "webhooks", 20, "webhooks that drain at the same time")
	flags.IntVar(&b.Single, "single", 500, "attestations to record one at a time")
	flags.IntVar(&b.Slow, "slowdown", 10_000, "attestations to record, with and without webhooks, to measure their cost")
	flags.DurationVar(&b.ReadingTime, "seconds", 20*time.Second,
		"how long to measure a healthy webhook, alone and next to one that hangs")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database (default: the system's temporary folder)")
	return command
}

func newBenchRadar(p *cli.Program, ledgerd Main) *cobra.Command {
	b := new(measure.Radar)
	command := &cobra.Command{
		Use:   "radar",
		Short: "Benchmark Conflict Radar on this machine",
		Long: `Starts its own server on a temporary database and registers commits through the
HTTP API, each with a change record of 20 files and 60 hunks. Server and load
share the machine's cores.

First it fills a repo with commits in flight. Then it registers new commits of
their branches, which keeps the number in flight constant. It alternates with a
second repo, which has only one branch in flight per connection. The ratio shows
how much commits in flight slow down registration.

Last it creates a git repository with a commit that changes many files. It runs
'ledgerd commit register' on this commit, for repos with nothing in flight, and
alternates with the 'git diff-tree' that it runs. This requires git.`,
		Example: `  ledgerd bench radar
  ledgerd bench radar --in-flight 1000 --paths 2000 --registrations 500 -o json`,
		Args: cobra.NoArgs,
		RunE: runBenchmark(p, b, ledgerd),
	}
	flags := command.Flags()
	flags.IntVar(&b.Tips, "in-flight", 10_000, "commits in flight")
	flags.IntVar(&b.Paths, "paths", 20_000, "distinct paths that these commits change")
	flags.IntVar(&b.Registrations, "registrations", 5000, "commits to register in each of the two repos")
	flags.IntVar(&b.Files, "files", 500, "files that the registered commit changes")
	flags.IntVar(&b.Pushes, "pushes", 20, "how often to register it")
	flags.IntVar(&b.Connections, "connections", 16, "connections of the load")
	flags.StringVar(&b.Dir, "dir", "",
		"folder for the temporary database and git repository (default: the system's temporary folder)")
	return command
}

// benchCommand returns the command of a benchmark that defines its flags itself.
func benchCommand(p *cli.Program, ledgerd Main, b interface {
	benchmark
	Command() *cobra.Command
}) *cobra.Command {
	command := b.Command()
	command.Args, command.RunE = cobra.NoArgs, runBenchmark(p, b, ledgerd)
	return command
}

// A Main runs the program and returns its exit status, like cmd.Main.
type Main = func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// A benchmark checks its options and then measures.
type benchmark interface {
	Check() error
	Measure(context.Context, measure.Env) error
}

// runBenchmark returns the RunE function of a benchmark's command.
func runBenchmark(p *cli.Program, b benchmark, ledgerd Main) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		if err := b.Check(); err != nil {
			return cli.Usagef("%w", err)
		}
		database, err := benchmarkDatabase(p, command)
		if err != nil {
			return err
		}
		ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
		defer release()
		err = b.Measure(ctx, measure.Env{Stdout: p.Stdout, Stderr: p.Stderr, JSON: p.Global.Output == "json",
			Database: database, Command: ledgerd})
		if err != nil && ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
}

// benchmarkDatabase returns the URL of the database to measure with, or empty for a temporary file.
// That of the environment or of a configuration file is not used: it may be the one of a server.
func benchmarkDatabase(p *cli.Program, command *cobra.Command) (url string, err error) {
	s, err := p.Settings(command)
	if err != nil || s.DatabaseSource != config.FromFlag {
		return "", err
	}
	if !s.Database.IsServer() {
		return "", cli.Usagef("bench takes --database only with a postgres:// URL: without it, it uses a temporary file")
	}
	return string(s.Database), nil
}
