package registration

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/lineage"
)

// maxObjectBytes limits the commit objects of one request, so that their base64 is well below the server's max_body.
const maxObjectBytes = 1 << 20

// SendAncestors sends the objects of the commits from which a registered commit comes, of the mainline's since then,
// and of those that its deployments would ship, as far as the ledger lacks them and the work tree in the current folder
// has them.
func SendAncestors(ctx context.Context, c *client.Client, commit ledger.Commit) error {
	git := gitrepo.Repo{Dir: "."}
	branch := defaultBranch(ctx, c, commit.Org, commit.Repo)
	list, err := git.Ancestors(ctx, commit.SHA, gitrepo.Query{DefaultBranch: branch})
	if err != nil {
		return fmt.Errorf("find ancestors of %s: %w", ledger.Short(commit.SHA), err)
	}
	if err := SendObjects(ctx, c, commit.Org, commit.Repo, list); err != nil {
		return err
	}

	for _, environment := range commit.Deliveries {
		asked, err := c.CommitFor(ctx, commit.Org, commit.Repo, commit.SHA, "", environment)
		if err != nil {
			return fmt.Errorf("ask what a deployment to %s ships: %w", environment, err)
		}
		if _, err := SendShipped(ctx, c, asked); err != nil {
			return err
		}
	}
	return nil
}

// SendShipped is like SendAncestors, for the commits of the delivery of a commit. It reports whether it has sent any.
func SendShipped(ctx context.Context, c *client.Client, commit ledger.Commit) (sent bool, err error) {
	d := commit.Delivery
	isUnknown := func(g ledger.Gap) bool { return g.Unknown }
	if d == nil || d.Base == nil || d.TooLong || len(d.Gaps) == d.Uncovered && !slices.ContainsFunc(d.Gaps, isUnknown) {
		return false, nil
	}
	list, err := gitrepo.Repo{Dir: "."}.Since(ctx, d.Base.Commit, commit.SHA)
	if err != nil {
		return false, fmt.Errorf("find what a deployment of %s to %s ships: %w", ledger.Short(commit.SHA), d.Environment, err)
	}
	return len(list) > 0, SendObjects(ctx, c, commit.Org, commit.Repo, list)
}

// SendObjects sends the objects of commits, as far as the ledger lacks them and the work tree in the current folder has
// them. Servers of earlier releases take none.
func SendObjects(ctx context.Context, c *client.Client, org, repo string, list []string) error {
	git := gitrepo.Repo{Dir: "."}
	for part := range slices.Chunk(list, lineage.MaxObjects) {
		unknown, err := c.AddObjects(ctx, org, repo, lineage.Objects{Commits: part})
		if client.CodeOf(err) == ledger.CodeNotFound {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ask which ancestors are unknown: %w", err)
		}
		if err := sendObjects(ctx, c, org, repo, git, unknown); err != nil {
			return err
		}
	}
	return nil
}

// sendObjects sends the objects of commits.
func sendObjects(ctx context.Context, c *client.Client, org, repo string, git gitrepo.Repo, commits []string) error {
	if len(commits) == 0 {
		return nil
	}
	objects, err := git.CommitObjects(ctx, commits)
	if err != nil {
		return err
	}
	for len(objects) > 0 {
		n, size := 0, 0
		for n < len(objects) && (n == 0 || size+len(objects[n].Object) <= maxObjectBytes) {
			size += len(objects[n].Object)
			n++
		}
		if _, err := c.AddObjects(ctx, org, repo, lineage.Objects{Objects: objects[:n]}); err != nil {
			return fmt.Errorf("send the objects of ancestors: %w", err)
		}
		objects = objects[n:]
	}
	return nil
}
