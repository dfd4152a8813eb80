package cmd

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/demo"
	"github.com/ledgerd/ledgerd/ledger"
)

func newDemo(p *program) *cobra.Command {
	var o demo.Options
	command := &cobra.Command{
		Use:   "demo",
		Short: "See the ledger at work, on the last commits of this git repository",
		Long: `Starts a server on a throw-away database, makes an org, a repo, keys and tokens,
and takes the last commits of the git work tree it stands in from DRAFT to
DEPLOYED, by signed attestations through the HTTP API. What happens is shown as
the live stream tells it, and as it reaches a webhook, whose receiver checks the
signatures. Outside of a git work tree it makes a small history of its own. The
results it signs are made up.

Then it goes on serving until Ctrl-C. Nothing of it is kept.`,
		Example: "  ledgerd demo\n  ledgerd demo --once",
		Args:    takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			if p.global.url != "" || command.Flags().Changed("database") {
				return usagef("demo takes no --url and no --database: it makes its own")
			}
			if err := ledger.CheckOrg(o.Org); err != nil {
				return err
			}
			o.Out, o.Log = p.stdout, p.stderr
			return demo.Play(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&o.Once, "once", false, "end after the last step")
	flags.StringVar(&o.Org, "org", "demo", "`name` of the org")
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 takes a free one")
	return command
}
