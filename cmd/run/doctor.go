package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/doctor"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newDoctor(p *cli.Program) *cobra.Command {
	var acceptClock, preview bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find what would trouble a start of the server",
		Long: `Examines the host for the server with these settings: the configuration, the
database and its schema, permissions, free disk space, the folders of backups
and keys, the clock, the addresses to listen on, and the receivers of active
webhooks, to which it connects without sending anything.

It can run next to a server, and before an upgrade or a restart. Run it as the
user of the server. Without --accept-clock, it changes nothing. It does not look
for damage in the database: 'ledgerd check' does.

A server records nothing while the system clock is hours behind the newest
record, or has jumped ahead by hours. If the clock is right, --accept-clock says
so, to running servers as well: their time follows it, and states are derived
again. Nothing is examined then.

Before an upgrade, --preview of the new release lists which recorded statements
it will read otherwise, and how. It also lists claims of merges by an earlier
release by which reviews may carry past an unmerged branch. Give --database a
copy or the database itself. Only a copy in a temporary folder is changed.
Nothing else is examined then.

EXIT STATUS
  0  nothing, or only warnings
  1  the settings are invalid, or the command was interrupted
  2  wrong flags or arguments
  4  there are problems`,
		Example: `  ledgerd doctor --config /etc/ledgerd/config.yaml
  sudo -u ledgerd ledgerd doctor --config /etc/ledgerd/config.yaml -o json
  ledgerd doctor --preview --database /var/backups/ledger.db
  ledgerd doctor --accept-clock --config /etc/ledgerd/config.yaml`,
		RunE: func(command *cobra.Command, _ []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("doctor does not take %s: it examines this host", flag)
			}
			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			if acceptClock {
				return runAcceptClock(ctx, p, s)
			}
			if preview {
				findings, err := doctor.Preview(ctx, s)
				return printFindings(ctx, p, findings, err)
			}
			return printFindings(ctx, p, doctor.Examine(ctx, s, time.Now()), nil)
		},
	}
	c.Flags().BoolVar(&acceptClock, "accept-clock", false,
		"say that the system clock is right, although it is behind the newest record")
	c.Flags().BoolVar(&preview, "preview", false,
		"list statements that this release would read otherwise, and claims that may carry past unmerged branches")
	c.MarkFlagsMutuallyExclusive("accept-clock", "preview")
	return c
}

// runAcceptClock accepts the system clock, and prints what it is.
func runAcceptClock(ctx context.Context, p *cli.Program, s config.Settings) error {
	a, err := service.AcceptClock(ctx, s)
	if err != nil {
		return err
	}
	return p.Confirm(a, func() {
		fmt.Fprintf(p.Stdout, "Accepted the system clock, which shows %s. The newest record is of %s.\n", a.At, a.Newest)
	})
}

// printFindings prints the findings of an examination that has ended with err.
func printFindings(ctx context.Context, p *cli.Program, findings []doctor.Finding, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	count := map[doctor.Level]int{}
	for _, f := range findings {
		count[f.Level]++
	}

	record := struct {
		Problems int              `json:"problems"`
		Warnings int              `json:"warnings"`
		Findings []doctor.Finding `json:"findings"`
	}{count[doctor.Problem], count[doctor.Warning], findings}
	err = p.Print(record, func() {
		for _, f := range findings {
			fmt.Fprintf(p.Stdout, "%-8s %-14s %s\n", f.Level, f.Check, terminal.Printable(f.Text))
		}
		fmt.Fprintf(p.Stdout, "%s, %s\n", terminal.Plural(int64(record.Problems), "problem"),
			terminal.Plural(int64(record.Warnings), "warning"))
	})
	if err == nil && record.Problems > 0 {
		err = &cli.ExitError{Status: cli.ExitNotReached}
	}
	return err
}
