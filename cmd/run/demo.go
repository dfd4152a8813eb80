package run

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/demo"
	"github.com/ledgerd/ledgerd/ledger"
)

func newDemo(p *cli.Program) *cobra.Command {
	var o demo.Options
	command := &cobra.Command{
		Use:   "demo",
		Short: "Take the latest commits of this git repository through all states",
		Long: `Starts a server on a temporary database and creates an org, a repo, keys and
tokens. Then it takes the latest commits of the current git repository from
DRAFT to DEPLOYED, with signed attestations sent to the HTTP API. Each step is
echoed by the live stream and by a webhook receiver that checks the signatures.
Outside a git repository, the demo creates a small sample history. The results
that it signs are invented.

The server then keeps running so you can explore it in a browser; Ctrl-C stops
it and deletes all data.`,
		Example: "  ledgerd demo\n  ledgerd demo --once",
		Args:    cli.Takes(),
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
