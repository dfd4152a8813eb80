package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

func newCommitPush(p *program) *cobra.Command {
	var branch, target, mainline string
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
			rev := revOf(args)
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				sha, r, err := p.readCommit(ctx, c, name, rev, branch, mainline)
				if err != nil {
					return err
				}
				r.Target = target
				commit, created, err := c.Register(ctx, name.org, name.repo, sha, r)
				if err != nil {
					return err
				}
				return p.print(commit, func() {
					verb := "completed"
					if created {
						verb = "registered"
					}
					fmt.Fprintf(p.stdout, "%s %s: %s, %s\n", verb, name.at(sha), plural(int64(len(r.Changes)), "changed path"), commit.State)
					p.showPushed(name, commit)
				})
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&branch, "branch", "", "`branch` of the commit (default the one it stands on)")
	flags.StringVar(&target, "target", "", "`branch` that the commit is meant for (default the repo's default branch)")
	flags.StringVar(&mainline, "base", "", "`rev` of the mainline that it left (default origin's HEAD, main or master)")
	return command
}

// revOf returns the revision that is the second argument, HEAD where there is
// none.
func revOf(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return "HEAD"
}

// readCommit returns the sha that rev names in the git work tree we stand in
// and all that the ledger wants to know of it.
func (p *program) readCommit(ctx context.Context, c *connection, name repoName, rev, branch, mainline string) (string, ledger.Registration, error) {
	git := gitRepo{dir: "."}
	var sha string
	var r ledger.Registration
	var tips []string
	err := together(
		func() (err error) { sha, r, err = git.read(ctx, rev, branch, mainline); return err },
		func() (err error) { tips, err = tipsInFlight(ctx, c, name); return err },
	)
	if err != nil {
		return "", r, err
	}
	if r.Changes == nil {
		fmt.Fprintln(p.stderr, "the commit goes without a record of its changes: this clone is shallow and holds no base of it (git fetch --unshallow) or partial and lacks its folders, or it changes more than 10,000 paths, or more places than a server takes")
	}
	if r.Base != "" && len(tips) > 0 {
		r.Contained = git.contained(ctx, r.Base, tips)
	}
	return sha, r, nil
}

// maxTips is how many tips in flight are looked at: as many as a registration
// may name.
const maxTips = 10_000

func tipsInFlight(ctx context.Context, c *connection, name repoName) ([]string, error) {
	commits, err := client.Collect(c.Commits(ctx, name.org, name.repo, client.CommitFilter{InFlight: true}), maxTips)
	tips := make([]string, len(commits))
	for i, commit := range commits {
		tips[i] = commit.SHA
	}
	return tips, err
}

// read returns the sha that rev names and what git alone knows of it.
func (g gitRepo) read(ctx context.Context, rev, branch, mainline string) (string, ledger.Registration, error) {
	sha, err := g.commit(ctx, rev)
	if err == nil && sha == "" {
		err = fmt.Errorf("there is no commit %q in this git repository", rev)
	}
	if err != nil {
		return "", ledger.Registration{}, err
	}
	var r ledger.Registration
	err = together(
		func() (err error) { r, err = g.registration(ctx, sha, mainline); return err },
		func() (err error) {
			if branch == "" {
				branch, err = g.branch(ctx, rev, sha)
			}
			return err
		},
	)
	r.Branch = branch
	return sha, r, err
}
