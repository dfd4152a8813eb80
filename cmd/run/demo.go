package run

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/demo"
	"github.com/ledgerd/ledgerd/ledger"
)

func newDemo(p *cli.Program) *cobra.Command {
	var o demo.Options
	command := &cobra.Command{
		Use:   "demo",
		Short: "Play three weeks of a team's work",
		Long: `Starts a server on a temporary database, and plays three weeks of a team's work
in three repos through the HTTP API: signed tests, reviews and deployments, but
also branches that conflict, a failing test, a deployment that the policy does
not allow, a rollback, and a webhook whose receiver is down. Names come from the
current git repository, if there is one; what happens is made up.

It then takes one more commit from DRAFT to DEPLOYED, and prints what the live
stream and a webhook receiver that checks signatures report. The server keeps
running so you can explore it in a browser; Ctrl-C stops it and deletes all data.`,
		Example: "  ledgerd demo\n  ledgerd demo --once",
		RunE: func(command *cobra.Command, _ []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" || command.Flags().Changed("database") {
				return cli.Usagef("demo does not take %s or --database: it starts its own server", flag)
			}
			if err := ledger.CheckOrg(o.Org); err != nil {
				return err
			}
			o.Out, o.Log = p.Stdout, p.Stderr
			return demo.Play(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&o.Once, "once", false, "exit after the last step")
	flags.StringVar(&o.Org, "org", "demo", "`name` of the org")
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 picks a free port")
	return command
}
