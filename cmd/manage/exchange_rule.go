package manage

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

func newExchangeRule(p *cli.Program) *cobra.Command {
	return cli.Group("exchange-rule", "Manage the rules by which CI jobs get API tokens",
		newExchangeRuleCreate(p), newExchangeRuleList(p), newExchangeRuleRemove(p))
}

func newExchangeRuleCreate(p *cli.Program) *cobra.Command {
	var n exchange.NewRule
	command := p.ForOrg(&cobra.Command{
		Use:   "create",
		Short: "Let the CI jobs of a repository get API tokens",
		Long: `Creates a rule: jobs of a repository on a forge can exchange their OpenID Connect
token for an API token of the org, with 'ledgerd token exchange'. A job must
fulfil all conditions of the rule. A rule cannot be changed: create another rule,
and remove this one.

A repository is named by its ID, since another account can get its name:
  GitHub   gh api repos/OWNER/REPO --jq .id
  Forgejo  https://FORGEJO/api/v1/repos/OWNER/REPO
  GitLab   on the page of the project

By default, the jobs of pushes, of releases, on a schedule and by hand qualify.
Do not add events that run the code of pull requests, unless everyone who can
open one may do what the rule permits.`,
		Example: `  ledgerd exchange-rule create --org acme --name ci --issuer https://token.actions.githubusercontent.com \
    --repository-id 1296269 --ref main --scope write --repo api
  ledgerd exchange-rule create --org acme --name deploy --issuer https://gitlab.com --project-id 278964 \
    --ref main --where 'claims.environment == "production"' --scope write --repo api`,
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		rule, err := c.CreateExchangeRule(ctx, org, n)
		if err != nil {
			return err
		}
		for _, warning := range rule.Warnings {
			terminal.Printf(p.Hints(), "ledgerd: warning: %s\n", terminal.Printable(warning))
		}
		return p.Confirm(rule, func() {
			terminal.Printf(p.Stdout, "Created exchange rule %q in %s (%s)\n", rule.Name, rule.Org, rule.ID)
		})
	})

	conditionFlags(command, &n)
	flags := command.Flags()
	flags.StringVar(&n.Name, "name", "", "display `name` of the API tokens")
	flagvalue.Scope(command, &n.Scope, "permissions of the API tokens")
	flags.StringSliceVar(&n.Repos, "repo", nil, "`repos` of the org that the API tokens are for, comma-separated")
	flags.StringVar(&n.DN, "dn", "", "`name` with which the jobs may sign; its ou begins with ci-")
	flags.Var(flagvalue.Duration((*time.Duration)(&n.Lifetime)), "lifetime",
		"how long an API token is valid, 1m to 1h (default 15m)")
	flagvalue.NameField(command, "repos", "repo")
	flagvalue.Require(command, "name", "issuer", "scope", "repo")
	flagvalue.RequireOne(command, "repository-id", "project-id")
	flagvalue.Exclude(command, "repository-id", "project-id")
	return command
}

// conditionFlags defines the flags of the conditions for jobs.
func conditionFlags(command *cobra.Command, n *exchange.NewRule) {
	flags := command.Flags()
	flags.StringVar(&n.Issuer, "issuer", "", "`URL` of the issuer, see 'ledgerd issuer add'")
	flags.StringVar(&n.RepositoryID, "repository-id", "", "`number` of the repository on GitHub or Forgejo")
	flags.StringVar(&n.ProjectID, "project-id", "", "`number` of the project on GitLab")
	flags.StringSliceVar(&n.Events, "event", nil,
		"`events` that may start the job (default push,workflow_dispatch,schedule,release)")
	flags.StringSliceVar(&n.Refs, "ref", nil,
		"`globs` of branches such as main,release/* or tags such as refs/tags/v* (default every ref)")
	flags.StringSliceVar(&n.Workflows, "workflow", nil,
		"`globs` of the reusable workflow with its version (job_workflow_ref)")
	flags.StringVar(&n.Where, "where", "", "`condition` in CEL about the variable claims")
	for field, flag := range map[string]string{
		"repository_id": "repository-id", "project_id": "project-id", "events": "event", "refs": "ref",
		"workflows": "workflow",
	} {
		flagvalue.NameField(command, field, flag)
	}
}

func newExchangeRuleList(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the exchange rules of an org",
		Example: "  ledgerd exchange-rule list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"ID", "NAME", "ISSUER", "REPOSITORY", "EVENTS", "REFS", "SCOPE", "REPOS", "SIGNS AS", "CREATED"}
		return cli.PrintList(p, c.ExchangeRules(ctx, org), 0, columns, func(r exchange.Rule) []any {
			return []any{r.ID, r.Name, r.Issuer, r.Subject(), strings.Join(r.Events, ","),
				terminal.OrDash(strings.Join(r.Refs, ",")), r.Scope, strings.Join(r.Repos, ","), terminal.OrDash(r.DN),
				r.CreatedAt}
		})
	})
}

func newExchangeRuleRemove(p *cli.Program) *cobra.Command {
	return p.ForID(&cobra.Command{
		Use:     "remove",
		Short:   "Remove an exchange rule, and revoke its API tokens",
		Example: "  ledgerd exchange-rule remove rul_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme",
	}, "Removed",
		"Remove the exchange rule %s of %s, and revoke its API tokens?", (*client.Client).RemoveExchangeRule)
}
