package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/display"
	"github.com/ledgerd/ledgerd/ledger"
)

func newRepo(p *program) *cobra.Command {
	return group("repo", "Manage the repos of an org", newRepoCreate(p), newRepoList(p), newRepoShow(p))
}

func newRepoCreate(p *program) *cobra.Command {
	var branch string
	command := &cobra.Command{
		Use:   "create ORG/REPO",
		Short: "Create a repo",
		Long: `Creates a repo. Its default policy requires a passing test:* for ATTESTED, a
passing review:* by somebody else, who is no author of the commit, for
PROMOTABLE, and a passing deploy:prod by somebody else than the reviewer for
DEPLOYED. So it takes two keys to get a commit past ATTESTED. Change the policy
with 'ledgerd policy apply'.`,
		Example: "  ledgerd repo create acme/api\n  ledgerd repo create acme/api --default-branch trunk",
		Args:    takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				repo, err := c.CreateRepo(ctx, name.org, ledger.NewRepo{Name: name.repo, DefaultBranch: branch})
				if err != nil {
					return err
				}

				return p.print(repo, func() { fmt.Fprintf(p.stdout, "Created repo %s/%s\n", repo.Org, repo.Name) })
			})
		},
	}

	command.Flags().StringVar(
		&branch, "default-branch", "", "target `branch` of commits that name none (default main)")
	return command
}

func newRepoList(p *program) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:     "list",
		Short:   "List the repos of an org",
		Example: "  ledgerd repo list --org acme",
		Args:    takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			return p.withOrg(command, org, func(ctx context.Context, c *connection, org string) error {
				columns := []string{"REPO", "BRANCH", "POLICY", "COMMITS", "ATTESTATIONS", "CREATED"}
				return printList(p, c.Repos(ctx, org), 0, columns, func(r ledger.Repo) []any {
					commits := int64(0)
					for _, n := range r.Commits {
						commits += n
					}

					return []any{r.Org + "/" + r.Name, r.DefaultBranch, fmt.Sprintf("v%d", r.PolicyVersion), commits, r.Attestations,
						r.CreatedAt}
				})
			})
		},
	}

	orgFlag(command, &org)
	return command
}

func newRepoShow(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "show ORG/REPO",
		Short:   "Show a repo, with the number of commits in each state",
		Example: "  ledgerd repo show acme/api",
		Args:    takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				repo, err := c.Repo(ctx, name.org, name.repo)
				if err != nil {
					return err
				}
				return p.print(repo, func() { display.Repo(p.stdout, repo) })
			})
		},
	}
}
