package people

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/member"
)

func newMemberRule(p *cli.Program) *cobra.Command {
	return cli.Group("rule", "Manage the rules by which people become members",
		newRuleAdd(p), newRuleList(p), newRuleRemove(p))
}

func newRuleAdd(p *cli.Program) *cobra.Command {
	var n member.NewRule
	command := p.ForOrg(&cobra.Command{
		Use:   "add",
		Short: "Admit the accounts of a group",
		Long: `Creates a rule: an account whose ID token has the claim with this value is a
member from its first sign-in on. Of several such rules, the one with the highest
role counts. Rules decide again at each sign-in.

If another org knows the account, or would admit it, the person must agree to
join. Claims about the token, the client or the sign-in, such as aud, cannot be
used. The administrator of the host names the orgs that may use a provider.

In the DN, {claim} stands for the text of a claim. Use only claims that people
cannot change themselves, in the DN and as the condition: anyone who can change
the claim decides who they are. sub and groups are safe with most providers;
name, nickname and often preferred_username are not.

A rule cannot be changed: create another rule, and remove this one.`,
		Example: `  ledgerd member rule add --org acme --issuer https://acme.okta.com \
    --claim groups --value developers --role contributor \
    --dn 'cn={login},ou=people-dev,o=acme'`,
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		r, err := c.CreateMemberRule(ctx, org, n)
		if err != nil {
			return err
		}
		return p.Confirm(r, func() { terminal.Printf(p.Stdout, "Created member rule %s in %s\n", r.ID, r.Org) })
	})
	flags := command.Flags()
	flags.StringVar(&n.Issuer, "issuer", "", "`URL` of the provider")
	flags.StringVar(&n.Claim, "claim", "", "`name` of a claim of the ID token, such as groups")
	flags.StringVar(&n.Value, "value", "", "`text` of the claim, or one of its texts")
	flags.StringVar(&n.DN, "dn", "", "`template` of the names with which people sign")
	roleFlag(command, &n.Role)
	flagvalue.Require(command, "issuer", "claim", "value", "dn", "role")
	return command
}

func newRuleList(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the member rules of an org",
		Example: "  ledgerd member rule list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"ID", "ISSUER", "CLAIM", "VALUE", "ROLE", "DN", "CREATED", "INEFFECTIVE"}
		return cli.PrintList(p, c.MemberRules(ctx, org), 0, columns, func(r member.Rule) []any {
			return []any{r.ID, r.Issuer, r.Claim, r.Value, r.Role, r.DN, r.CreatedAt, terminal.OrDash(r.Ineffective)}
		})
	})
}

func newRuleRemove(p *cli.Program) *cobra.Command {
	return p.ForID(&cobra.Command{
		Use:   "remove",
		Short: "Remove a member rule",
		Long: `Removes a rule. Members whom no other rule admits cannot sign in again. Their
sign-ins stay until they expire: 'ledgerd member remove' ends these.`,
		Example: "  ledgerd member rule remove mrl_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme",
	}, "Removed", "Remove the member rule %s of %s?", (*client.Client).RemoveMemberRule)
}
