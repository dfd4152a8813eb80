package record

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// isReview reports whether a statement of attest's own is a review.
func (a *attestRequest) isReview() bool { return strings.HasPrefix(a.predicate, ledger.ReviewPrefix) }

// readTarget reads for which branch a commit to review is meant, unless a base is given: what the ledger knows, or
// else the default branch.
func (a *attestRequest) readTarget(ctx context.Context, c *cli.Connection) error {
	if !a.isReview() || a.base != "" || a.from != "" {
		return nil
	}
	repo, err := c.Repo(ctx, a.repo.Org, a.repo.Repo)
	if err != nil {
		return err
	}
	commit, err := c.Commit(ctx, a.repo.Org, a.repo.Repo, a.commit)
	if err != nil && client.CodeOf(err) != ledger.CodeNotFound { // it may be new
		return err
	}
	a.target = cmp.Or(commit.Target, repo.DefaultBranch)
	return nil
}

// showReviewed prints what a review is about, before it is signed, and sets its base. Without one, it is about the
// commit alone, which is an error if the base was asked for.
func (a *attestRequest) showReviewed(ctx context.Context, p *cli.Program) error {
	git := gitrepo.Repo{Dir: "."}
	r, err := git.Reviewed(ctx, gitrepo.Query{Rev: a.commit, Target: a.target, Base: a.base, From: a.from})
	switch {
	case err == nil && len(r.Commits) > ledger.MaxReviewed && a.base+a.from != "":
		return fmt.Errorf("%s..%s has %d commits: a review can be about %d at most (review in steps, each with --from "+
			"and --commit)", ledger.Short(r.Base), ledger.Short(r.Commit), len(r.Commits), ledger.MaxReviewed)
	case err == nil:
		a.base = r.Base
		printReviewed(p.Hints(), r)
	case a.from != "":
		return fmt.Errorf("invalid --from: %w (name a commit below the reviewed one, or use --base for a merge base)", err)
	case a.base != "":
		return fmt.Errorf("find the base of the review: %w", err)
	default:
		terminal.Printf(p.Hints(), "The review is about %s alone: %s\n", ledger.Short(a.commit), p.Describe(err))
	}
	return nil
}

// maxReviewed is how many commits of a review are listed.
const maxReviewed = 20

func printReviewed(w io.Writer, r gitrepo.Range) {
	terminal.Printf(w, "Reviewing %s, %s..%s:\n", terminal.Plural(int64(len(r.Commits)), "commit"),
		ledger.Short(r.Base), ledger.Short(r.Commit))
	for _, c := range r.Commits[:min(len(r.Commits), maxReviewed)] {
		terminal.Printf(w, "  %s  %s (%s)\n", ledger.Short(c.SHA), terminal.Clean(c.Subject), terminal.Clean(c.Author))
	}
	if more := len(r.Commits) - maxReviewed; more > 0 {
		terminal.Printf(w, "  and %d more\n", more)
	}
}
