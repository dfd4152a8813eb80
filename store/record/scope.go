package record

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/review"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// ReviewScope returns what a review of a commit is about: the commits since its merge base with the newest commit that
// was registered for the branch that it is meant for. The scope is empty if the ledger does not know the objects of all
// these commits, or if they are too many.
func (re *Recorder) ReviewScope(ctx context.Context, org, repo, sha string) (review.Scope, error) {
	return txn.Read(ctx, re.db, txn.ByOrg(org), func(rd txn.Reader) (scope review.Scope, err error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return scope, err
		}
		c, err := facts.FindRow(rd, r, sha)
		if err != nil {
			return scope, err
		}
		return re.scopeOf(rd, r.ID, c.SHA, cmp.Or(c.Target, r.DefaultBranch))
	})
}

// scopeOf returns what a review of a commit is about that is meant for a branch.
func (re *Recorder) scopeOf(rd txn.Reader, repoID int64, sha, branch string) (scope review.Scope, err error) {
	mainline, err := newestOf(rd, repoID, branch)
	if err != nil || mainline == "" {
		return scope, err
	}
	past := re.history.Of(rd, repoID)
	base, since, err := past.MergeBase(sha, mainline)
	if err != nil || base == "" || len(since) > review.MaxCovered {
		return scope, err
	}
	commits, known, err := past.Commits(since)
	if err != nil || !known {
		return scope, err
	}

	scope.Base, scope.Branch = base, branch
	for _, c := range commits {
		scope.Commits = append(scope.Commits, covered(c))
	}
	first, known, err := past.Commit(base)
	if known {
		scope.Since = new(covered(first))
	}
	return scope, err
}

func covered(c ancestry.Commit) review.Covered {
	return review.Covered{SHA: c.SHA, Subject: c.Subject, Author: c.Author}
}

// newestOf returns the newest commit that was registered for a branch, or "".
func newestOf(rd txn.Reader, repoID int64, branch string) (sha string, err error) {
	err = rd.Row(`
SELECT sha FROM commits /*+index commits_by_branch*/ WHERE repo_id = ? AND branch <> '' AND branch = ? AND tree <> ''
ORDER BY id DESC LIMIT 1`, repoID, branch).Scan(&sha)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("find the newest commit of a branch: %w", err)
	}
	return sha, nil
}
