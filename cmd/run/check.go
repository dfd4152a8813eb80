package run

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/transparency"
)

// A checking is what the flags of check say.
type checking struct {
	seen    []string // files
	witness bool
}

func newCheck(p *cli.Program) *cobra.Command {
	var k checking
	command := &cobra.Command{
		Use:   "check",
		Short: "Check that nothing in a database was changed or damaged",
		Long: `Checks a database file on its host: the file itself, and for each org the
events, their leaves in the transparency log, the tiles, the stored checkpoint,
the signatures of all attestations, the states of commits, contracts, identities,
deliveries and counters. It prints a line for each problem, at most 20 of a kind.

It writes nothing. It can run while a server uses the database, and on a copy or
a backup. An intact database is no proof that it is the original one: its owner
can write another history, with tiles and checkpoints that fit.

So the logs are compared with checkpoints that were kept elsewhere, too: the last
signed ones in log.state_dir, if it is there, those of --seen, and with --witness
what the witnesses of log.policy have cosigned.

EXIT STATUS
  0  nothing is wrong
  1  the database could not be checked
  2  wrong flags or arguments
  3  nothing is wrong, but something was not checked: the server has not logged
     it yet after an upgrade, only a newer version of ledgerd knows it, or the
     radar is going to scan it or has reached a limit
  4  there are problems`,
		Example: `  ledgerd check --database ledger.db
  ledgerd check --config /etc/ledgerd/config.yaml -o json
  ledgerd check --seen acme.checkpoint --witness`,
		RunE: func(command *cobra.Command, _ []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("check does not take %s: it reads the database", flag)
			}
			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			o, err := k.options(p, s)
			if err != nil {
				return err
			}
			return runCheck(ctx, p, s.Database, o)
		},
	}
	command.Flags().StringArrayVar(&k.seen, "seen", nil, "`file` with a checkpoint that the log must extend, or with "+
		"what 'ledgerd verify' remembers of it (repeatable)")
	command.Flags().BoolVar(&k.witness, "witness", false, "ask the witnesses of log.policy what they have cosigned")
	return command
}

// options reads the checkpoints that are known.
func (k checking) options(p *cli.Program, s config.Settings) (o check.Options, err error) {
	o.ParseRoot, o.RadarMemory = sigstore.ParseRoot, int64(s.RadarMemory)
	o.SecretKeys, _ = s.Webhooks.LoadSecretKeys() // without them, the report lists signing secrets as not checked
	for _, file := range k.seen {
		text, err := p.ReadFile(file)
		if err != nil {
			return o, err
		}
		o.Seen = append(o.Seen, check.Seen{What: file, Signed: seen.Checkpoint(text)})
	}
	last, err := transparency.LastCheckpoints(s.StateDir())
	if err != nil {
		return o, err
	}
	for file, signed := range last {
		o.Seen = append(o.Seen, check.Seen{What: file, Signed: signed, IsLast: true})
	}
	if k.witness {
		o.Others, err = service.AskWitnesses(s)
	}
	return o, err
}

// runCheck checks a database and prints the report.
func runCheck(ctx context.Context, p *cli.Program, database config.Database, o check.Options) error {
	progress := p.NewProgress()
	o.Progress = func(step string, done, total int64) { progress.Show("checking the "+step, done, total) }
	report, err := check.Run(ctx, string(database), o)
	progress.Clear()
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}

	if err := p.Print(report, func() { printReport(p, database.String(), report) }); err != nil {
		return err
	}
	if report.Found > 0 {
		return &cli.ExitError{Status: cli.ExitNotReached}
	}
	if !report.Complete {
		return &cli.ExitError{Status: cli.ExitIncomplete}
	}
	return nil
}

// printReport prints a report for people.
func printReport(p *cli.Program, database string, r check.Report) {
	for _, problem := range r.Problems {
		terminal.Printf(p.Stdout, "%s\n", problem)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.More)) {
		terminal.Printf(p.Stdout, "%s: %d more\n", kind, r.More[kind])
	}
	for _, line := range r.Unchecked {
		terminal.Printf(p.Stdout, "not checked: %s\n", line)
	}

	verdict := "OK"
	if r.Found > 0 {
		verdict = terminal.Plural(r.Found, "problem")
	}
	terminal.Printf(p.Stdout, "%s: %s (orgs %d, events %d, attestations %d, commits %d, tiles %d)\n", database, verdict,
		r.Orgs, r.Events, r.Attestations, r.Commits, r.Tiles)
}
