package record

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// replaceTip withdraws the tip that a registered commit has not replaced, and registers the commit again, if its
// branch was moved back to it. It returns the tip, or "" if none was withdrawn. It warns of a tip that the branch
// may no longer have.
func (j *job) replaceTip(
	ctx context.Context, p *cli.Program, c *cli.Connection, local gitrepo.Commit, commit *ledger.Commit,
) (gone string, err error) {
	if commit.Radar == nil || commit.Radar.Behind == "" {
		return "", nil
	}
	tip := commit.Radar.Behind
	switch head, err := j.head(ctx, local, tip); head {
	case local.SHA:
	case tip:
		return "", nil
	default:
		warnOfTip(p, *commit, err)
		return "", nil
	}

	if _, err := c.Withdraw(ctx, commit.Org, commit.Repo, tip); err != nil {
		return "", fmt.Errorf("replace the tip of %s: %w", commit.Branch, err)
	}
	*commit, _, err = c.Register(ctx, commit.Org, commit.Repo, local.SHA, local.Registration)
	if err != nil {
		return tip, fmt.Errorf("%s was withdrawn, since %s was moved back, but %s was not registered again (run the "+
			"command again): %w", ledger.Short(tip), local.Branch, ledger.Short(local.SHA), err)
	}
	return tip, nil
}

// head returns the commit that origin has for the branch of a commit, or "" if that is not known. Only a job about
// the commit and its branch asks: elsewhere, origin may be another repository, such as a fork. If origin does not
// answer the job of a push, it is the commit if the push has moved the branch from the tip.
func (j *job) head(ctx context.Context, local gitrepo.Commit, tip string) (string, error) {
	if !j.isCI || j.Branch == "" || j.Branch != local.Branch || j.Commit != local.SHA {
		return "", nil
	}
	head, err := gitrepo.Repo{Dir: "."}.RemoteHead(ctx, local.Branch)
	if err != nil && j.Before == tip {
		return local.SHA, nil
	}
	return head, err
}

// warnOfTip says which tip a registered commit has not replaced, and how to replace it. unknown is why origin has
// not said where the branch is, or nil.
func warnOfTip(p *cli.Program, commit ledger.Commit, unknown error) {
	tip := ledger.Short(commit.Radar.Behind)
	if unknown != nil {
		terminal.Printf(p.Stderr, "origin did not say where %s is: %s\n", terminal.Clean(commit.Branch), p.Describe(unknown))
	}
	terminal.Printf(p.Stderr, "%s stays at %s, which is built on this commit. If the branch was moved back, "+
		"withdraw that commit and register this one again: ledgerd commit withdraw %s/%s %[2]s\n",
		terminal.Clean(commit.Branch), tip, commit.Org, commit.Repo)
}
