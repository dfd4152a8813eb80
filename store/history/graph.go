package history

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/store/txn"
)

// IsAncestor reports whether it is known that commit a of a repo is b, or an ancestor of b.
func (h *History) IsAncestor(rd txn.Reader, repoID int64, a, b string) (bool, error) {
	is, err := lineage.IsAncestor(h.Graph(rd, repoID), a, b)
	if err != nil {
		return false, fmt.Errorf("follow the history from %s: %w", b, err)
	}
	return is, nil
}

// IsFirstParent reports whether it is known that commit a of a repo is among the first n that follow b by first
// parents.
func (h *History) IsFirstParent(rd txn.Reader, repoID int64, a, b string, n int) (bool, error) {
	is, err := lineage.IsFirstParent(h.Graph(rd, repoID), a, b, n)
	if err != nil {
		return false, fmt.Errorf("follow the first parents of %s: %w", b, err)
	}
	return is, nil
}

// Between returns the commits that lead to the head and not to the base, the head first. It reports false if the base
// is no ancestor of the head, if an object is not known, or if there are more than MaxSpan.
func (h *History) Between(rd txn.Reader, repoID int64, base, head string) (list []Commit, known bool, err error) {
	key := spanKey{repoID, base, head}
	if list, ok := h.spans.Get(key); ok {
		return list, true, nil
	}
	commits, known, err := lineage.Between(h.Graph(rd, repoID), base, head)
	if err != nil {
		return nil, false, fmt.Errorf("follow the history from %s: %w", head, err)
	}
	if !known || len(commits) > MaxSpan {
		return nil, false, nil
	}
	if list, known, err = Read(rd, repoID, commits); known {
		h.spans.Put(key, list)
	}
	return list, known, err
}

// MergeBase returns the merge base of a commit, the head, and another one, and the commits since then, the head first.
// The base is empty if it is not known.
func (h *History) MergeBase(rd txn.Reader, repoID int64, head, other string) (base string, commits []string,
	err error,
) {
	base, commits, err = lineage.MergeBase(h.Graph(rd, repoID), head, other)
	if err != nil {
		return "", nil, fmt.Errorf("find the merge base of %s: %w", head, err)
	}
	return base, commits, nil
}

// Graph returns the history of a repo, as objects say.
func (h *History) Graph(rd txn.Reader, repoID int64) lineage.Graph {
	query := fmt.Sprintf(selectLineage, gitobject.LineageSize)
	return func(sha string) (n lineage.Node, known bool, err error) {
		if n, ok := h.nodes.Get(key{repoID, sha}); ok {
			return n, true, nil
		}

		err = rd.Each(func(row txn.Scanner) error {
			var object []byte
			if err := row.Scan(&object); err != nil {
				return err
			}
			var fault error
			n.Parents, n.At, fault = gitobject.Lineage(sha, object)
			known = fault == nil // a check of the database says why
			return nil
		}, query, repoID, sha)
		if err != nil {
			return n, false, fmt.Errorf("read the object of %s: %w", sha, err)
		}

		if known {
			h.nodes.Put(key{repoID, sha}, n)
		}
		return n, known, nil
	}
}

// selectLineage selects the first bytes of the object of a commit, as many as its verbs say.
const selectLineage = `
SELECT substr(object, 1, %[1]d) FROM ancestors WHERE repo_id = ?1 AND sha = ?2
UNION ALL
SELECT substr(o.object, 1, %[1]d)
FROM commits c /*+ordered*/ JOIN commit_objects o ON o.commit_id = c.id WHERE c.repo_id = ?1 AND c.sha = ?2`

// Read returns what the objects of commits say of who wrote them, in the order of the list. It reports false if one is
// not known.
func Read(rd txn.Reader, repoID int64, commits []string) (list []Commit, known bool, err error) {
	found := make(map[string]Commit, len(commits))
	note := func(row txn.Scanner) error {
		var sha, keys string
		var object []byte
		if err := row.Scan(&sha, &keys, &object); err != nil {
			return err
		}
		if o, fault := gitobject.Decode(sha, object); fault == nil { // a check of the database says why
			found[sha] = commitOf(o, keys)
		}
		return nil
	}
	args := keysOf(repoID, commits)
	for _, query := range []string{
		"SELECT sha, signing_key, object FROM ancestors WHERE (repo_id, sha) IN ",
		`SELECT c.sha, c.signing_keys, o.object
FROM commits c /*+ordered*/ JOIN commit_objects o ON o.commit_id = c.id WHERE (c.repo_id, c.sha) IN `,
	} {
		if err := rd.EachIn(note, query, 2, args); err != nil {
			return nil, false, fmt.Errorf("read the objects of commits: %w", err)
		}
	}

	for _, sha := range commits {
		c, ok := found[sha]
		if !ok {
			return nil, false, nil
		}
		list = append(list, c)
	}
	return list, true, nil
}
