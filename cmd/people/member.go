package people

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/member"
)

func newMember(p *cli.Program) *cobra.Command {
	return cli.Group("member", "Manage the people of an org",
		newMemberAdd(p), newMemberList(p), newMemberSet(p), newMemberRemove(p), newMemberRestore(p), newMemberRule(p))
}

func newMemberAdd(p *cli.Program) *cobra.Command {
	var n member.NewMember
	command := p.ForOrg(&cobra.Command{
		Use:   "add",
		Short: "Add a person before the first sign-in",
		Long: `Adds an account of an OpenID Connect provider to an org. Its person signs in to
the pages of the server, with this role and as this signer.

An account is the URL of the provider (the claim iss) and the subject (the claim
sub). It is never an e-mail address, which another person can get. The DN never
changes, and no other account gets it. The administrator of the host names the
orgs that may use a provider.

Roles:
  reader       read everything in the org, except webhooks and administration
  contributor  also register commits, record attestations and approve
  maintainer   also manage policies and webhooks
  admin        also manage repos, identities, tokens and members

To admit whole groups, see 'ledgerd member rule add'.`,
		Example: `  ledgerd member add --org acme --issuer https://acme.okta.com \
    --subject 00u1a2b3c4 --dn cn=ann,ou=people-dev,o=acme --role contributor`,
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		m, err := c.AddMember(ctx, org, n)
		if err != nil {
			return err
		}
		return p.Confirm(m, func() {
			terminal.Printf(p.Stdout, "Added %s to %s as %s (%s)\n", terminal.Printable(m.DN), m.Org, m.Role, m.ID)
		})
	})
	flags := command.Flags()
	flags.StringVar(&n.Issuer, "issuer", "", "`URL` of the provider")
	flags.StringVar(&n.Subject, "subject", "", "`text` of the claim sub of the account")
	flags.StringVar(&n.DN, "dn", "", "`name` with which the person signs; its ou begins with people-")
	roleFlag(command, &n.Role)
	flagvalue.Require(command, "issuer", "subject", "dn", "role")
	return command
}

func newMemberList(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the members and former members of an org",
		Example: "  ledgerd member list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"ID", "DN", "NAME", "ROLE", "SET BY", "SIGNED IN", "REMOVED", "ISSUER", "SUBJECT"}
		return cli.PrintList(p, c.Members(ctx, org), 0, columns, func(m member.Member) []any {
			by := "an admin"
			if m.ByRule {
				by = "rules"
			}
			return []any{m.ID, m.DN, terminal.OrDash(m.Name), m.Role, by, m.SignedInAt, m.RemovedAt, m.Issuer, m.Subject}
		})
	})
}

func newMemberSet(p *cli.Program) *cobra.Command {
	var r member.Role
	var distinct bool
	command := p.ForOrg(&cobra.Command{
		Use:   "set",
		Short: "Change the role of a member, or say that two with one name are two people",
		Long: `Changes the role of a member. From then on, rules no longer decide about the
member. Sign-ins and API tokens of the member that permit more are revoked.

Signers with the same common name count once. If a member is another person
than they are, --distinct says so, and --distinct=false takes it back.`,
		Example: `  ledgerd member set mem_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme --role maintainer
  ledgerd member set mem_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme --distinct`,
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		m, err := c.ChangeMember(ctx, org, args[0], member.Change{Role: cli.Changed(p.Command, "role", &r),
			Distinct: cli.Changed(p.Command, "distinct", &distinct)})
		if err != nil {
			return err
		}
		return p.Confirm(m, func() {
			terminal.Printf(p.Stdout, "%s is now %s%s\n", terminal.Printable(m.DN), m.Role, distinctly(m))
		})
	}, "ID")
	roleFlag(command, &r)
	command.Flags().BoolVar(&distinct, "distinct", false,
		"the member is another person than all others with the same common name")
	flagvalue.RequireOne(command, "role", "distinct")
	return command
}

// distinctly says that a member is another person than others with the name, if so.
func distinctly(m member.Member) string {
	if !m.Distinct {
		return ""
	}
	return ", and another person than all others with the same common name"
}

func newMemberRemove(p *cli.Program) *cobra.Command {
	change := member.Change{Removed: new(true)}
	command := p.ForOrg(&cobra.Command{
		Use:   "remove",
		Short: "Remove a member with sign-ins, tokens and keys",
		Long: `Ends a membership, and with it what the member could still use: sign-ins, the API
tokens that the member has created, passkeys, and the keys that are registered
with the DN of the member or are one of the member's keys. Pages and streams end
within 15 seconds. --keep-keys keeps keys and passkeys.

Keys that only have the common name or an e-mail address of the member are
listed; --also revokes them, too. What the member has signed stays recorded and
counts: to distrust a key, see 'ledgerd identity revoke --since'. No rule admits
the member again; 'ledgerd member restore' does.

On a terminal it asks first, and says what ends.`,
		Example: `  ledgerd member remove mem_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme
  ledgerd member remove mem_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme \
    --also idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y`,
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		m, err := c.Member(ctx, org, args[0])
		if err != nil {
			return err
		}
		who, err := personNamed(ctx, c.Client, org, m.ID)
		if err != nil {
			return err
		}
		l := leavingOf(m, who, change)
		if err := p.Ask(func() (string, error) { return l.question(), nil }); err != nil {
			return err
		}
		if _, err := c.ChangeMember(ctx, org, m.ID, change); err != nil {
			return err
		}
		return p.Confirm(l, func() { l.print(p.Stdout) })
	}, "ID")
	flags := command.Flags()
	flags.BoolVar(&change.KeepKeys, "keep-keys", false, "keep the keys and passkeys of the member")
	flags.StringSliceVar(&change.Also, "also", nil, "revoke these other identities, too (`IDs`, comma-separated)")
	flagvalue.NameField(command, "keep_keys", "keep-keys")
	flagvalue.NameField(command, "also", "also")
	p.YesFlag(command)
	return command
}

func newMemberRestore(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:   "restore",
		Short: "Restore a former member",
		Long: `Restores a membership with the role that it had. The person has to sign in again,
and tokens that were revoked stay revoked.`,
		Example: "  ledgerd member restore mem_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		removed := false
		m, err := c.ChangeMember(ctx, org, args[0], member.Change{Removed: &removed})
		if err != nil {
			return err
		}
		return p.Confirm(m, func() {
			terminal.Printf(p.Stdout, "Restored %s as %s\n", terminal.Printable(m.DN), m.Role)
		})
	}, "ID")
}
