package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/store/check"
)

func newCheck(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check that nothing in a database was changed or damaged",
		Long: `Checks a database file on its host: the file itself, and for each org the
events, their leaves in the transparency log, the tiles, the stored checkpoint,
the signatures of all attestations, the states of commits, contracts, identities
and counters. It prints a line for each problem, at most 20 of a kind.

It writes nothing. It can run while a server uses the database, and on a copy or
a backup. An intact database is no proof that it is the original one: its owner
can write another history, with tiles and checkpoints that fit.

EXIT STATUS
  0  nothing is wrong
  1  the database could not be checked
  2  wrong flags or arguments
  4  there are problems`,
		Example: `  ledgerd check --database ledger.db
  ledgerd check --config /etc/ledgerd/config.yaml -o json`,
		Args: cli.Takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("check does not take %s: it reads the database file", flag)
			}
			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			return runCheck(ctx, p, s.Database)
		},
	}
}

// runCheck checks a database and prints the report.
func runCheck(ctx context.Context, p *cli.Program, database string) error {
	progress := p.NewProgress()
	report, err := check.Run(ctx, database, check.Options{Progress: func(step string, done, total int64) {
		progress.Show("checking the "+step, done, total)
	}})
	progress.Clear()
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}

	if err := p.Print(report, func() { printReport(p, database, report) }); err != nil {
		return err
	}
	if report.Found > 0 {
		return &cli.ExitError{Status: cli.ExitNotReached}
	}
	return nil
}

// printReport prints a report for people.
func printReport(p *cli.Program, database string, r check.Report) {
	for _, problem := range r.Problems {
		fmt.Fprintln(p.Stdout, terminal.Printable(problem.String()))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.More)) {
		fmt.Fprintf(p.Stdout, "%s: %d more\n", kind, r.More[kind])
	}
	for _, line := range r.Unchecked {
		fmt.Fprintf(p.Stdout, "not checked: %s\n", terminal.Printable(line))
	}

	verdict := "OK"
	if r.Found > 0 {
		verdict = fmt.Sprintf("%d problems", r.Found)
	}
	fmt.Fprintf(p.Stdout, "%s: %s (orgs %d, events %d, attestations %d, commits %d, tiles %d)\n",
		terminal.Printable(database), verdict, r.Orgs, r.Events, r.Attestations, r.Commits, r.Tiles)
}
