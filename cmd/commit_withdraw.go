package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newCommitWithdraw(p *program) *cobra.Command {
	var branch string
	command := &cobra.Command{
		Use:   "withdraw ORG/REPO [REV]",
		Short: "Take a commit out of flight, because its branch is given up",
		Long: `Takes a commit, HEAD where none is named, out of flight: the radar compares
no other commit with it any more, and its overlaps end. With --branch it is the
commit that the branch has in flight; where there is none, nothing happens. To
push the commit again brings it back.`,
		Example: `  ledgerd commit withdraw acme/api adbc8813901b
  ledgerd commit withdraw acme/api --branch feature/login`,
		Args: takes("ORG/REPO", "[REV]"),
		RunE: func(command *cobra.Command, args []string) error {
			if branch != "" && len(args) > 1 {
				return usagef("name a commit or a --branch, not both")
			}
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				if branch != "" {
					return p.withdrawBranch(ctx, c, name, branch)
				}
				sha, err := gitrepo.Find(ctx, revOf(args))
				if err != nil {
					return err
				}
				return p.withdraw(ctx, c, name, sha)
			})
		},
	}
	command.Flags().StringVar(&branch, "branch", "", "the commit that this `branch` has in flight")
	return command
}

func (p *program) withdraw(ctx context.Context, c *connection, name repoName, sha string) error {
	commit, err := c.Withdraw(ctx, name.org, name.repo, sha)
	if err != nil {
		return err
	}
	return p.print(commit, func() { fmt.Fprintf(p.stdout, "%s is out of flight\n", name.at(commit.SHA)) })
}

// withdrawBranch withdraws what a branch has in flight.
func (p *program) withdrawBranch(ctx context.Context, c *connection, name repoName, branch string) error {
	tips, err := c.CommitsPage(ctx, name.org, name.repo, client.CommitFilter{Branch: branch, InFlight: true}, client.Query{Limit: 1})
	if err != nil {
		return err
	}
	if len(tips.Data) == 0 {
		return p.print((*ledger.Commit)(nil), func() { fmt.Fprintf(p.stdout, "the branch %s has nothing in flight\n", terminal.Clean(branch)) })
	}
	return p.withdraw(ctx, c, name, tips.Data[0].SHA)
}
