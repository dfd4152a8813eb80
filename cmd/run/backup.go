package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

func newBackup(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:   "backup",
		Short: "Write a consistent copy of the database, also while it is served",
		Long: `Copies the database to a new file, while a server uses it or not. The copy is one
moment of the database, with everything that was answered before the command
began. The file gets its name when it is complete, its pages are verified, and it
is on disk; it can be read by its owner only. An existing file is never replaced.

The keys of the transparency logs, in log.key_dir, are not part of the copy: keep
a copy of them elsewhere, and not with the backups.

A server writes backups by itself with the setting backup.folder. 'ledgerd check'
checks what is in a backup, and 'ledgerd restore' makes a database from it.

Reads the database file: run it on the host.`,
		Example: `  ledgerd backup /backups/ledger-2026-11-22.db
  ledgerd backup /backups/ledger.db --config /etc/ledgerd/config.yaml`,
		RunE: func(command *cobra.Command, args []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("backup does not take %s: it reads the database file", flag)
			}
			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			if s.Database.IsServer() {
				return errors.New("backup copies a database file: back up PostgreSQL with its own tools, such as " +
					"pg_basebackup or pg_dump, and check a restored copy with 'ledgerd check'")
			}
			if err := service.CheckExists(string(s.Database), "--server"); err != nil {
				return err
			}
			ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			return runBackup(ctx, p, string(s.Database), args[0])
		},
	}, "FILE")
}

// runBackup writes a backup and prints its name and size.
func runBackup(ctx context.Context, p *cli.Program, database, file string) error {
	progress := p.NewProgress()
	b := sqlite.Backup{From: database, To: file, Progress: func(done, total int64) {
		progress.Show("copying, in bytes", done, total)
	}}
	size, err := b.Run(ctx)
	progress.Clear()
	if err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	done := struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}{file, size}
	return p.Confirm(done, func() {
		fmt.Fprintf(p.Stdout, "%s: %s copied and verified\n", terminal.Printable(file), terminal.Plural(size, "byte"))
	})
}
