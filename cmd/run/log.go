package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/transparency"
)

func newLog(p *cli.Program) *cobra.Command {
	return cli.Group("log", "Manage the transparency log of an org", newLogExport(p), newLogNewEpoch(p),
		newLogNewSeed(p))
}

func newLogExport(p *cli.Program) *cobra.Command {
	var e transparency.Export
	command := p.Takes(&cobra.Command{
		Use:   "export [flags]",
		Short: "Write a log as files that any web server can serve",
		Long: `Writes checkpoint, tiles and entries of the transparency log of an org to a
folder, in the layout of C2SP tlog-tiles. Tools for such logs read it as it is,
from the folder or from a web server. The entries tell no more than number, type
and time of each event.

A folder with an earlier export gets what is new. One with another log, or with
another history of this log, is refused. An export that was interrupted can be
repeated.

Reads the database file: run it on the host. It writes nothing to it.`,
		Example: `  ledgerd log export /srv/www/acme-log --org acme`,
		RunE: func(command *cobra.Command, args []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("log export does not take %s: it reads the database", flag)
			}
			if e.Epoch < 0 {
				return cli.Usagef("invalid --epoch %d: epochs count from 1", e.Epoch)
			}
			e.Folder = args[0]
			return exportLog(command, p, e)
		},
	}, "DIR")
	flags := command.Flags()
	flags.StringVar(&e.Org, "org", "", "`org` (default: the only one of the database)")
	flags.IntVar(&e.Epoch, "epoch", 0, "`number` of the epoch (default: the present one)")
	return command
}

// exportLog exports a log and prints what was written.
func exportLog(command *cobra.Command, p *cli.Program, e transparency.Export) error {
	s, err := p.Settings(command)
	if err != nil {
		return err
	}
	ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer release()
	progress := p.NewProgress()
	e.Progress = func(done, total int64) { progress.Show("exporting", done, total) }
	done, err := service.ExportLog(ctx, s, e)
	if progress.Clear(); err != nil {
		return err
	}
	return p.Print(done, func() {
		fmt.Fprintf(p.Stdout, "Exported %s of %s: %s written\nkey  %s\n", terminal.Plural(done.Size, "event"), done.Origin,
			terminal.Plural(int64(done.Files), "file"), done.Key)
	})
}

func newLogNewEpoch(p *cli.Program) *cobra.Command {
	var n transparency.NewEpoch
	var checkpoint string
	command := p.Takes(&cobra.Command{
		Use:   "new-epoch [flags]",
		Short: "Replace a log that cannot be signed any more",
		Long: `Begins a new transparency log for an org, with a new key. The first event of the
new log commits to all events of the old one, to its last known checkpoint and to
the reason. The old log stays as it is, at its last checkpoint in the database.

A log needs this if its key is lost, or if the database was restored from a
backup that is older than its last checkpoint. Bring the newest database or the
key back if you can: all who check the log have to accept the new one.

Reads and writes the database, log.key_dir and log.state_dir: run it on the host.
A server that is running signs the new log within a second.`,
		Example: `  ledgerd log new-epoch acme --reason "Restored the backup of 2026-11-20 after a disk failure"
  ledgerd log new-epoch acme --reason "The host was broken into" --force`,
		RunE: func(command *cobra.Command, args []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("log new-epoch does not take %s: it writes the database", flag)
			}
			if n.Reason == "" {
				return cli.Usagef("--reason is required")
			}
			n.Org = args[0]
			var err error
			if n.Checkpoint, err = readCheckpoint(checkpoint); err != nil {
				return err
			}
			return beginEpoch(command, p, n)
		},
	}, "ORG")
	flags := command.Flags()
	flags.StringVar(&n.Reason, "reason", "", "why, for all who read the log (required)")
	flags.StringVar(&checkpoint, "checkpoint", "",
		"`file` with a signed checkpoint of the old log, such as one that a witness has")
	flags.BoolVar(&n.Force, "force", false, "replace a log that is in order, for instance because its key was stolen")
	return command
}

// readCheckpoint reads a file with a checkpoint. It returns nil if the name is empty.
func readCheckpoint(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read --checkpoint: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, proof.MaxCheckpoint+1))
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("%s is empty", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read --checkpoint: %w", err)
	}
	return text, nil
}

// beginEpoch begins a new log and prints what others have to know of it.
func beginEpoch(command *cobra.Command, p *cli.Program, n transparency.NewEpoch) error {
	s, err := p.Settings(command)
	if err != nil {
		return err
	}
	ctx, release := signal.NotifyContext(context.WithoutCancel(command.Context()), os.Interrupt, syscall.SIGTERM)
	defer release()
	b, err := service.BeginEpoch(ctx, s, n)
	if err != nil {
		return err
	}
	return p.Print(b, func() {
		fmt.Fprintf(p.Stdout, "The log of %s continues as %s\n", b.Org, b.Origin)
		fmt.Fprintf(p.Stdout, "key       %s\nevent     %s\nprevious  %s", b.Key, b.Event, b.Previous)
		if b.Known > 0 {
			fmt.Fprintf(p.Stdout, ", last known with %d events", b.Known)
		}
		fmt.Fprintln(p.Stdout, "\nSend the key to all who check or witness the log.")
	})
}
