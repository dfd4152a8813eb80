// Package checkout relates a CI job to the clone that it runs in: which commit the job is
// about, whether that is what was checked out, and what the clone lacks.
package checkout

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/cmd/internal/ci"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// Commit returns the commit that a job is about, as a sha or a revision of the clone.
func Commit(ctx context.Context, job ci.Job) (string, error) {
	switch {
	case job.Commit != "":
		return job.Commit, nil
	case job.CommitRef != "":
		sha, err := gitrepo.Resolve(ctx, job.CommitRef)
		if err != nil {
			return "", fmt.Errorf("%s reports no commit: %w (pass --commit)", job.Provider.Name(), err)
		}
		return sha, nil
	case job.NoCommit != "":
		return "", fmt.Errorf("%s: pass --commit; see 'ledgerd ci'", job.NoCommit)
	}
	return "HEAD", nil
}

// CheckTested returns an error if HEAD is neither the commit nor a merge of it, so that a command in
// the work tree would say nothing about the commit. Outside a clone, nothing is checked.
func CheckTested(ctx context.Context, job ci.Job, sha string) error {
	g := gitrepo.Repo{Dir: "."}
	if exists, err := g.Exists(ctx); err != nil || !exists {
		return err
	}

	head, parents, err := g.Head(ctx)
	if err != nil || head == sha {
		return err
	}
	// A provider merges two commits. A branch's own merge may have any parents.
	if job.Event == ci.PullRequest && slices.Contains(parents, sha) {
		return nil
	}

	if head == "" {
		return fmt.Errorf("the work tree has no commit, so it is not the commit %.12s of the job (%s, or pass --commit)", sha,
			job.Checkout())
	}
	return fmt.Errorf("the work tree has %.12s, which is neither the commit %.12s of the job nor a merge of it (%s, "+
		"or pass --commit)", head, sha, job.Checkout())
}

// Fetch fetches a commit that the clone lacks, for its object. It is a no-op outside a
// clone.
func Fetch(ctx context.Context, sha string) error {
	g := gitrepo.Repo{Dir: "."}
	if exists, err := g.Exists(ctx); err != nil || !exists {
		return err
	}
	return g.FetchCommit(ctx, sha)
}

// Inspect adds to the job's problems what is wrong with the clone.
func Inspect(ctx context.Context, job *ci.Job) {
	g := gitrepo.Repo{Dir: "."}
	add := func(problem, fix string) { job.Problems = append(job.Problems, ci.Problem{Problem: problem, Fix: fix}) }
	exists, err := g.Exists(ctx)
	switch {
	case err != nil:
		add(err.Error(), "do what the problem says, or check out the repository again")
		return
	case !exists:
		add("there is no git clone in this folder", "check out the repository before, and run ledgerd in it")
		return
	}
	if shallow, err := g.IsShallow(ctx); err == nil && shallow {
		add("the clone is shallow: ledgerd fetches the history that it needs",
			job.Provider.WholeHistory()+" to fetch it at once")
	}

	rev, err := Commit(ctx, *job)
	if err != nil {
		return // reported by Detect, or by the command
	}
	sha, err := gitrepo.Resolve(ctx, rev)
	if err != nil {
		add(err.Error(), "pass --commit")
		return
	}
	job.Commit = sha
	if err := CheckTested(ctx, *job, sha); err != nil {
		add("the work tree has neither the commit nor a merge of it", job.Checkout())
	}
}
