package gitrepo

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// Resolve returns the sha that rev names: any revision in a git work tree, a whole
// sha elsewhere.
func Resolve(ctx context.Context, rev string) (string, error) {
	sha, err := Repo{Dir: "."}.commit(ctx, rev)
	if sha != "" {
		return sha, nil
	}
	if ledger.IsCommit(rev) {
		return rev, nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell which commit %q is: %w (a whole sha needs no git)", rev, err)
	}
	return "", fmt.Errorf("there is no commit %q in this git repository", rev)
}

// Find is Resolve for reading: it also takes the beginning of a sha that only the
// ledger knows.
func Find(ctx context.Context, rev string) (string, error) {
	sha, err := Resolve(ctx, rev)
	if err != nil && ledger.IsCommitPrefix(rev) {
		return rev, nil
	}
	return sha, err
}
