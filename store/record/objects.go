package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/txn"
)

// AddObjects stores the objects of commits of a repo, all or none of them. They prove what is registered, and of other
// commits only their place in the history and who wrote them is known. It returns which of some commits are unknown.
func (re *Recorder) AddObjects(ctx context.Context, org, repo string, o lineage.Objects) (unknown []string, err error) {
	var list []overlaps.Submission
	for i, object := range o.Objects {
		sub, err := overlaps.Submit(object.Commit, ledger.Registration{Object: object.Object})
		if err != nil {
			return nil, fmt.Errorf("object %d, of %s: %w", i, object.Commit, err)
		}
		list = append(list, sub)
	}

	if len(list) > 0 {
		err = re.db.Change(ctx, org, func(t *txn.Tx) error { return re.addObjects(t, org, repo, list) })
		if err != nil {
			return nil, err
		}
	}
	return txn.Read(ctx, re.db, txn.ForWrite(org), func(rd txn.Reader) ([]string, error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return nil, err
		}
		return history.Unknown(rd, r.ID, o.Commits)
	})
}

// addObjects stores objects in a write.
func (re *Recorder) addObjects(t *txn.Tx, org, repo string, list []overlaps.Submission) error {
	d, err := re.facts.WritableDeriver(t.Reader, org, repo)
	if err != nil {
		return err
	}
	objects := make(map[string]overlaps.Submission, len(list))
	var commits []string
	for _, sub := range list {
		objects[sub.Object.ID] = sub
		commits = append(commits, sub.Object.ID)
	}
	unknown, err := history.Unknown(t.Reader, d.Repo.ID, commits)
	if err != nil {
		return err
	}

	var added []string
	for _, sha := range unknown {
		sub, ok := objects[sha]
		if !ok { // it is listed twice
			continue
		}
		delete(objects, sha)
		isRegistered, err := re.isRegistered(t, d, sha)
		if err != nil {
			return err
		}
		if isRegistered {
			if _, err := re.RegisterSubmission(t, org, repo, sha, sub, nil); err != nil {
				return err
			}
			continue
		}
		if err := re.addAncestor(t, d, sub.Object); err != nil {
			return err
		}
		added = append(added, sha)
	}
	if len(unknown) == 0 {
		return nil
	}
	if len(added) > 0 {
		if err := re.journal.AppendObjects(t, d.Repo, added); err != nil {
			return err
		}
	}
	re.states.FillGaps(t, d.Repo)
	return nil
}

func (re *Recorder) isRegistered(t *txn.Tx, d *facts.Deriver, sha string) (bool, error) {
	_, err := txn.ScanID(t.Row("SELECT id FROM commits WHERE repo_id = ? AND sha = ?", d.Repo.ID, sha))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find a commit: %w", err)
	}
	return true, nil
}

// addAncestor stores the object of a commit that is not registered.
func (re *Recorder) addAncestor(t *txn.Tx, d *facts.Deriver, o *gitobject.Commit) error {
	key, err := re.objectKey(t, d, o)
	if err != nil {
		return err
	}
	return history.Add(t, d.Repo.ID, o, key)
}
