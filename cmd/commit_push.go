package cmd

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
)

func newCommitPush(p *program) *cobra.Command {
	var q gitrepo.Query
	command := &cobra.Command{
		Use:   "push ORG/REPO [REV]",
		Short: "Tell the ledger of a commit of this git work tree",
		Long: `Tells the ledger of a commit, HEAD where none is named: its author, message,
parents and branch, which paths and lines it changes against the point where it
left the mainline, and which commits in flight that point holds already. The
ledger gets names, numbers and hashes, never content.

It prints which other commits in flight the commit overlaps with, the strongest
first.`,
		Example: `  ledgerd commit push acme/api
  ledgerd commit push acme/api feature/login --target release/2.x --base origin/release/2.x`,
		Args: takes("ORG/REPO", "[REV]"),
		RunE: func(command *cobra.Command, args []string) error {
			q.Rev = revOf(args)
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				local, err := p.readCommit(ctx, c, name, q)
				if err != nil {
					return err
				}
				commit, created, err := c.Register(ctx, name.org, name.repo, local.SHA, local.Registration)
				if err != nil {
					return err
				}
				p.warnOfGaps(local, commit)
				return p.print(commit, func() {
					verb := "completed"
					if created {
						verb = "registered"
					}
					fmt.Fprintf(p.stdout, "%s %s: %s, %s\n", verb, name.at(local.SHA), local.Extent(), commit.State)
					p.showPushed(name, commit)
				})
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&q.Branch, "branch", "", "`branch` of the commit (default the one it stands on)")
	flags.StringVar(&q.Target, "target", "", "`branch` that the commit is meant for (default the repo's default branch)")
	flags.StringVar(&q.Base, "base", "", baseUsage)
	return command
}

const baseUsage = "`rev` of the mainline that it left (default the branch of origin's HEAD, else the repo's default branch)"

// warnOfGaps tells why the radar leaves out a commit that was just pushed.
func (p *program) warnOfGaps(local gitrepo.Commit, pushed ledger.Commit) {
	if local.Gap != nil {
		fmt.Fprintf(p.stderr, "the commit goes without a change record, and the radar compares it with none: %s\n", describe(local.Gap))
	}
	if pushed.Branch == "" {
		fmt.Fprintln(p.stderr, "the commit goes without a branch, and the radar compares it with none: name it with --branch")
	}
}

// revOf returns the revision that is the second argument, HEAD where there is
// none.
func revOf(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return "HEAD"
}

// readCommit returns all that the ledger wants to know of a commit of the git
// work tree that we stand in.
func (p *program) readCommit(ctx context.Context, c *connection, name repoName, q gitrepo.Query) (gitrepo.Commit, error) {
	q.DefaultBranch = sync.OnceValues(func() (string, error) {
		repo, err := c.Repo(ctx, name.org, name.repo)
		return repo.DefaultBranch, err
	})
	git := gitrepo.Repo{Dir: "."}
	var commit gitrepo.Commit
	var tips []ledger.CommitSummary
	err := parallel.Do(
		func() (err error) { commit, err = git.ReadCommit(ctx, q); return err },
		func() (err error) { tips, err = tipsInFlight(ctx, c, name); return err },
		func() error { _, err := q.DefaultBranch(); return err }, // git may ask for it
	)
	if err != nil {
		return commit, err
	}
	commit.Contained = git.Landed(ctx, commit, tips)
	return commit, nil
}

// maxTips is how many tips in flight are looked at: as many as a registration
// may name.
const maxTips = 10_000

func tipsInFlight(ctx context.Context, c *connection, name repoName) ([]ledger.CommitSummary, error) {
	return client.Collect(c.Commits(ctx, name.org, name.repo, client.CommitFilter{InFlight: true}), maxTips)
}
