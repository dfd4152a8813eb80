package manage

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/ca"
)

// A caCommand is the group of commands that manage the CA of a purpose.
type caCommand struct {
	purpose ca.Purpose
	short   string
	// create, rotate and retire describe the commands of these names.
	create, rotate, retire string
	// may describes the flag of this name, and example has its value in examples.
	may, example string
}

func newCA(p *cli.Program) *cobra.Command {
	return caCommand{
		purpose: ca.Jobs,
		short:   "Manage the CA with which CI jobs sign without a key",
		create: `Creates the CA that certifies CI jobs, for 'ledgerd attest --ci', and trusts it
as a root. --may says what jobs may attest. The CA certifies only names whose ou
begins with ci-; --dn-pattern limits them further. The rules of the org say
which job gets which name; see 'ledgerd exchange-rule'.`,
		rotate: "jobs that run",
		retire: `Ends the CA and revokes its root: CI jobs get no certificates, and those that
were issued are refused. What was recorded stays and still counts.`,
		may:     "predicates that CI jobs may attest, comma-separated, such as 'test:*,build:docker'; '*': every predicate",
		example: " --may 'test:*,build:*'",
	}.group(p)
}

func newPeopleCA(p *cli.Program) *cobra.Command {
	return caCommand{
		purpose: ca.People,
		short:   "Manage the CA with which people approve commits in the web interface",
		create: `Creates the CA that certifies members of the org who approve commits in the
web interface, and trusts it as a root. Each certificate is for one statement,
and valid for ten minutes. The CA certifies only names whose ou begins with
people-; --dn-pattern limits them further. --may says what they may attest.`,
		rotate: "people who just signed",
		retire: `Ends the CA and revokes its root: nobody can approve commits in the web
interface, and certificates that were issued are refused. What was recorded stays
and still counts.`,
		may: "predicates that people may attest in the web interface, comma-separated (default 'review:*')",
	}.group(p)
}

func (d caCommand) group(p *cli.Program) *cobra.Command {
	return cli.Group(d.purpose.Name(), d.short, d.newCreate(p), d.newShow(p), d.newRotate(p), d.newRetire(p))
}

// exampleOf returns the example of a command.
func (d caCommand) exampleOf(command, flags string) string {
	return "  ledgerd identity " + d.purpose.Name() + " " + command + " --org acme" + flags
}

func (d caCommand) newCreate(p *cli.Program) *cobra.Command {
	return d.newOf(p, ca.NewAuthority{}, &cobra.Command{
		Use:     "create",
		Short:   "Create the CA of an org for " + d.purpose.Holders(),
		Long:    d.create + "\n\nThe key of the CA is in log.key_dir of the server, or derived from its seed.",
		Example: d.exampleOf("create", d.example),
	}, "Created the CA %s of %s (%s)\n")
}

func (d caCommand) newRotate(p *cli.Program) *cobra.Command {
	return d.newOf(p, ca.NewAuthority{Replace: true}, &cobra.Command{
		Use:   "rotate",
		Short: "Replace the CA of an org by a new one",
		Long: fmt.Sprintf(`Replaces the CA: certificates are issued by a new one from now on. --may and
--dn-pattern are those of the new one.

The former CA stays trusted, so that %s can still record.
Revoke it after ten minutes with 'ledgerd identity revoke', or at once if its key
may have been stolen.`, d.rotate),
		Example: d.exampleOf("rotate", d.example),
	}, "Replaced the CA by %s in %s (%s)\n")
}

// newOf completes a command that creates a CA. done is printed with the DN, the org and the ID of
// its root.
func (d caCommand) newOf(p *cli.Program, n ca.NewAuthority, command *cobra.Command, done string) *cobra.Command {
	p.ForOrg(command, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		root, err := c.CreateCA(ctx, org, d.purpose, n)
		if err != nil {
			return err
		}
		return p.Confirm(root, func() { terminal.Printf(p.Stdout, done, terminal.Printable(root.DN), root.Org, root.ID) })
	})
	command.Flags().Var(flagvalue.Predicates(&n.May), "may", d.may)
	command.Flags().StringVar(&n.DNPattern, "dn-pattern", "",
		"`pattern` of the names that the CA certifies (default '"+d.purpose.Pattern("ORG")+"')")
	if d.purpose == ca.Jobs {
		flagvalue.Require(command, "may")
	}
	return command
}

func (d caCommand) newShow(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "show",
		Short:   "Show the CA of an org",
		Example: d.exampleOf("show", ""),
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		return cli.Shown(p, display.Identity)(c.CA(ctx, org, d.purpose))
	})
}

func (d caCommand) newRetire(p *cli.Program) *cobra.Command {
	command := p.ForOrg(&cobra.Command{
		Use:     "retire",
		Short:   "End the CA of an org",
		Long:    d.retire,
		Example: d.exampleOf("retire", ""),
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		root, err := c.CA(ctx, org, d.purpose)
		if err != nil {
			return err
		}
		if err := p.Askf("Retire the CA %s of %s?", root.DN, org); err != nil {
			return err
		}
		if err := c.RetireCA(ctx, org, d.purpose); err != nil {
			return err
		}
		return p.Confirm(cli.Ended{ID: root.ID, Org: org}, func() {
			terminal.Printf(p.Stdout, "Retired the CA %s of %s (%s)\n", terminal.Printable(root.DN), org, root.ID)
		})
	})
	p.YesFlag(command)
	return command
}
