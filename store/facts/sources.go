package facts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A treeEvidence is the latest evidence of all commits with a tree. If that is too much,
// only the failures are in the list: they go on blocking.
type treeEvidence struct {
	version int64
	tooMuch bool
	// hidden reports whether distrusted evidence that is not in the list may have replaced
	// failures.
	hidden bool
	list   []policy.Evidence
	// rows and commits are the row ids of the attestations, and of the commits that they are
	// about, by the position of the evidence.
	rows, commits []int64
}

// Sources holds what commits inherit from: trees by row id, merged commits by the commits
// that merge them, and all commits that evidence is about, with their versions.
type sources struct {
	trees    map[int64]*treeEvidence
	merged   map[int64][]MergedSource
	commits  map[int64]*Commit
	versions map[int64]int64
}

// gatherCarried reads the evidence that commits may inherit, and its versions.
func (fa *Facts) gatherCarried(rd txn.Reader, list []*Commit) error {
	var heirs []*Commit
	for _, s := range list {
		s.Versions = 0
		s.Facts.Sources, s.Facts.Carried, s.carriedRows = nil, nil, nil
		s.Facts.Incomplete, s.Facts.NotCarried = "", ""
		if s.Inherits() && s.Deriver.Contract.Carries() {
			heirs = append(heirs, s)
		}
	}
	if heirs == nil {
		return nil
	}

	from, err := fa.readSources(rd, heirs)
	if err != nil {
		return fmt.Errorf("read the sources of evidence: %w", err)
	}
	for _, s := range heirs {
		if tree := from.trees[s.TreeID]; tree != nil {
			s.Versions += tree.version
			s.inheritTree(tree, from)
		}
		for _, m := range from.merged[s.ID] {
			s.Versions += versionOf(m, from.versions)
			s.inheritMerged(m, from)
		}
	}
	return nil
}

// GatherVersions sets the versions of what commits inherit, and does not read the evidence.
func (fa *Facts) GatherVersions(rd txn.Reader, list []*Commit) error {
	trees := make(map[int64]int64)
	var heirs []*Commit
	for _, s := range list {
		s.Versions = 0
		if s.Inherits() && s.Deriver.Contract.Carries() {
			heirs = append(heirs, s)
			trees[s.TreeID] = 0
		}
	}
	merged, err := fa.GatherClaims(rd, heirs)
	if err != nil {
		return fmt.Errorf("read merges: %w", err)
	}
	sides := make(map[int64]int64)
	noteSides(merged, sides)

	err = errors.Join(readVersions(rd, trees, versionsOfTrees), readVersions(rd, sides, versionsOfSides))
	if err != nil {
		return fmt.Errorf("read versions: %w", err)
	}
	for _, s := range heirs {
		s.Versions += trees[s.TreeID]
		for _, m := range merged[s.ID] {
			s.Versions += versionOf(m, sides)
		}
	}
	return nil
}

// noteSides adds the commits that claims name to versions.
func noteSides(merged map[int64][]MergedSource, versions map[int64]int64) {
	for _, claimed := range merged {
		for _, m := range claimed {
			versions[m.Commit] = 0
			for _, side := range m.sides {
				versions[side] = 0
			}
		}
	}
}

// versionOf adds the versions of the commits that claims about a source name.
func versionOf(m MergedSource, versions map[int64]int64) int64 {
	sum := versions[m.Commit]
	for _, side := range m.sides {
		sum += versions[side]
	}
	return sum
}

const (
	versionsOfTrees = "SELECT id, version FROM trees WHERE id IN "
	versionsOfSides = "SELECT commit_id, version FROM merge_sides WHERE commit_id IN "
)

// readVersions reads the versions whose keys are in the map.
func readVersions(rd txn.Reader, versions map[int64]int64, query string) error {
	return rd.EachIn(func(row txn.Scanner) error {
		var id, version int64
		err := row.Scan(&id, &version)
		versions[id] = version
		return err
	}, query, 1, KeysOf(versions))
}

// readSources reads what commits inherit from.
func (fa *Facts) readSources(rd txn.Reader, heirs []*Commit) (from *sources, err error) {
	from = &sources{commits: make(map[int64]*Commit), versions: make(map[int64]int64)}
	if from.trees, err = fa.treesOf(rd, heirs); err != nil {
		return nil, fmt.Errorf("trees: %w", err)
	}
	if from.merged, err = fa.GatherClaims(rd, heirs); err != nil {
		return nil, fmt.Errorf("merges: %w", err)
	}

	merged := make(map[int64]*Commit)
	for _, s := range heirs {
		if tree := from.trees[s.TreeID]; tree != nil {
			for _, id := range tree.commits {
				if from.commits[id] == nil { // else another heir may merge it, and needs its evidence
					from.commits[id] = &Commit{Deriver: s.Deriver}
				}
			}
		}
		for _, m := range from.merged[s.ID] {
			merged[m.Commit] = &Commit{Deriver: s.Deriver}
			if s.Deriver.Contract.NeedsVerdicts() {
				merged[m.Commit].rows = []int64{}
			}
			from.commits[m.Commit] = merged[m.Commit]
		}
	}
	if err := readSourceCommits(rd, from.commits); err != nil {
		return nil, fmt.Errorf("commits: %w", err)
	}

	if err := fa.gatherEvidence(rd, merged, AskLatest(rd, KeysOf(merged)...)); err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	noteSides(from.merged, from.versions)
	return from, readVersions(rd, from.versions, versionsOfSides)
}

// treesOf reads the evidence of the trees of commits.
func (fa *Facts) treesOf(rd txn.Reader, heirs []*Commit) (map[int64]*treeEvidence, error) {
	trees, versions := make(map[int64]*treeEvidence), make(map[int64]int64)
	for _, s := range heirs {
		if s.TreeID != 0 {
			trees[s.TreeID], versions[s.TreeID] = new(treeEvidence), 0
		}
	}
	if err := readVersions(rd, versions, versionsOfTrees); err != nil {
		return nil, err
	}

	ofEach := make(map[int64]bool)
	for _, s := range heirs {
		ofEach[s.TreeID] = s.Deriver.Contract.CarriesChanges() // what carries depends on the commit that it is about
	}
	facts := make(map[int64]*policy.Facts, len(trees))
	var uncached []any
	missing := make(map[int64]place)
	for id, tree := range trees {
		tree.version = versions[id]
		facts[id] = new(policy.Facts)
		list, err := treeRows(rd, id, tree, ofEach[id])
		if err != nil {
			return nil, err
		}
		uncached = append(uncached, fa.addTreeRows(list, tree, facts[id], missing)...)
	}
	if err := fa.readEvidence(rd, missing, uncached); err != nil {
		return nil, err
	}
	for id, tree := range trees {
		tree.list = facts[id].Evidence
	}
	return trees, blockDistrusted(rd, heirs, trees)
}

// blockDistrusted has distrusted evidence of trees block, until the background has found what
// it had replaced: it may hide a failure.
func blockDistrusted(rd txn.Reader, heirs []*Commit, trees map[int64]*treeEvidence) error {
	var ids, rows []any
	for _, s := range heirs {
		if s.TreeID == 0 || !s.Deriver.Repo.Distrusting {
			continue
		}
		ids = append(ids, s.TreeID)
		for _, row := range trees[s.TreeID].rows {
			rows = append(rows, row)
		}
	}

	isDistrusted := make(map[int64]bool)
	err := rd.EachIn(func(row txn.Scanner) error {
		var attestation int64
		err := row.Scan(&attestation)
		isDistrusted[attestation] = true
		return err
	}, "SELECT a.id FROM attestations a WHERE NOT ("+IsTrusted+") AND a.id IN ", 1, rows)
	if err != nil {
		return err
	}
	for _, tree := range trees {
		for i, row := range tree.rows {
			tree.list[i].Distrusted = tree.list[i].Distrusted || isDistrusted[row]
		}
	}
	return rd.EachIn(func(row txn.Scanner) error {
		var id, attestation int64
		err := row.Scan(&id, &attestation)
		trees[id].hidden = trees[id].hidden || !slices.Contains(trees[id].rows, attestation)
		return err
	}, `
SELECT t.tree_id, a.id FROM tree_latest t /*+ordered*/ JOIN attestations a ON a.id = t.attestation_id
WHERE NOT (`+IsTrusted+`) AND t.tree_id IN `, 1, ids)
}

// A treeLatest is a piece of the evidence of a tree, with who its signer is.
type treeLatest struct {
	attestation, commit int64
	signers.Who
}

// The evidence of trees: the latest of all commits with one, or that of each commit.
const (
	ofTree       = "\nFROM tree_latest l"
	ofEachCommit = "\nFROM commits c /*+ordered*/ JOIN latest l ON l.commit_id = c.id"
)

// treeRows reads which evidence a tree has: the latest of all its commits, or with ofEach that of each. If it is too
// much, it reads the failures, and one more than carries.
func treeRows(rd txn.Reader, id int64, tree *treeEvidence, ofEach bool) ([]treeLatest, error) {
	const (
		columns = "SELECT l.attestation_id, l.commit_id, s.person, s.individual"
		signer  = " /*+ordered*/ JOIN signers s ON s.id = l.signer_id\nWHERE tree_id = ? "
		failed  = " /*+ordered*/ JOIN attestations a ON a.id = l.attestation_id"
	)
	all, failures := ofTree+signer, ofTree+signer+"AND l.failed = 1 "
	if ofEach { // a later result on another commit need not replace a failure
		all, failures = ofEachCommit+signer, ofEachCommit+failed+signer+"AND a.status IN ('fail', 'error') "
	}
	scan := func(row txn.Scanner) (l treeLatest, err error) {
		return l, row.Scan(&l.attestation, &l.commit, &l.Person, &l.Individual)
	}
	list, err := txn.All(rd, scan, columns+all+"LIMIT ?", id, policy.MaxTopics+1)
	if tree.tooMuch = len(list) > policy.MaxTopics; !tree.tooMuch {
		return list, err
	}
	return txn.All(rd, scan, columns+failures+"LIMIT ?", id, policy.MaxTopics+1)
}

// addTreeRows adds the evidence of a tree to facts. It returns the attestations that are not
// cached, and notes their places.
func (fa *Facts) addTreeRows(list []treeLatest, tree *treeEvidence, facts *policy.Facts, missing map[int64]place,
) (uncached []any) {
	mapped := fa.mapped.Load()
	for _, l := range list {
		tree.rows, tree.commits = append(tree.rows, l.attestation), append(tree.commits, l.commit)
		e, ok := fa.evidence.Get(l.attestation)
		e.Person, e.Individual = l.Person, l.Individual
		facts.Evidence = append(facts.Evidence, e)
		if !ok || !mapped {
			uncached = append(uncached, l.attestation)
			missing[l.attestation] = place{facts, len(facts.Evidence) - 1}
		}
	}
	return uncached
}

// maxSourceNames limits the names of those who wrote the commits of a repo from which
// evidence carries. Of further commits, it is unknown who wrote them.
const maxSourceNames = 1000

// readSourceCommits reads commits, and who wrote them.
func readSourceCommits(rd txn.Reader, commits map[int64]*Commit) error {
	err := rd.EachIn(func(row txn.Scanner) error {
		c, err := ScanCommitRow(row)
		commits[c.ID].CommitRow = c
		return err
	}, SelectCommitRow+"WHERE id IN ", 1, KeysOf(commits))
	if err != nil {
		return err
	}

	names := make(map[*Deriver]map[string]bool)
	list := make([]*Commit, 0, len(commits))
	for id, s := range commits {
		if s.CommitRow == nil {
			return fmt.Errorf("commit %d, from which evidence carries, is missing", id)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Commit) int { return cmp.Compare(b.ID, a.ID) }) // the newest first
	for _, s := range list {
		known, err := s.Known()
		if err != nil {
			return err
		}
		s.Facts.Authors, s.Facts.SigningKeys = known.Authors(), known.SigningKeys
		if names[s.Deriver] == nil {
			names[s.Deriver] = make(map[string]bool)
		}
		for _, name := range identity.AuthorNames(s.Facts.Authors) {
			names[s.Deriver][name] = true
		}
		if len(names[s.Deriver]) > maxSourceNames {
			s.Facts.Authors = nil
		}
	}
	return GatherAuthors(rd, list)
}

// KeysOf returns the keys of a map as arguments of a query.
func KeysOf[V any](m map[int64]V) []any {
	keys := make([]any, 0, len(m))
	for id := range m {
		keys = append(keys, id)
	}
	return keys
}

// inheritTree adds the evidence of other commits with the same tree to the facts.
func (s *Commit) inheritTree(tree *treeEvidence, from *sources) {
	if tree.tooMuch {
		s.Facts.NotCarried = fmt.Sprintf("only failures carry from the commits with the same tree: they have evidence for "+
			"more than %d combinations of predicate, signer and slot", policy.MaxTopics)
	}
	if len(tree.list) > policy.MaxTopics {
		s.Facts.Incomplete = "the commits with the same tree have too many failures"
		return
	}
	numbers := make(map[int64]int)
	isHidden := tree.hidden
	for i, commit := range tree.commits {
		if commit == s.ID { // it is among the commit's own evidence, unless it is distrusted
			isHidden = isHidden || tree.list[i].Distrusted
		} else {
			s.inherit(tree.list[i], tree.rows[i], s.source(from.commits[commit], numbers))
		}
	}
	if isHidden {
		s.Facts.Incomplete = replacing
	}
}

// replacing is why evidence is incomplete after a revocation.
const replacing = "what distrusted evidence about the commits with the same tree had replaced is still to be found"

// source returns the number of a commit among the sources, and adds it if it is new.
func (s *Commit) source(c *Commit, numbers map[int64]int) int {
	n := numbers[c.ID]
	if n == 0 {
		s.Facts.Sources = append(s.Facts.Sources, policy.Source{
			Commit: c.SHA, SameTree: c.TreeID != 0 && c.TreeID == s.TreeID,
			Authorship: authors.Authorship{
				Authors: c.Facts.Authors, AuthorPeople: c.Facts.AuthorPeople, SigningKeys: c.Facts.SigningKeys,
				KnownAuthors: c.Facts.KnownAuthors, Proven: c.IsProven(),
			},
		})
		n = len(s.Facts.Sources)
		numbers[c.ID] = n
	}
	return n
}

// inherit adds evidence of a source to the facts.
func (s *Commit) inherit(e policy.Evidence, row int64, source int) {
	e.Source = source
	s.Facts.Carried = append(s.Facts.Carried, e)
	s.carriedRows = append(s.carriedRows, row)
}

// inheritMerged adds the evidence of a merged commit to the facts.
func (s *Commit) inheritMerged(m MergedSource, from *sources) {
	c := from.commits[m.Commit]
	tooMuch := len(s.Facts.Carried)+len(c.Facts.Evidence) > policy.MaxTopics
	if tooMuch {
		s.Facts.NotCarried = fmt.Sprintf("only failures carry from %s: at most %d pieces of evidence carry",
			c.SHA, policy.MaxTopics)
	}

	numbers := make(map[int64]int)
	if n := slices.IndexFunc(s.Facts.Sources, func(known policy.Source) bool { return known.Commit == c.SHA }); n >= 0 {
		numbers[c.ID] = n + 1
	}
	n := s.source(c, numbers)
	s.Facts.Sources[n-1].Claims = m.Claims
	known := make(map[string]bool, len(s.Facts.Carried))
	for i := range s.Facts.Carried {
		known[s.Facts.Carried[i].Attestation] = true
	}
	for i, e := range c.Facts.Evidence {
		if known[e.Attestation] || tooMuch && !e.Status.IsFailure() {
			continue
		}
		if len(s.Facts.Carried) >= 2*policy.MaxTopics {
			s.Facts.Incomplete = "the commits that this one merges have too many failures"
			return
		}
		var row int64
		if c.rows != nil {
			row = c.rows[i]
		}
		s.inherit(e, row, n)
	}
}

// GatherPeople reads again who is known to have written commits, those from which they inherit, and what reviews are
// about, after people have become one.
func (fa *Facts) GatherPeople(t *txn.Tx, list []*Commit) error {
	if err := GatherAuthors(t.Reader, list); err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(s *Commit) bool { return s.Inherits() }) {
		if err := t.Flush(); err != nil {
			return err
		}
		if err := fa.gatherCarried(t.Reader, list); err != nil {
			return err
		}
	}
	return fa.GatherSpans(t.Reader, list)
}
