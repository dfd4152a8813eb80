package store

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
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

// recheckTrees compares proven commits with their objects. It finds again which commits have the same
// tree, and what their evidence is, for the trees of which the first commit is among those given.
func (rd reader) recheckTrees(commits []*commitRow, r *Recheck) error {
	groups, names := make(map[string]*treeGroup), make(map[int64]string)
	var keys, proven []any
	for _, c := range commits {
		if !c.isProven() {
			if c.treeID != 0 {
				r.differ(c.sha, "it is joined to a tree, and its object is not known")
			}
			continue
		}
		if groups[c.tree] == nil {
			groups[c.tree] = new(treeGroup)
			keys = append(keys, c.repoID, c.tree)
		}
		names[c.id] = c.sha
		proven = append(proven, c.id)
	}
	if proven == nil {
		return nil
	}
	if err := rd.recheckObjects(commits, proven, r); err != nil {
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
		switch isLeft := g.joined < g.commits && g.joined < maxTreeCommits; {
		case !isFirst:
		case g.isMixed || g.commits > 1 && isLeft || g.commits == 1 && g.joined > 0:
			r.differ(sha, "%d commits have its tree, and they are joined as %d", g.commits, g.joined)
		case g.id != 0:
			trees[g.id] = sha
			if err := rd.recheckTree(g, sha, r); err != nil {
				return err
			}
		}
	}
	return rd.recheckTreeLatest(trees, r)
}

// recheckTree compares the row of a tree with its commits.
func (rd reader) recheckTree(g *treeGroup, sha string, r *Recheck) error {
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

// recheckTreeLatest finds the latest evidence of trees again. Evidence without an outcome may be there
// that was the latest of its commit before an outcome was.
func (rd reader) recheckTreeLatest(trees map[int64]string, r *Recheck) error {
	stored, derived := make(map[treeKey]treeRow), make(map[treeKey]treeRow)
	read := func(rows map[treeKey]treeRow, query string) error {
		return rd.EachIn(func(row txn.Scanner) error {
			var k treeKey
			var v treeRow
			err := row.Scan(&k.tree, &k.predicate, &k.slot, &k.signer, &k.stated, &v.attestation, &v.commit, &v.failed)
			if v.attestation > rows[k].attestation {
				rows[k] = v
			}
			return err
		}, query, 1, keysOf(trees))
	}
	err := read(stored, `
SELECT tree_id, predicate_id, slot, signer_id, stated, attestation_id, commit_id, failed
FROM tree_latest WHERE tree_id IN `)
	if err == nil {
		err = read(derived, selectTreeLatest+"c.tree_id IN ")
	}
	if err != nil {
		return fmt.Errorf("read the evidence of trees: %w", err)
	}

	for k, want := range derived {
		if got := stored[k]; got != want && (k.stated || got.attestation <= want.attestation) {
			r.differ(trees[k.tree], "the evidence of its tree has the attestation in row %d, and the latest is in row %d",
				got.attestation, want.attestation)
		}
	}
	for k, got := range stored {
		if want := derived[k]; want == got || k.stated && want != (treeRow{}) {
			continue
		}
		isRecorded := false
		if !k.stated {
			err := rd.Row(`
SELECT EXISTS (SELECT 1 FROM attestations a JOIN commits c ON c.id = a.commit_id
  WHERE a.id = ? AND c.id = ? AND c.tree_id = ? AND a.predicate_id = ? AND a.slot = ? AND a.signer_id = ?
    AND a.status = ?)`,
				got.attestation, got.commit, k.tree, k.predicate, k.slot, k.signer, string(ledger.Recorded)).Scan(&isRecorded)
			if err != nil {
				return fmt.Errorf("read evidence: %w", err)
			}
		}
		if !isRecorded {
			r.differ(trees[k.tree], "the evidence of its tree has the attestation in row %d, which none of its commits has as "+
				"the latest", got.attestation)
		}
	}
	return nil
}

// recheckUnproven checks that commits whose objects are not known have none.
func (rd reader) recheckUnproven(commits []*commitRow, r *Recheck) error {
	shas := make(map[int64]string)
	var unproven []any
	for _, c := range commits {
		if !c.isProven() {
			shas[c.id] = c.sha
			unproven = append(unproven, c.id)
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

// recheckObjects compares proven commits with their objects.
func (rd reader) recheckObjects(commits []*commitRow, proven []any, r *Recheck) error {
	missing := make(map[int64]string, len(proven))
	for _, c := range commits {
		if c.isProven() {
			missing[c.id] = c.sha
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
