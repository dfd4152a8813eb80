package recheck

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A treeGroup is the commits of a repo that have the same tree.
type treeGroup struct {
	first           int64 // the row id of the first commit
	id              int64 // of the row of the tree; 0 if no commit is joined
	commits, joined int64 // how many there are, and how many of them are joined
	isMixed         bool  // they are joined to several trees
}

// add adds a commit.
func (g *treeGroup) add(commit, tree int64) {
	if g.commits++; g.first == 0 || commit < g.first {
		g.first = commit
	}
	if tree != 0 {
		g.joined++
		g.isMixed = g.isMixed || g.id != 0 && g.id != tree
		g.id = tree
	}
}

// checkTrees compares proven commits with their objects. It finds again which commits have the same
// tree, and what their evidence is, for the trees of which the first commit is among those given.
func checkTrees(rd txn.Reader, commits []*facts.CommitRow, r *Result) error {
	groups, names := make(map[string]*treeGroup), make(map[int64]string)
	var keys, proven []any
	for _, c := range commits {
		if !c.IsProven() {
			if c.TreeID != 0 {
				r.differ(c.SHA, "it is joined to a tree, and its object is not known")
			}
			continue
		}
		if groups[c.Tree] == nil {
			groups[c.Tree] = new(treeGroup)
			keys = append(keys, c.RepoID, c.Tree)
		}
		names[c.ID] = c.SHA
		proven = append(proven, c.ID)
	}
	if proven == nil {
		return nil
	}
	if err := checkObjects(rd, commits, proven, r); err != nil {
		return err
	}

	err := rd.EachIn(func(row txn.Scanner) error {
		var name string
		var commit, tree int64
		err := row.Scan(&name, &commit, &tree)
		groups[name].add(commit, tree)
		return err
	}, "SELECT tree, id, tree_id FROM commits WHERE tree <> '' AND (repo_id, tree) IN ", 2, keys)
	if err != nil {
		return fmt.Errorf("read commits by tree: %w", err)
	}
	trees := make(map[int64]string) // the first commit
	for _, g := range groups {
		sha, isFirst := names[g.first]
		switch isLeft := g.joined < g.commits && g.joined < facts.MaxTreeCommits; {
		case !isFirst:
		case g.isMixed || g.commits > 1 && isLeft || g.commits == 1 && g.joined > 0:
			r.differ(sha, "%d commits have its tree, and they are joined as %d", g.commits, g.joined)
		case g.id != 0:
			trees[g.id] = sha
			if err := checkTree(rd, g, sha, r); err != nil {
				return err
			}
		}
	}
	return checkTreeLatest(rd, trees, r)
}

// checkTree compares the row of a tree with its commits.
func checkTree(rd txn.Reader, g *treeGroup, sha string, r *Result) error {
	var counted, joined int64
	err := rd.Row(`
SELECT coalesce((SELECT commits FROM trees WHERE id = ?), 0),
  (SELECT count(*) FROM commits /*+index commits_by_tree_id*/ WHERE tree_id = ? AND tree_id > 0)`, g.id, g.id).
		Scan(&counted, &joined)
	if err != nil {
		return fmt.Errorf("read tree: %w", err)
	}
	if counted != g.joined || joined != g.joined {
		r.differ(sha, "%d commits have its tree, %d are joined to it, and it counts %d", g.joined, joined, counted)
	}
	return nil
}

// checkTreeLatest finds the latest evidence of trees again. Evidence without an outcome may be there
// that was the latest of its commit before an outcome was.
func checkTreeLatest(rd txn.Reader, trees map[int64]string, r *Result) error {
	stored, derived := make(map[facts.TreeKey]facts.TreeRow), make(map[facts.TreeKey]facts.TreeRow)
	read := func(rows map[facts.TreeKey]facts.TreeRow, query string) error {
		return rd.EachIn(func(row txn.Scanner) error {
			var k facts.TreeKey
			var v facts.TreeRow
			err := row.Scan(&k.Tree, &k.Predicate, &k.Slot, &k.Signer, &k.Stated, &v.Attestation, &v.Commit, &v.Failed)
			if v.Attestation > rows[k].Attestation {
				rows[k] = v
			}
			return err
		}, query, 1, facts.KeysOf(trees))
	}
	err := read(stored, `
SELECT tree_id, predicate_id, slot, signer_id, stated, attestation_id, commit_id, failed
FROM tree_latest WHERE tree_id IN `)
	if err == nil {
		err = read(derived, facts.SelectTreeLatest+"c.tree_id IN ")
	}
	if err != nil {
		return fmt.Errorf("read the evidence of trees: %w", err)
	}

	for k, want := range derived {
		if got := stored[k]; got != want && (k.Stated || got.Attestation <= want.Attestation) {
			r.differ(trees[k.Tree], "the evidence of its tree has the attestation in row %d, and the latest is in row %d",
				got.Attestation, want.Attestation)
		}
	}
	for k, got := range stored {
		if want := derived[k]; want == got || k.Stated && want != (facts.TreeRow{}) {
			continue
		}
		isRecorded := false
		if !k.Stated {
			err := rd.Row(`
SELECT EXISTS (SELECT 1 FROM attestations a JOIN commits c ON c.id = a.commit_id
  WHERE a.id = ? AND c.id = ? AND c.tree_id = ? AND a.predicate_id = ? AND a.slot = ? AND a.signer_id = ?
    AND a.status = ?)`,
				got.Attestation, got.Commit, k.Tree, k.Predicate, k.Slot, k.Signer, string(ledger.Recorded)).Scan(&isRecorded)
			if err != nil {
				return fmt.Errorf("read evidence: %w", err)
			}
		}
		if !isRecorded {
			r.differ(trees[k.Tree], "the evidence of its tree has the attestation in row %d, which none of its commits has as "+
				"the latest", got.Attestation)
		}
	}
	return nil
}

// checkUnproven checks that commits whose objects are not known have none.
func checkUnproven(rd txn.Reader, commits []*facts.CommitRow, r *Result) error {
	shas := make(map[int64]string)
	var unproven []any
	for _, c := range commits {
		if !c.IsProven() {
			shas[c.ID] = c.SHA
			unproven = append(unproven, c.ID)
		}
	}

	err := rd.EachIn(func(row txn.Scanner) error {
		id, err := txn.ScanID(row)
		if err == nil {
			r.differ(shas[id], "its object is stored, and is said to be unknown")
		}
		return err
	}, "SELECT commit_id FROM commit_objects WHERE commit_id IN ", 1, unproven)
	if err != nil {
		return fmt.Errorf("read commit objects: %w", err)
	}
	return nil
}

// checkObjects compares proven commits with their objects.
func checkObjects(rd txn.Reader, commits []*facts.CommitRow, proven []any, r *Result) error {
	missing := make(map[int64]string, len(proven))
	for _, c := range commits {
		if c.IsProven() {
			missing[c.ID] = c.SHA
		}
	}

	err := rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var raw, lineage []byte
		var tree, message string
		var at ledger.Time
		var parents []string
		if err := row.Scan(&id, &raw, &tree, &message, &at, &lineage); err != nil {
			return err
		}
		_ = json.Unmarshal(lineage, &parents) // if it fails, there are none
		sha := missing[id]
		delete(missing, id)
		o, err := gitobject.Parse(sha, raw)
		switch {
		case err != nil:
			r.differ(sha, "its object is not that of the commit: %v", err)
		case o.Tree != tree || o.Message != message || o.Committer.At != at || !slices.Equal(parents, o.Parents):
			r.differ(sha, "tree, message, time or parents are not those of its object")
		}
		return nil
	}, `
SELECT c.id, o.object, c.tree, c.message, c.committed_at, d.parents
FROM commit_objects o /*+ordered*/ JOIN commits c ON c.id = o.commit_id
  LEFT JOIN commit_details d ON d.commit_id = c.id WHERE o.commit_id IN `, 1, proven)
	for _, sha := range missing {
		r.differ(sha, "its object is said to be known, and is missing")
	}
	if err != nil {
		return fmt.Errorf("read commit objects: %w", err)
	}
	return nil
}
