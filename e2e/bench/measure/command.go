package measure

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command returns the command of the benchmark, without what it runs.
func (b *Crowd) Command() *cobra.Command {
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
		Example: `  ledgerd bench crowd
  ledgerd bench crowd --only streams --rate 60 --slowdown 0
  ledgerd bench crowd --streams 500 --unread 100 --viewers 20 -o json`,
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
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database (default: the system's temporary folder)")
	command.AddCommand(&cobra.Command{Use: "clients", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return RunCrowd(c.Context(), c.InOrStdin(), c.OutOrStdout())
		}})
	return command
}

// Command returns the command of the benchmark, without what it runs.
func (b *Gate) Command() *cobra.Command {
	command := &cobra.Command{
		Use:   "gate",
		Short: "Benchmark what 'ledgerd gate' asks, by commit and by artifact",
		Long: `Starts its own server on a temporary database with --attestations attestations,
ten for each commit. One of the ten names an image that was built from the
commit. Then it reads commit records, as 'ledgerd gate' does, and asks for the
images, as 'ledgerd gate --artifact' does, in turns. Server and load share the
machine's cores.

RATIO compares the rate with that of the commit records.`,
		Example: `  ledgerd bench gate
  ledgerd bench gate --attestations 1000000 --seconds 10s -o json`,
	}
	b.addFlags(command.Flags())
	return command
}

func (b *Gate) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&b.Attestations, "attestations", 50_000, "attestations in the database")
	flags.IntVar(&b.Connections, "connections", 64, "connections of the write load")
	flags.IntVar(&b.Readers, "readers", 16, "connections of the read loads")
	flags.DurationVar(&b.ReadingTime, "seconds", 5*time.Second, "duration of each of the six read loads")
	flags.StringVar(&b.Dir, "dir", "", "folder for the temporary database (default: the system's temporary folder)")
}

// Command returns the command of the benchmark, without what it runs.
func (b *Proof) Command() *cobra.Command {
	command := &cobra.Command{
		Use:   "proof",
		Short: "Benchmark proofs of events in the transparency log",
		Long: `Starts its own server on a temporary database with --attestations attestations,
ten for each commit. Then it reads commit records, and the checkpoint of the log
with the proof of an event, in turns. Server and load share the machine's cores.

RATIO compares the rate of checkpoints with proofs with that of the commit
records.`,
		Example: `  ledgerd bench proof
  ledgerd bench proof --attestations 1000000 --seconds 10s -o json`,
	}
	b.addFlags(command.Flags())
	return command
}
