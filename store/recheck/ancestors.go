package recheck

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/store/txn"
)

// ancestorsPage is the number of objects that are checked in one read.
const ancestorsPage = 500

// An Ancestor is a commit that is not registered, and known by its object.
type Ancestor struct{ Commit, SigningKey string }

// An AncestorResult is the result of checking the objects of some commits of a repo that are not registered. There are
// no further ones if Ancestors is empty.
type AncestorResult struct {
	Ancestors   []Ancestor
	Differences []Difference
}

func (r *AncestorResult) differ(sha, format string, args ...any) {
	r.Differences = append(r.Differences, Difference{sha, fmt.Sprintf(format, args...)})
}

// RecheckAncestors checks the objects of the next commits of a repo that are not registered, after a commit. It writes
// nothing.
func (re *Rechecker) RecheckAncestors(ctx context.Context, repoID int64, after string) (AncestorResult, error) {
	return txn.Read(ctx, re.db, txn.ForWrite(""), func(rd txn.Reader) (r AncestorResult, err error) {
		err = rd.Each(func(row txn.Scanner) error {
			var a Ancestor
			var object []byte
			var isProven bool
			if err := row.Scan(&a.Commit, &a.SigningKey, &object, &isProven); err != nil {
				return err
			}
			r.Ancestors = append(r.Ancestors, a)

			o, err := gitobject.Parse(a.Commit, object)
			switch {
			case err != nil:
				r.differ(a.Commit, "its object is not that of the commit: %v", err)
			case a.SigningKey != ancestry.SigningKey(o):
				r.differ(a.Commit, "the key that signed it is not the one of its object")
			}
			if isProven {
				r.differ(a.Commit, "it is registered with its object, and has a second one")
			}
			return nil
		}, `
SELECT a.sha, a.signing_key, a.object, EXISTS (
  SELECT 1 FROM commits c WHERE c.repo_id = a.repo_id AND c.sha = a.sha AND c.tree <> '')
FROM ancestors a WHERE a.repo_id = ? AND a.sha > ? ORDER BY a.sha LIMIT ?`, repoID, after, ancestorsPage)
		if err != nil {
			return r, fmt.Errorf("read the objects of ancestors: %w", err)
		}
		return r, nil
	})
}
