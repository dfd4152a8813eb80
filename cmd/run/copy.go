package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/store/transfer"
)

func newCopy(p *cli.Program) *cobra.Command {
	var c transfer.Copy
	command := &cobra.Command{
		Use:   "copy",
		Short: "Copy a ledger from SQLite to PostgreSQL, or back",
		Long: `Copies all rows of a ledger to an empty database: from a file to a database of
PostgreSQL, from there to a new file, or from one PostgreSQL to another.

The source is only read, and the copy is one moment of it. A server may use it,
but what it records later is not in the copy: stop it first. The target must not
contain a ledger: a file must not exist. At the end the copy is compared with
the source: every row, and the root of each transparency log. If anything fails,
there is no file, and the database is empty.

Both databases have the schema of this release; tables are created if there are
none. Text with a zero byte or invalid UTF-8, which PostgreSQL cannot store,
ends the copy with the name of the row. The keys in log.key_dir are not part of
the copy: the new server needs the same folder.

A password in a URL is visible to other users of this machine: put it in the
environment variable PGPASSWORD or the file ~/.pgpass.

EXIT STATUS
  0  the ledger is copied, and the copy is the same
  1  it is not copied, and the target contains no ledger
  2  wrong flags or arguments`,
		Example: `  ledgerd copy --from ledger.db --to postgres://ledgerd@db.example/ledger
  ledgerd copy --from postgres://ledgerd@db.example/ledger --to ledger.db`,
		RunE: func(command *cobra.Command, _ []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("copy does not take %s: use --from and --to", flag)
			}
			if command.Flags().Changed("database") {
				return cli.Usagef("copy does not take --database: use --from and --to")
			}
			if err := c.Check(); err != nil {
				return cli.Usagef("%w", err)
			}
			ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			return runCopy(ctx, p, c)
		},
	}
	command.Flags().StringVar(&c.From, "from", "", "`file` or postgres:// URL of the ledger")
	command.Flags().StringVar(&c.To, "to", "", "`file` that does not exist, or postgres:// URL of an empty database")
	flagvalue.Require(command, "from", "to")
	return command
}

// runCopy copies a ledger and prints what was copied.
func runCopy(ctx context.Context, p *cli.Program, c transfer.Copy) error {
	progress := p.NewProgress()
	c.Progress = func(step string, rows int64) { progress.Show(fmt.Sprintf("%s: %d rows", step, rows), 0, 0) }
	done, err := c.Run(ctx)
	progress.Clear()
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	return p.Confirm(done, func() {
		fmt.Fprintf(p.Stdout, "%s: copied and compared (orgs %d, events %d, rows %d, logs %d) in %.1f s\n",
			terminal.Printable(done.To), done.Orgs, done.Events, done.Rows, done.Logs, done.Seconds)
	})
}
