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
// branch was moved back to it. It returns the tip, or "" if none was withdrawn. ask says whether to ask origin.
func (j *job) replaceTip(
	ctx context.Context, c *cli.Connection, local gitrepo.Commit, commit *ledger.Commit, ask bool,
) (gone string, err error) {
	tip := behind(*commit)
	if tip == "" || !j.movedBack(ctx, local, tip, ask) {
		return "", nil
	}
	if _, err := c.Withdraw(ctx, commit.Org, commit.Repo, tip); err != nil {
		return "", fmt.Errorf("replace the tip of %s: %w", commit.Branch, err)
	}
	*commit, _, err = c.Register(ctx, commit.Org, commit.Repo, local.SHA, local.Registration)
	return tip, err
}

// movedBack reports whether the branch of a commit was moved back to it from a tip: origin has the branch there, or
// the job is of the push that has done so and origin does not have the tip again.
func (j *job) movedBack(ctx context.Context, local gitrepo.Commit, tip string, ask bool) bool {
	head := ""
	if ask {
		head, _ = gitrepo.Repo{Dir: "."}.RemoteHead(ctx, local.Branch) // without an answer, the job decides
	}
	return head == local.SHA || j.Before == tip && j.Commit == local.SHA && head != tip
}

// behind returns the tip that the registration of a commit has not replaced, or "".
func behind(commit ledger.Commit) string {
	if commit.Radar == nil {
		return ""
	}
	return commit.Radar.Behind
}

// warnOfTip says which tip a registered commit has not replaced, and how to replace it.
func warnOfTip(p *cli.Program, commit ledger.Commit, asked bool) {
	tip := behind(commit)
	if tip == "" {
		return
	}
	how := ""
	if !asked {
		how = "pass --fetch, which asks origin, or "
	}
	terminal.Printf(p.Stderr, "%s stays at %s, which is built on this commit. If the branch was moved back, "+
		"%swithdraw that commit and register this one again: ledgerd commit withdraw %s/%s %[2]s\n",
		terminal.Clean(commit.Branch), ledger.Short(tip), how, commit.Org, commit.Repo)
}
