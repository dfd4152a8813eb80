package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/e2e/bench/measure"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
)

// newRoot returns the command bench, which measures recording and reading, with its subcommands.
func newRoot(p *program) *cobra.Command {
	b := new(measure.Core)
	command := &cobra.Command{
		Use:   "bench",
		Short: "Benchmark a server on this machine",
		Long: `Starts a server on a temporary database, loads it through the HTTP API and
prints the throughput and latency. Server and load share the machine's cores.

The server is the program that --ledgerd names, such as another release. By
default, bench builds the one of the checkout that it is run in.

First it measures the machine: an HTTP handler that does nothing, Ed25519
verifications and fsyncs. Read the figures as ratios to those.

Then it records --attestations attestations, each of them signed, new and on disk
before the server responds. It reads pages and commit records, and restarts the
server on the file.

The attestations go to --commits commits in turn. With --per-commit, a commit
with this many attestations is replaced by a new one, as in an active repo.`,
		Example: `  go run ./e2e/bench
  go run ./e2e/bench --attestations 1000000 --seconds 10s
  go run ./e2e/bench --attestations 1000000 --commits 50 --per-commit 20
  go run ./e2e/bench --ledgerd ~/ledgerd-0.1.0/ledgerd`,
		Args:          cobra.NoArgs,
		RunE:          p.runs(b),
		SilenceUsage:  true,
		SilenceErrors: true,

		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "go run ./e2e/bench"},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	p.addFlags(command)
	command.SetFlagErrorFunc(flagvalue.Error)
	flags := command.Flags()
	flags.IntVar(&b.Attestations, "attestations", 50_000, "attestations to record")
	flags.IntVar(&b.Commits, "commits", 1000, "commits that get attestations at the same time")
	flags.IntVar(&b.PerCommit, "per-commit", 0, "attestations after which a commit is replaced by a new one "+
		"(0: no limit)")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	flags.IntVar(&b.Readers, "readers", 16, "connections of the read loads")
	flags.DurationVar(&b.ReadingTime, "seconds", 5*time.Second, "duration of each read load")
	command.AddCommand(newStream(p), newWebhook(p), newRadar(p), newCrowd(p), newGate(p), newProof(p), newReplicas(p),
		newHidden(p, "empty-handler", func(context.Context) error { return measure.ServeNothing(p.stdout) }))
	return command
}

// newHidden returns a command that a benchmark starts as a separate process.
func newHidden(p *program, use string, run func(ctx context.Context) error) *cobra.Command {
	return &cobra.Command{Use: use, Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p.started = true
			return run(c.Context())
		}}
}

func newStream(p *program) *cobra.Command {
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
		Example: `  go run ./e2e/bench stream
  go run ./e2e/bench stream --subscribers 200 --events 5000`,
		Args: cobra.NoArgs,
		RunE: p.runs(b),
	}
	flags := command.Flags()
	flags.IntVar(&b.Subscribers, "subscribers", 1000, "number of subscribers")
	flags.IntVar(&b.Events, "events", 5000, "attestations to record at full speed")
	flags.IntVar(&b.Slow, "slowdown", 10_000, "attestations to record with and without subscribers, to measure their cost")
	flags.DurationVar(&b.ReadingTime, "seconds", 10*time.Second, "duration of the load at a steady rate")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	command.AddCommand(newHidden(p, "bare-server", func(context.Context) error {
		return measure.ServeBareStream(p.stdout)
	}))
	return command
}

func newWebhook(p *program) *cobra.Command {
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
		Example: `  go run ./e2e/bench webhook
  go run ./e2e/bench webhook --events 2000 -o json`,
		Args: cobra.NoArgs,
		RunE: p.runs(b),
	}
	flags := command.Flags()
	flags.IntVar(&b.Events, "events", 10_000, "events to queue for each webhook")
	flags.IntVar(&b.Webhooks, "webhooks", 20, "webhooks that drain at the same time")
	flags.IntVar(&b.Single, "single", 500, "attestations to record one at a time")
	flags.IntVar(&b.Slow, "slowdown", 10_000, "attestations to record, with and without webhooks, to measure their cost")
	flags.DurationVar(&b.ReadingTime, "seconds", 20*time.Second,
		"how long to measure a healthy webhook, alone and next to one that hangs")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	return command
}

func newRadar(p *program) *cobra.Command {
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
		Example: `  go run ./e2e/bench radar
  go run ./e2e/bench radar --in-flight 1000 --paths 2000 --registrations 500 -o json`,
		Args: cobra.NoArgs,
		RunE: p.runs(b),
	}
	flags := command.Flags()
	flags.IntVar(&b.Tips, "in-flight", 10_000, "commits in flight")
	flags.IntVar(&b.Paths, "paths", 20_000, "distinct paths that these commits change")
	flags.IntVar(&b.Registrations, "registrations", 5000, "commits to register in each of the two repos")
	flags.IntVar(&b.Files, "files", 500, "files that the registered commit changes")
	flags.IntVar(&b.Pushes, "pushes", 20, "how often to register it")
	flags.IntVar(&b.Connections, "connections", 16, "connections of the load")
	return command
}

func newCrowd(p *program) *cobra.Command {
	b := new(measure.Crowd)
	command := &cobra.Command{
		Use:   "crowd",
		Short: "Benchmark recording while hostile clients are connected",
		Long: `Starts its own server on a temporary database with --attestations attestations.
Then it records --rate attestations a second and requests /readyz, first with no
other clients, then with each crowd of clients alone, and with all together:

  readers   read lists with filters that match nothing
  bodies    announce large bodies, send 250 bytes of them and wait
  loris     send one header line after the other, and never a whole request
  streams   follow the live stream; --unread of them never read
  viewers   view live pages: like the script of the pages, a viewer follows the
            stream and fetches its page again after events
  large     attest and read a commit with the most evidence and requirements
  together  all of these

Latencies count from the moment at which a request was due. Each crowd meets a
new server and runs in a process of its own; all share the machine's cores. RATIO
compares a p99 with the same without a crowd, and CPU is the use of one core.
The lines below a crowd are the responses to its clients. The benchmark fails if
a stream that is read loses a message.
At last it records as fast as possible, in rounds with and without viewers.`,
		Example: `  go run ./e2e/bench crowd
  go run ./e2e/bench crowd --only streams --rate 60 --slowdown 0
  go run ./e2e/bench crowd --streams 500 --unread 100 --viewers 20 -o json`,
		Args: cobra.NoArgs,
		RunE: p.runs(b),
	}
	flags := command.Flags()
	flags.IntVar(&b.Attestations, "attestations", 100_000, "attestations in the database")
	flags.StringSliceVar(&b.Only, "only", nil, "measure only these crowds")
	flags.IntVar(&b.HostileReaders, "readers", 12, "number of hostile readers")
	flags.IntVar(&b.Bodies, "bodies", 1000, "number of half-sent bodies")
	flags.IntVar(&b.Loris, "loris", 2000, "number of slow-loris connections")
	flags.IntVar(&b.Streams, "streams", 5000, "number of streams")
	flags.IntVar(&b.Unread, "unread", 1000, "how many of the streams are never read")
	flags.IntVar(&b.Viewers, "viewers", 200, "number of viewers")
	flags.IntVar(&b.Large, "large", 8, "number of clients of the large commit")
	flags.IntVar(&b.Rate, "rate", 40, "attestations to record a second")
	flags.DurationVar(&b.ReadingTime, "seconds", 20*time.Second, "how long to measure with each crowd")
	flags.IntVar(&b.Connections, "connections", 8, "connections of the write load as fast as possible")
	flags.IntVar(&b.Slow, "slowdown", 10_000, "attestations to record with and without viewers (0: leave this part out)")
	command.AddCommand(newHidden(p, "clients", func(ctx context.Context) error {
		return measure.RunCrowd(ctx, p.stdin, p.stdout)
	}))
	return command
}

func newGate(p *program) *cobra.Command {
	b := new(measure.Gate)
	command := &cobra.Command{
		Use:   "gate",
		Short: "Benchmark what 'ledgerd gate' asks, by commit and by artifact",
		Long: `Starts its own server on a temporary database with --attestations attestations,
ten for each commit. One of the ten names an image that was built from the
commit. Then it reads commit records, as 'ledgerd gate' does, and asks for the
images, as 'ledgerd gate --artifact' does, in turns. Server and load share the
machine's cores.

RATIO compares the rate with that of the commit records.`,
		Example: `  go run ./e2e/bench gate
  go run ./e2e/bench gate --attestations 1000000 --seconds 10s -o json`,
		Args: cobra.NoArgs,
		RunE: p.runs(b),
	}
	addGateFlags(command.Flags(), b)
	return command
}

// addGateFlags defines the flags of gate and proof.
func addGateFlags(flags *pflag.FlagSet, b *measure.Gate) {
	flags.IntVar(&b.Attestations, "attestations", 50_000, "attestations in the database")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	flags.IntVar(&b.Readers, "readers", 16, "connections of the read loads")
	flags.DurationVar(&b.ReadingTime, "seconds", 5*time.Second, "duration of each of the six read loads")
}

func newProof(p *program) *cobra.Command {
	b := new(measure.Proof)
	command := &cobra.Command{
		Use:   "proof",
		Short: "Benchmark proofs of events in the transparency log",
		Long: `Starts its own server on a temporary database with --attestations attestations,
ten for each commit. Then it reads commit records, and the checkpoint of the log
with the proof of an event, in turns. Server and load share the machine's cores.

RATIO compares the rate of checkpoints with proofs with that of the commit
records.`,
		Example: `  go run ./e2e/bench proof
  go run ./e2e/bench proof --attestations 1000000 --seconds 10s -o json`,
		Args: cobra.NoArgs,
		RunE: p.runs(b),
	}
	addGateFlags(command.Flags(), &b.Gate)
	return command
}

func newReplicas(p *program) *cobra.Command {
	b := new(measure.Replicas)
	command := &cobra.Command{
		Use:   "replicas",
		Short: "Benchmark servers that share a PostgreSQL database",
		Long: `Starts servers on a temporary schema of the database that --database names, and
records attestations: for one org and for --orgs, on one server and on two, and
on a server whose round trips to the database take 0.5 ms longer. Servers, load
and the database, if it is on this machine, share the machine's cores.

Then it measures the time from POST on one server to arrival on a stream of the
other, and how long an org waits for its attestations on one server while
another org is recorded as fast as possible on the other. For comparison, the
same while the busy org is of another ledger in the same PostgreSQL server.

RATIO compares a rate or a p99 with that of the line it names.`,
		Example: `  go run ./e2e/bench replicas --database 'postgres://ledgerd@/ledger?host=/run/postgresql'
  go run ./e2e/bench replicas --database postgres://ledgerd@db.example/ledger --orgs 100 -o json`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if p.database == "" {
				return errors.New("servers can share only a PostgreSQL database: name one with --database")
			}
			return nil
		},
		RunE: p.runs(b),
	}
	flags := command.Flags()
	flags.IntVar(&b.Attestations, "attestations", 10_000, "attestations of each round, of which there are three")
	flags.IntVar(&b.Orgs, "orgs", 16, "number of orgs")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	flags.DurationVar(&b.ReadingTime, "seconds", 5*time.Second, "how long a round measures times")
	network := newHidden(p, "network", func(ctx context.Context) error {
		return measure.ServeNetwork(ctx, p.stdout, p.database)
	})
	command.AddCommand(network)
	return command
}
