package gitrepo

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// Resolve returns the sha of a revision. Outside a git work tree, the revision must
// be a full sha.
func Resolve(ctx context.Context, rev string) (string, error) {
	sha, err := Repo{Dir: "."}.commit(ctx, rev)
	if sha != "" {
		return sha, nil
	}
	if ledger.IsCommit(rev) {
		return rev, nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot resolve commit %q: %w (a full sha works without git)", rev, err)
	}
	return "", missingCommit(rev)
}

// Find is like Resolve, but also accepts the prefix of a sha, for a commit that only
// the ledger knows.
func Find(ctx context.Context, rev string) (string, error) {
	sha, err := Resolve(ctx, rev)
	if err != nil && ledger.IsCommitPrefix(rev) {
		return rev, nil
	}
	return sha, err
}
