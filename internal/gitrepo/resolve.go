package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// Resolve returns the sha of a revision. A full sha that the repository lacks is returned as it
// is, and outside a git work tree the revision must be one. The ID of a tree or a blob is an error, as
// is a repository that cannot be used; see Exists.
func Resolve(ctx context.Context, rev string) (string, error) {
	g := Repo{Dir: "."}
	sha, err := g.commit(ctx, rev)
	if sha != "" {
		return sha, nil
	}
	if _, ok := errors.AsType[otherObject](err); ok {
		return "", err
	}

	if err != nil {
		exists, unusable := g.Exists(ctx)
		if unusable != nil {
			return "", unusable
		}
		if exists {
			return "", fmt.Errorf("cannot resolve commit %q: %w", rev, err)
		}
	}
	if ledger.IsCommit(rev) {
		return rev, nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot resolve commit %q: %w (a full sha works without git)", rev, err)
	}
	return "", missingCommit(rev)
}

// Find is like Resolve, but takes a sha or the prefix of one as it is if the repository has no such
// commit or cannot be used: what the ledger knows of a commit can be read without git. A prefix may
// also be that of another object.
func Find(ctx context.Context, rev string) (string, error) {
	sha, err := Resolve(ctx, rev)
	if _, ok := errors.AsType[otherObject](err); ok && ledger.IsCommit(rev) {
		return "", err
	}
	if err != nil && ledger.IsCommitPrefix(rev) {
		return rev, nil
	}
	return sha, err
}

// Head returns the commit that is checked out and its parents, also those that a shallow
// clone lacks. The sha is empty before the first commit.
func (g Repo) Head(ctx context.Context) (sha string, parents []string, err error) {
	if sha, err = g.commit(ctx, "HEAD"); err != nil || sha == "" {
		return "", nil, err
	}
	object, err := g.Read(ctx, "cat-file", "commit", sha)
	if err != nil {
		return "", nil, err
	}
	header, _, _ := strings.Cut(object, "\n\n")
	for line := range strings.Lines(header) {
		if parent, ok := strings.CutPrefix(line, "parent "); ok {
			parents = append(parents, strings.TrimSpace(parent))
		}
	}
	return sha, parents, nil
}

// IsShallow reports whether the clone lacks parents of commits.
func (g Repo) IsShallow(ctx context.Context) (bool, error) {
	answer, err := g.line(ctx, "rev-parse", "--is-shallow-repository")
	return answer == "true", err
}
