// Package history is the room of what commit objects say of the history: which commits a commit came from, and who
// wrote them. Of commits that are not registered, that is all that is known; they have no state, and no list has them.
// Its table is ancestors; the objects of registered commits are written by the room of what is recorded.
package history

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/store/txn"
)

// History has the objects of commits. Its methods are safe for concurrent use, except those with a txn.Tx, which the
// writer's goroutine calls.
type History struct {
	// The caches hold what never changes. They are cleared if a write fails, which may have filled them.
	nodes   *txn.Cache[key, lineage.Node]
	commits *txn.Cache[key, ancestry.Commit]
	// selectLineage is the query with this name, for what gitobject.Lineage needs.
	selectLineage string
}

// A key identifies a commit of a repo.
type key struct {
	repo int64
	sha  string
}

// Sizes of the caches. That of commits has those whose objects are at most maxText bytes, signature and all.
const (
	maxNodes   = 50_000
	maxCommits = 10_000
	maxText    = 4096
)

// selectLineage selects the first bytes of the object of a commit, as many as its verbs say.
const selectLineage = `
SELECT substr(object, 1, %[1]d) FROM ancestors WHERE repo_id = ?1 AND sha = ?2
UNION ALL
SELECT substr(o.object, 1, %[1]d)
FROM commits c /*+ordered*/ JOIN commit_objects o ON o.commit_id = c.id WHERE c.repo_id = ?1 AND c.sha = ?2`

// New returns the room of a database.
func New(db *txn.DB) *History {
	h := &History{
		selectLineage: fmt.Sprintf(selectLineage, gitobject.LineageSize),
		nodes:         txn.NewCache[key, lineage.Node](maxNodes), commits: txn.NewCache[key, ancestry.Commit](maxCommits),
	}
	db.Attach(txn.Part{Discard: h.clear, AfterRollback: h.clear})
	return h
}

func (h *History) clear() {
	h.nodes.Clear()
	h.commits.Clear()
}

// Add stores the object of a commit that is not registered, with the fingerprint of the key that signed it, or "".
func Add(t *txn.Tx, repoID int64, o *gitobject.Commit, signingKey string) error {
	_, err := t.Exec(`
INSERT INTO ancestors (repo_id, sha, signing_key, object) VALUES (?, ?, ?, ?) ON CONFLICT (repo_id, sha) DO NOTHING`,
		repoID, o.ID, signingKey, o.Object)
	if err != nil {
		return fmt.Errorf("insert the object of an ancestor: %w", err)
	}
	return nil
}

// Forget deletes the object of a commit that is registered now, with its object.
func Forget(t *txn.Tx, repoID int64, sha string) error {
	if _, err := t.Exec("DELETE FROM ancestors WHERE repo_id = ? AND sha = ?", repoID, sha); err != nil {
		return fmt.Errorf("delete the object of an ancestor: %w", err)
	}
	return nil
}

// Objects returns the objects of those of the commits of a repo that are known by their object alone, by commit.
func Objects(rd txn.Reader, repoID int64, commits []string) (map[string][]byte, error) {
	objects := make(map[string][]byte)
	err := rd.EachIn(func(row txn.Scanner) error {
		var sha string
		var object []byte
		err := row.Scan(&sha, &object)
		objects[sha] = object
		return err
	}, "SELECT sha, object FROM ancestors WHERE (repo_id, sha) IN ", 2, keysOf(repoID, commits))
	if err != nil {
		return nil, fmt.Errorf("read the objects of ancestors: %w", err)
	}
	return objects, nil
}

// Unknown returns those of the commits of a repo whose objects are not known, in their order, or nil.
func Unknown(rd txn.Reader, repoID int64, commits []string) ([]string, error) {
	known, err := among(rd, repoID, commits, "SELECT sha FROM ancestors WHERE (repo_id, sha) IN ",
		"SELECT sha FROM commits WHERE tree <> '' AND (repo_id, sha) IN ")
	if err != nil {
		return nil, err
	}
	var unknown []string
	for _, sha := range commits {
		if !known[sha] {
			unknown = append(unknown, sha)
		}
	}
	return unknown, nil
}

// Unproven returns those of the commits of a repo that are registered without their objects, in their order, or nil.
func Unproven(rd txn.Reader, repoID int64, commits []string) ([]string, error) {
	found, err := among(rd, repoID, commits, "SELECT sha FROM commits WHERE tree = '' AND (repo_id, sha) IN ")
	if err != nil {
		return nil, err
	}
	var unproven []string
	for _, sha := range commits {
		if found[sha] {
			unproven = append(unproven, sha)
		}
	}
	return unproven, nil
}

// among returns those of the commits of a repo that any of the queries selects.
func among(rd txn.Reader, repoID int64, commits []string, queries ...string) (map[string]bool, error) {
	found := make(map[string]bool, len(commits))
	args := keysOf(repoID, commits)
	note := func(row txn.Scanner) error {
		var sha string
		err := row.Scan(&sha)
		found[sha] = true
		return err
	}
	for _, query := range queries {
		if err := rd.EachIn(note, query, 2, args); err != nil {
			return nil, fmt.Errorf("find the objects of commits: %w", err)
		}
	}
	return found, nil
}

func keysOf(repoID int64, commits []string) []any {
	args := make([]any, 0, 2*len(commits))
	for _, sha := range commits {
		args = append(args, repoID, sha)
	}
	return args
}
