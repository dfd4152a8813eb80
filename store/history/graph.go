package history

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Past is the history of a repo, as a read finds it.
type Past struct {
	history *History
	rd      txn.Reader
	repoID  int64
}

// Of returns the history of a repo.
func (h *History) Of(rd txn.Reader, repoID int64) Past { return Past{h, rd, repoID} }

// IsKnown reports whether the object of a commit is known.
func (p Past) IsKnown(sha string) (bool, error) {
	unknown, err := Unknown(p.rd, p.repoID, []string{sha})
	return err == nil && unknown == nil, err
}

// IsAncestor reports whether it is known that commit a is b, or an ancestor of b, as lineage.IsAncestor does.
func (p Past) IsAncestor(a, b string) (is, sure bool, err error) {
	is, sure, err = lineage.IsAncestor(p.Node, a, b)
	if err != nil {
		return false, false, fmt.Errorf("follow the history from %s: %w", b, err)
	}
	return is, sure, nil
}

// IsFirstParent reports whether it is known that commit a is among the first n that follow b by first parents.
func (p Past) IsFirstParent(a, b string, n int) (bool, error) {
	is, err := lineage.IsFirstParent(p.Node, a, b, n)
	if err != nil {
		return false, fmt.Errorf("follow the first parents of %s: %w", b, err)
	}
	return is, nil
}

// Between returns the commits that lead to the head and not to the base, the head first. It reports false if the base
// is no ancestor of the head, if an object is not known, or if there are more than lineage.MaxSpan.
func (p Past) Between(base, head string) (list []ancestry.Commit, known bool, err error) {
	commits, known, err := lineage.Between(p.Node, base, head)
	if err != nil {
		return nil, false, fmt.Errorf("follow the history from %s: %w", head, err)
	}
	if !known {
		return nil, false, nil
	}
	return p.Commits(commits)
}

// MergeBase returns the merge base of a commit, the head, and another one, and the commits since then, the head first.
// The base is empty if it is not known.
func (p Past) MergeBase(head, other string) (base string, commits []string, err error) {
	base, commits, err = lineage.MergeBase(p.Node, head, other)
	if err != nil {
		return "", nil, fmt.Errorf("find the merge base of %s: %w", head, err)
	}
	return base, commits, nil
}

// Node returns the place of a commit in the history. It reports false if its object is not known.
func (p Past) Node(sha string) (n lineage.Node, known bool, err error) {
	h, key := p.history, key{p.repoID, sha}
	if n, ok := h.nodes.Get(key); ok {
		return n, true, nil
	}

	err = p.rd.Each(func(row txn.Scanner) error {
		var object []byte
		if err := row.Scan(&object); err != nil {
			return err
		}
		var fault error
		n.Parents, n.At, fault = gitobject.Lineage(sha, object)
		known = fault == nil // a check of the database says why
		return nil
	}, h.selectLineage, p.repoID, sha)
	if err != nil {
		return n, false, fmt.Errorf("read the object of %s: %w", sha, err)
	}
	if known {
		h.nodes.Put(key, n)
	}
	return n, known, nil
}

// Commits returns what the objects of commits say of who wrote them, in the order of the list. It reports false if one
// is not known.
func (p Past) Commits(commits []string) (list []ancestry.Commit, known bool, err error) {
	found := make(map[string]ancestry.Commit, len(commits))
	var missing []string
	for _, sha := range commits {
		if c, ok := p.history.commits.Get(key{p.repoID, sha}); ok {
			found[sha] = c
		} else {
			missing = append(missing, sha)
		}
	}
	if err := p.readCommits(missing, found); err != nil {
		return nil, false, err
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

// readCommits adds what the objects of commits say to those found, as far as they are known.
func (p Past) readCommits(commits []string, found map[string]ancestry.Commit) error {
	note := func(row txn.Scanner) error {
		var sha, keys string
		var object []byte
		if err := row.Scan(&sha, &keys, &object); err != nil {
			return err
		}
		o, fault := gitobject.Decode(sha, object)
		if fault != nil { // a check of the database says why
			return nil
		}
		found[sha] = ancestry.Read(o, strings.Fields(keys)...)
		if len(object) <= maxText {
			p.history.commits.Put(key{p.repoID, sha}, found[sha])
		}
		return nil
	}
	args := keysOf(p.repoID, commits)
	for _, query := range []string{
		"SELECT sha, signing_key, object FROM ancestors WHERE (repo_id, sha) IN ",
		`SELECT c.sha, c.signing_keys, o.object
FROM commits c /*+ordered*/ JOIN commit_objects o ON o.commit_id = c.id WHERE (c.repo_id, c.sha) IN `,
	} {
		if err := p.rd.EachIn(note, query, 2, args); err != nil {
			return fmt.Errorf("read the objects of commits: %w", err)
		}
	}
	return nil
}

// Commit returns what the object of a commit says of who wrote it. It reports false if the object is not known.
func (p Past) Commit(sha string) (c ancestry.Commit, known bool, err error) {
	list, known, err := p.Commits([]string{sha})
	if known {
		c = list[0]
	}
	return c, known, err
}
