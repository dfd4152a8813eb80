package run

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/backup"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
)

func newRestore(p *cli.Program) *cobra.Command {
	r := backup.Restore{ParseRoot: sigstore.ParseRoot}
	command := p.Takes(&cobra.Command{
		Use:   "restore",
		Short: "Make a database from a backup",
		Long: `Copies a backup to the database of the configuration, which must not exist: move
an old one away first, with its -wal and -shm files. The backup itself is only
read.

Before the copy gets its name, it is checked as by 'ledgerd check', and its
schema is migrated if an earlier release wrote it. Of a backup by an earlier
release only the pages are checked: run 'ledgerd check' afterwards. It prints
the last event of each org in the backup; whatever came later is lost. A client
of the stream that resumes after a later event gets a message that it is gone.

If the transparency logs were signed beyond the backup, the server signs them no
longer, until a newer database is back or 'ledgerd log new-epoch' replaces them.

EXIT STATUS
  0  the database is restored
  1  it could not be restored, and nothing has changed
  2  wrong flags or arguments
  4  the backup is damaged or was changed, and nothing has changed`,
		Example: `  ledgerd restore /backups/ledger-2026-11-22.db --database ledger.db
  ledgerd restore /backups/ledger.db --config /etc/ledgerd/config.yaml`,
		RunE: func(command *cobra.Command, args []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("restore does not take %s: it writes the database file", flag)
			}
			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			if s.Database.IsServer() {
				return errors.New("restore writes a database file: restore PostgreSQL with its own tools, and check the copy " +
					"with 'ledgerd check'")
			}
			r.File, r.Database, r.By = args[0], string(s.Database), service.HostActor()
			ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			return runRestore(ctx, p, r)
		},
	}, "FILE")
	command.Flags().BoolVar(&r.Quick, "quick", false, "check only the file, and not what it contains")
	return command
}

// runRestore restores a backup and prints what it has.
func runRestore(ctx context.Context, p *cli.Program, r backup.Restore) error {
	progress := p.NewProgress()
	r.Progress = progress.Show
	done, err := r.Run(ctx)
	progress.Clear()
	if damaged, ok := errors.AsType[*backup.DamagedError](err); ok {
		if err := p.Print(damaged.Report, func() { printReport(p, r.File, damaged.Report) }); err != nil {
			return err
		}
		return &cli.ExitError{Status: cli.ExitNotReached}
	}
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	return p.Print(done, func() { printRestored(p, done) })
}

// printRestored prints what a restored database has, for people.
func printRestored(p *cli.Program, done backup.Restored) {
	checked := "checked"
	if !done.Checked {
		checked = "not checked but for its pages: run 'ledgerd check'"
	}
	terminal.Printf(p.Stdout, "%s: restored (%s)\n", done.Database, checked)
	for _, org := range done.Orgs {
		if org.Last == "" {
			terminal.Printf(p.Stdout, "%s  no event\n", org.Org)
			continue
		}
		terminal.Printf(p.Stdout, "%s  %s, the last %s of %s\n", org.Org, terminal.Plural(org.Events, "event"), org.Last,
			org.At)
	}
}
