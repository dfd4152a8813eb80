package cmd

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/bench"
)

// newBench returns the command bench. Its benchmarks call ledgerd to run other
// commands of the program.
func newBench(p *program, ledgerd runFunc) *cobra.Command {
	b := new(bench.Core)
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a server is on this machine",
		Long: `Starts a separate server on a temporary database, loads it through its
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
		RunE: p.benchmark(b, ledgerd),
	}
	flags := command.Flags()
	flags.IntVar(&b.Attestations, "attestations", 50_000, "how many attestations to record")
	flags.IntVar(&b.Commits, "commits", 1000, "how many commits get attestations at the same time")
	flags.IntVar(&b.PerCommit, "per-commit", 0, "how many attestations a commit gets before a new one takes its "+
		"place (0: no limit)")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the writing load")
	flags.IntVar(&b.Readers, "readers", 16, "connections of the reading loads")
	flags.DurationVar(&b.ReadingTime, "seconds", 5*time.Second, "how long each reading load lasts")
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database (default: the system's)")
	command.AddCommand(newEmptyHandler(p), newBenchStream(p, ledgerd), newBenchWebhook(p, ledgerd),
		newBenchRadar(p, ledgerd))
	return command
}

// newEmptyHandler returns the hidden command that bench starts next to the server: an
// HTTP server that does nothing.
func newEmptyHandler(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    "empty-handler",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return bench.ServeNothing(p.stdout) },
	}
}

func newBenchStream(p *program, ledgerd runFunc) *cobra.Command {
	b := new(bench.Stream)
	command := &cobra.Command{
		Use:   "stream",
		Short: "Measure the live stream on this machine",
		Long: `Starts a separate server on a temporary database, connects many subscribers
to its live stream, and records attestations through its HTTP API. Server, load
and subscribers share the machine's cores.

Beside it, it measures a bare r3labs/sse server that sends the same messages to
as many subscribers, without storing any: read the figures as ratios to that.
Every figure stands for messages of which none was lost.`,
		Example: `  ledgerd bench stream
  ledgerd bench stream --subscribers 200 --events 5000`,
		Args: cobra.NoArgs,
		RunE: p.benchmark(b, ledgerd),
	}
	flags := command.Flags()
	flags.IntVar(&b.Subscribers, "subscribers", 1000, "how many listen")
	flags.IntVar(&b.Events, "events", 5000, "how many attestations to record as fast as they go")
	flags.IntVar(&b.Slow, "slowdown", 10_000, "how many attestations to record each time to see what listeners cost")
	flags.DurationVar(&b.ReadingTime, "seconds", 10*time.Second, "how long the load with a steady rate lasts")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the writing load")
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database (default: the system's)")
	command.AddCommand(newBareStream(p))
	return command
}

// newBareStream returns the hidden command of the reference that bench stream measures.
func newBareStream(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    "bare-server",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return bench.ServeBareStream(p.stdout) },
	}
}

func newBenchWebhook(p *program, ledgerd runFunc) *cobra.Command {
	b := new(bench.Webhook)
	command := &cobra.Command{
		Use:   "webhook",
		Short: "Measure webhooks on this machine",
		Long: `Starts a separate server on a temporary database and records attestations
through its HTTP API. The server posts their events to receivers on loopback,
which answer at once. Server, load and receivers share the machine's cores.

For the drains, events are queued while no server runs; the time counts from the
start of the server to the last arrival. Every figure stands for deliveries of
which none was lost.`,
		Example: `  ledgerd bench webhook
  ledgerd bench webhook --events 2000 -o json`,
		Args: cobra.NoArgs,
		RunE: p.benchmark(b, ledgerd),
	}
	flags := command.Flags()
	flags.IntVar(&b.Events, "events", 10_000, "how many events to queue for each webhook")
	flags.IntVar(&b.Webhooks, "webhooks", 20, "how many webhooks drain at once")
	flags.IntVar(&b.Single, "single", 500, "how many attestations to record one at a time")
	flags.IntVar(&b.Slow, "slowdown", 10_000, "how many attestations to record each time to see what webhooks cost")
	flags.DurationVar(&b.ReadingTime, "seconds", 20*time.Second,
		"how long a healthy webhook is watched, alone and beside one that hangs")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the writing load")
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database (default: the system's)")
	return command
}

func newBenchRadar(p *program, ledgerd runFunc) *cobra.Command {
	b := new(bench.Radar)
	command := &cobra.Command{
		Use:   "radar",
		Short: "Measure the Conflict Radar on this machine",
		Long: `Starts a separate server on a temporary database and registers commits
through its HTTP API, each with a record of 20 files and 60 hunks. Server and
load share the machine's cores.

First it fills a repo with commits in flight. Then it registers new commits of
their branches, so that as many stay in flight, and in turns as many commits in a
repo where none are, but for one branch for each connection: the ratio tells how
much slower registering becomes by what is in flight.

Then it makes a git repository with a commit that changes many files and pushes
that with commit push, the whole command, to repos where nothing is in flight; in
turns with the git diff-tree that commit push reads. That part needs git.`,
		Example: `  ledgerd bench radar
  ledgerd bench radar --in-flight 1000 --paths 2000 --registrations 500 -o json`,
		Args: cobra.NoArgs,
		RunE: p.benchmark(b, ledgerd),
	}
	flags := command.Flags()
	flags.IntVar(&b.Tips, "in-flight", 10_000, "how many commits are in flight")
	flags.IntVar(&b.Paths, "paths", 20_000, "how many paths the commits change among them")
	flags.IntVar(&b.Registrations, "registrations", 5000,
		"how many commits to register with others in flight, and how many without")
	flags.IntVar(&b.Files, "files", 500, "how many files the commit changes that is pushed")
	flags.IntVar(&b.Pushes, "pushes", 20, "how often it is pushed")
	flags.IntVar(&b.Connections, "connections", 16, "connections of the load")
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database and git repository (default: the system's)")
	return command
}

// A runFunc runs the program and returns its exit status, as Main does.
type runFunc = func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// A benchmark is one that a command runs.
type benchmark interface {
	Check() error
	Measure(context.Context, bench.Env) error
}

// benchmark returns the RunE of a benchmark.
func (p *program) benchmark(b benchmark, ledgerd runFunc) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		if err := b.Check(); err != nil {
			return usagef("%w", err)
		}
		ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
		defer release()
		err := b.Measure(ctx,
			bench.Env{Stdout: p.stdout, Stderr: p.stderr, JSON: p.global.output == "json", Command: ledgerd})
		if err != nil && ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
}
