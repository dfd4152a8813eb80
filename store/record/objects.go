package record

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/txn"
)

// AddObjects records the objects of commits of a repo, and returns which of some commits have none. Those of
// registered commits are registered, one by one. Of other commits, only their place in the history and who wrote them
// is known then: these are stored all or none. An object that is not what it should be is refused before.
func (re *Recorder) AddObjects(ctx context.Context, org, repo string, o lineage.Objects) (unknown []string, err error) {
	objects := make(map[string]*gitobject.Commit, len(o.Objects))
	var commits []string
	for i, object := range o.Objects {
		sub, err := overlaps.Submit(object.Commit, ledger.Registration{Object: object.Object})
		if err != nil {
			return nil, inObject(i, err)
		}
		objects[object.Commit] = sub.Object
		commits = append(commits, object.Commit)
	}

	if len(commits) > 0 {
		if err := re.proveAll(ctx, org, repo, objects, commits); err != nil {
			return nil, err
		}
		err = re.db.Change(ctx, org, func(t *txn.Tx) error { return re.addAncestors(t, org, repo, objects, commits) })
		if err != nil {
			return nil, err
		}
	}
	return re.lacking(ctx, org, repo, o.Commits, history.Unknown, history.Unproven)
}

// inObject says which object of a request is not what it should be.
func inObject(i int, err error) error {
	e, ok := errors.AsType[*ledger.Error](err)
	if !ok || len(e.Fields) != 1 {
		return fmt.Errorf("object %d: %w", i, err)
	}
	f := e.Fields[0]
	return ledger.FieldErrorf(e.Code, fmt.Sprintf("objects[%d].%s", i, f.Field), "%s", f.Message)
}

// lacking returns those of the commits that any of the functions returns, in their order.
func (re *Recorder) lacking(ctx context.Context, org, repo string, commits []string,
	find ...func(txn.Reader, int64, []string) ([]string, error),
) ([]string, error) {
	return txn.Read(ctx, re.db, txn.ForWrite(org), func(rd txn.Reader) ([]string, error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return nil, err
		}
		lacking := make(map[string]bool)
		for _, f := range find {
			list, err := f(rd, r.ID, commits)
			if err != nil {
				return nil, err
			}
			for _, sha := range list {
				lacking[sha] = true
			}
		}
		return slices.DeleteFunc(slices.Clone(commits), func(sha string) bool { return !lacking[sha] }), nil
	})
}

// proveAll registers the objects of those commits that are registered without one.
func (re *Recorder) proveAll(ctx context.Context, org, repo string, objects map[string]*gitobject.Commit,
	commits []string,
) error {
	unproven, err := re.lacking(ctx, org, repo, commits, history.Unproven)
	if err != nil {
		return err
	}
	for _, sha := range unproven {
		if _, _, err := re.Register(ctx, org, repo, sha, ledger.Registration{Object: objects[sha].Object}); err != nil {
			return err
		}
	}
	return nil
}

// addAncestors stores the objects of commits that are not registered.
func (re *Recorder) addAncestors(t *txn.Tx, org, repo string, objects map[string]*gitobject.Commit, commits []string,
) error {
	d, err := re.facts.WritableDeriver(t.Reader, org, repo)
	if err != nil {
		return err
	}
	unknown, err := history.Unknown(t.Reader, d.Repo.ID, commits)
	if err != nil {
		return err
	}
	registered, err := history.Unproven(t.Reader, d.Repo.ID, unknown)
	if err != nil {
		return err
	}

	done := make(map[string]bool) // registered a moment ago, or listed twice
	for _, sha := range registered {
		done[sha] = true
	}
	var added []string
	for _, sha := range unknown {
		if done[sha] {
			continue
		}
		done[sha] = true
		if err := re.addAncestor(t, d, objects[sha]); err != nil {
			return err
		}
		added = append(added, sha)
	}
	if len(added) == 0 {
		return nil
	}
	if err := re.journal.AppendObjects(t, d.Repo, added); err != nil {
		return err
	}
	return re.states.FillGaps(t, d.Repo)
}

// addAncestor stores the object of a commit that is not registered.
func (re *Recorder) addAncestor(t *txn.Tx, d *facts.Deriver, o *gitobject.Commit) error {
	key, err := re.objectKey(t, d, o)
	if err != nil {
		return err
	}
	return history.Add(t, d.Repo.ID, o, key)
}
