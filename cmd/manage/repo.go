package manage

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
)

func newRepo(p *cli.Program) *cobra.Command {
	return cli.Group("repo", "Manage the repos of an org", newRepoCreate(p), newRepoList(p), newRepoShow(p),
		newRepoUpdate(p), newRepoRename(p), newRepoArchive(p, true), newRepoArchive(p, false), newRepoDelete(p),
		newRepoPurge(p))
}

func newRepoCreate(p *cli.Program) *cobra.Command {
	var branch, webURL, kind string
	command := p.Takes(&cobra.Command{
		Use:   "create",
		Short: "Create a repo",
		Long: `Creates a repo. Its default policy requires a passing test:* for ATTESTED, a
passing review:* by somebody else, who is no author of the commit, for
PROMOTABLE, and a passing deploy:prod by somebody else than the reviewer for
DEPLOYED. So it takes two keys to get a commit past ATTESTED. Change the policy
with 'ledgerd policy apply'.

With --web-url, the pages link to the repo's commits, branches and files there.`,
		Example: `  ledgerd repo create acme/api
  ledgerd repo create acme/api --default-branch trunk --web-url https://github.com/acme/api`,
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithNewRepo(command, args[0], func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				repo, err := c.CreateRepo(ctx, name.Org, ledger.NewRepo{
					Name: name.Repo, DefaultBranch: branch, WebURL: webURL, Forge: forge.Kind(kind),
				})
				if err != nil {
					return err
				}

				return p.Confirm(repo, func() { terminal.Printf(p.Stdout, "Created repo %s/%s\n", repo.Org, repo.Name) })
			})
		},
	}, "[ORG/]REPO")

	command.Flags().StringVar(
		&branch, "default-branch", "", "target `branch` of commits that name none (default main)")
	siteFlags(command, &webURL, &kind)
	return command
}

// siteFlags defines the flags for where people see a repo in a browser.
func siteFlags(command *cobra.Command, webURL, kind *string) {
	command.Flags().StringVar(webURL, "web-url", "", "`URL` of the repo in a browser, such as https://github.com/acme/api")
	var kinds []string
	for _, k := range forge.Kinds() {
		kinds = append(kinds, string(k))
	}
	command.Flags().Var(flagvalue.Choice(kind, kinds...), "forge",
		"how links are formed (default: detected from the host, else other)")
	flagvalue.Complete(command, "forge", kinds...)
}

func newRepoList(p *cli.Program) *cobra.Command {
	var deleted bool
	command := p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the repos of an org",
		Example: "  ledgerd repo list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		if deleted {
			columns := []string{"REPO", "FORMERLY", "DELETED"}
			return cli.PrintList(p, c.DeletedRepos(ctx, org), 0, columns, func(r ledger.Repo) []any {
				return []any{r.Org + "/" + r.Name, display.FormerNames(r.FormerNames), r.DeletedAt}
			})
		}
		columns := []string{"REPO", "BRANCH", "POLICY", "COMMITS", "ATTESTATIONS", "CREATED"}
		return cli.PrintList(p, c.Repos(ctx, org), 0, columns, func(r ledger.Repo) []any {
			commits := int64(0)
			for _, n := range r.Commits {
				commits += n
			}

			return []any{r.Org + "/" + r.Name, r.DefaultBranch, fmt.Sprintf("v%d", r.PolicyVersion), commits, r.Attestations,
				r.CreatedAt}
		})
	})

	command.Flags().BoolVar(&deleted, "deleted", false, "list only the deleted ones")
	return command
}

func newRepoShow(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:     "show",
		Short:   "Show a repo, with the number of commits in each state",
		Example: "  ledgerd repo show acme/api",
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return cli.Shown(p, display.Repo)(c.Repo(ctx, name.Org, name.Repo))
			})
		},
	}, cli.RepoArg)
}

func newRepoUpdate(p *cli.Program) *cobra.Command {
	var webURL, kind string
	var keep ledger.Retention
	command := p.Takes(&cobra.Command{
		Use:   "update",
		Short: "Change the forge of a repo, and how long it keeps evidence",
		Long: `Changes where people see a repo in a browser. The pages link to commits,
branches, files and pull requests there. The kind of forge says how these links
are formed. It is detected from the host of --web-url: give --forge where the
host does not name it. An empty --web-url removes the links.

With --keep-envelopes, --keep-events and --keep-deliveries, the repo keeps these
only so long: at least a day, or 0s for no limit. What is pruned cannot be
brought back. Its records, its digests and its place in the log stay, so commits
keep their states. docs/operations.md says what can no longer be verified.`,
		Example: `  ledgerd repo update acme/api --web-url https://github.com/acme/api
  ledgerd repo update acme/api --web-url https://git.acme.example/acme/api --forge gitea
  ledgerd repo update acme/api --web-url ""
  ledgerd repo update acme/api --keep-envelopes 730d --keep-deliveries 7d`,
		RunE: func(command *cobra.Command, args []string) error {
			change := ledger.RepoChange{
				WebURL: cli.Changed(command, "web-url", &webURL),
				Forge:  cli.Changed(command, "forge", new(forge.Kind(kind))),
			}
			kept := ledger.RetentionChange{
				Envelopes:  cli.Changed(command, "keep-envelopes", &keep.Envelopes),
				Events:     cli.Changed(command, "keep-events", &keep.Events),
				Deliveries: cli.Changed(command, "keep-deliveries", &keep.Deliveries),
			}
			if kept != (ledger.RetentionChange{}) {
				change.Retention = &kept
			}
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return cli.Shown(p, display.Repo)(c.ChangeRepo(ctx, name.Org, name.Repo, change))
			})
		},
	}, cli.RepoArg)

	siteFlags(command, &webURL, &kind)
	keepFlag(command, "envelopes", "signed envelopes", &keep.Envelopes)
	keepFlag(command, "events", "the bodies of events", &keep.Events)
	keepFlag(command, "deliveries", "the log of webhook deliveries", &keep.Deliveries)
	flagvalue.RequireOne(command, "web-url", "forge", "keep-envelopes", "keep-events", "keep-deliveries")
	return command
}

// keepFlag defines a flag for how long a repo keeps something.
func keepFlag(command *cobra.Command, name, what string, d *ledger.Duration) {
	command.Flags().Var(&flagvalue.Parsed[ledger.Duration]{Value: d, Kind: "DURATION", Parse: parseKept}, "keep-"+name,
		"how long "+what+" are kept, such as 730d (0s: without a limit)")
}

// parseKept parses how long something is kept.
func parseKept(s string) (d ledger.Duration, err error) { return d, d.UnmarshalText([]byte(s)) }
