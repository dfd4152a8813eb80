package start

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/contexts"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newContext(p *cli.Program) *cobra.Command {
	return cli.Group("context", "Choose between servers that you are logged in to",
		newContextList(p), newContextUse(p), newContextRemove(p))
}

func newContextList(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the servers that you are logged in to, without tokens",
		Example: "  ledgerd context list",
		RunE: func(*cobra.Command, []string) error {
			list, err := contexts.Load()
			if err != nil {
				return err
			}
			type entry struct {
				contexts.Context
				Current bool `json:"current"`
			}
			all := func(yield func(entry, error) bool) {
				for _, c := range list.Contexts {
					if !yield(entry{c, c.Name == list.Current}, nil) {
						return
					}
				}
			}
			return cli.PrintList(p, all, 0, []string{"CURRENT", "NAME", "SERVER", "ORG"}, func(e entry) []any {
				return []any{map[bool]string{true: "*"}[e.Current], e.Name, e.Server, e.Org}
			})
		},
	}
}

func newContextUse(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:     "use",
		Short:   "Make a context the current one",
		Example: "  ledgerd context use acme@ledger.example",
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := contexts.Load()
			if err != nil {
				return err
			}
			c, ok := list.Find(args[0])
			if !ok {
				return fmt.Errorf("there is no context %q: see 'ledgerd context list'", args[0])
			}
			list.Current = c.Name
			if err := list.Save(); err != nil {
				return err
			}
			return p.Print(c, func() { terminal.Printf(p.Stdout, "Using %s: %s of %s\n", c.Name, c.Org, c.Server) })
		},
	}, "NAME")
}

func newContextRemove(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:     "remove",
		Short:   "Remove a context and its token from this machine",
		Example: "  ledgerd context remove acme@ledger.example",
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := contexts.Load()
			if err != nil {
				return err
			}
			return forget(p, list, args[0])
		},
	}, "NAME")
}
