package manage

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func newTrustedRoot(p *cli.Program) *cobra.Command {
	return cli.Group("trusted-root", "Manage the trusted roots that verify keyless Sigstore bundles",
		newTrustedRootSet(p), newTrustedRootList(p), newTrustedRootShow(p), newTrustedRootRemove(p))
}

func newTrustedRootSet(p *cli.Program) *cobra.Command {
	var org, file string
	command := p.Takes(&cobra.Command{
		Use:   "set",
		Short: "Set a trusted root, or its next version",
		Long: `Sets a trusted root: the certificate authorities, transparency logs and
timestamp authorities of a Sigstore instance, as its file trusted_root.json has
them. If the trusted root exists, the file is its next version. Bundles are
verified with it from now on. What was recorded before stays and still counts.

The ledger fetches nothing. When an instance gets new keys, set its new file.`,
		Example: `  ledgerd trusted-root set public-good --org acme --file trusted_root.json`,
		RunE: func(command *cobra.Command, args []string) error {
			document, err := p.ReadFile(file)
			if err != nil {
				return err
			}
			return p.WithOrg(command, org, func(ctx context.Context, c *cli.Connection, org string) error {
				r, err := c.SetTrustedRoot(ctx, org, args[0], document)
				if err != nil {
					return err
				}
				return p.Confirm(r, func() {
					terminal.Printf(p.Stdout, "Version %d of the trusted root %s is in effect in %s\n", r.Version, r.Name, r.Org)
				})
			})
		},
	}, "NAME")
	cli.OrgFlag(command, &org)
	command.Flags().StringVar(&file, "file", "", "trusted root, a JSON `file`; - is standard input")
	flagvalue.Require(command, "file")
	return command
}

func newTrustedRootList(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the versions of the trusted roots of an org",
		Example: "  ledgerd trusted-root list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"NAME", "VERSION", "DIGEST", "CREATED", "REMOVED"}
		return cli.PrintList(p, c.TrustedRoots(ctx, org), 0, columns, func(r identity.TrustedRoot) []any {
			removed := "no"
			if r.Removed {
				removed = "yes"
			}
			return []any{r.Name, r.Version, ledger.Short(r.Digest), r.CreatedAt, removed}
		})
	})
}

func newTrustedRootShow(p *cli.Program) *cobra.Command {
	var version int
	command := p.ForOrg(&cobra.Command{
		Use:     "show",
		Short:   "Print the document of a trusted root",
		Long:    "Prints the document of a trusted root, as it was set; with -o json, the record.",
		Example: "  ledgerd trusted-root show public-good --org acme --version 1",
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		r, err := c.TrustedRoot(ctx, org, args[0], version)
		if err != nil {
			return err
		}
		return p.Print(r, func() {
			fmt.Fprintln(p.Stdout, strings.TrimSpace(r.Document)) // JSON has no control characters
		})
	}, "NAME")
	command.Flags().IntVar(&version, "version", 0, "`number` of the version (default: the one in effect)")
	return command
}

func newTrustedRootRemove(p *cli.Program) *cobra.Command {
	command := p.ForOrg(&cobra.Command{
		Use:   "remove",
		Short: "Remove a trusted root",
		Long: `Removes a trusted root: bundles that need it are refused from now on. What was
recorded before stays and still counts.

On a terminal it asks first.`,
		Example: "  ledgerd trusted-root remove public-good --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		if err := p.Askf("Remove the trusted root %s of %s? What was recorded still counts.", args[0], org); err != nil {
			return err
		}
		if err := c.RemoveTrustedRoot(ctx, org, args[0]); err != nil {
			return err
		}
		return p.Confirm(removedRoot{args[0], org}, func() {
			terminal.Printf(p.Stdout, "Removed the trusted root %s of %s\n", args[0], org)
		})
	}, "NAME")
	p.YesFlag(command)
	return command
}

// A removedRoot is the JSON output of 'trusted-root remove'.
type removedRoot struct {
	Name string `json:"name"`
	Org  string `json:"org"`
}
