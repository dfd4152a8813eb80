package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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
	merged   map[int64][]mergedSource
	commits  map[int64]*subject
	versions map[int64]int64
}

// gatherCarried reads the evidence that commits may inherit, and its versions.
func (rd reader) gatherCarried(list []*subject) error {
	var heirs []*subject
	for _, s := range list {
		s.versions = s.d.repo.Distrusted()
		s.facts.Sources, s.facts.Carried, s.carriedRows = nil, nil, nil
		s.facts.Incomplete, s.facts.NotCarried = "", ""
		if s.inherits() && s.d.contract.Carries() {
			heirs = append(heirs, s)
		}
	}
	if heirs == nil {
		return nil
	}

	from, err := rd.readSources(heirs)
	if err != nil {
		return fmt.Errorf("read the sources of evidence: %w", err)
	}
	for _, s := range heirs {
		if tree := from.trees[s.treeID]; tree != nil {
			s.versions += tree.version
			s.inheritTree(tree, from)
		}
		for _, m := range from.merged[s.id] {
			s.versions += from.versions[m.commit]
			s.inheritMerged(m, from)
		}
	}
	return nil
}

// gatherVersions sets the versions of what commits inherit, and does not read the evidence.
func (rd reader) gatherVersions(list []*subject) error {
	trees := make(map[int64]int64)
	var heirs []*subject
	for _, s := range list {
		s.versions = s.d.repo.Distrusted()
		if s.inherits() && s.d.contract.Carries() {
			heirs = append(heirs, s)
			trees[s.treeID] = 0
		}
	}
	merged, err := rd.gatherClaims(heirs)
	if err != nil {
		return fmt.Errorf("read merges: %w", err)
	}
	sources := make(map[int64]int64)
	for _, claimed := range merged {
		for _, m := range claimed {
			sources[m.commit] = 0
		}
	}

	err = errors.Join(rd.readVersions(trees, versionsOfTrees), rd.readVersions(sources, versionsOfSources))
	if err != nil {
		return fmt.Errorf("read versions: %w", err)
	}
	for _, s := range heirs {
		s.versions += trees[s.treeID]
		for _, m := range merged[s.id] {
			s.versions += sources[m.commit]
		}
	}
	return nil
}

const (
	versionsOfTrees   = "SELECT id, version FROM trees WHERE id IN "
	versionsOfSources = "SELECT commit_id, version FROM merge_sources WHERE commit_id IN "
)

// readVersions reads the versions whose keys are in the map.
func (rd reader) readVersions(versions map[int64]int64, query string) error {
	return rd.EachIn(func(row txn.Scanner) error {
		var id, version int64
		err := row.Scan(&id, &version)
		versions[id] = version
		return err
	}, query, 1, keysOf(versions))
}

// readSources reads what commits inherit from.
func (rd reader) readSources(heirs []*subject) (from *sources, err error) {
	from = &sources{commits: make(map[int64]*subject), versions: make(map[int64]int64)}
	if from.trees, err = rd.treesOf(heirs); err != nil {
		return nil, fmt.Errorf("trees: %w", err)
	}
	if from.merged, err = rd.gatherClaims(heirs); err != nil {
		return nil, fmt.Errorf("merges: %w", err)
	}

	merged := make(map[int64]*subject)
	for _, s := range heirs {
		if tree := from.trees[s.treeID]; tree != nil {
			for _, id := range tree.commits {
				from.commits[id] = &subject{d: s.d}
			}
		}
		for _, m := range from.merged[s.id] {
			merged[m.commit] = &subject{d: s.d}
			if s.d.contract.NeedsVerdicts() {
				merged[m.commit].rows = []int64{}
			}
			from.commits[m.commit] = merged[m.commit]
		}
	}
	if err := rd.readSourceCommits(from.commits); err != nil {
		return nil, fmt.Errorf("commits: %w", err)
	}

	if err := rd.gatherEvidence(merged, keysOf(merged)); err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	for id := range merged {
		from.versions[id] = 0
	}
	return from, rd.readVersions(from.versions, versionsOfSources)
}

// treesOf reads the evidence of the trees of commits.
func (rd reader) treesOf(heirs []*subject) (map[int64]*treeEvidence, error) {
	trees, versions := make(map[int64]*treeEvidence), make(map[int64]int64)
	for _, s := range heirs {
		if s.treeID != 0 {
			trees[s.treeID], versions[s.treeID] = new(treeEvidence), 0
		}
	}
	if err := rd.readVersions(versions, versionsOfTrees); err != nil {
		return nil, err
	}

	facts := make(map[int64]*policy.Facts, len(trees))
	var uncached []any
	missing := make(map[int64]place)
	for id, tree := range trees {
		tree.version = versions[id]
		facts[id] = new(policy.Facts)
		list, err := rd.treeRows(id, tree)
		if err != nil {
			return nil, err
		}
		uncached = append(uncached, rd.addTreeRows(list, tree, facts[id], missing)...)
	}
	if err := rd.readEvidence(missing, uncached); err != nil {
		return nil, err
	}
	for id, tree := range trees {
		tree.list = facts[id].Evidence
	}
	return trees, rd.blockDistrusted(heirs, trees)
}

// blockDistrusted has distrusted evidence of trees block, until the background has found what
// it had replaced: it may hide a failure.
func (rd reader) blockDistrusted(heirs []*subject, trees map[int64]*treeEvidence) error {
	var ids []any
	for _, s := range heirs {
		if s.treeID != 0 && s.d.repo.Distrusting {
			ids = append(ids, s.treeID)
		}
	}
	if ids == nil {
		return nil
	}

	return rd.EachIn(func(row txn.Scanner) error {
		var id, attestation int64
		err := row.Scan(&id, &attestation)
		tree := trees[id]
		if i := slices.Index(tree.rows, attestation); i >= 0 {
			tree.list[i].Distrusted = true
		} else {
			tree.hidden = true
		}
		return err
	}, `
SELECT t.tree_id, a.id FROM tree_latest t /*+ordered*/ JOIN attestations a ON a.id = t.attestation_id
WHERE NOT (`+isTrusted+`) AND t.tree_id IN `, 1, ids)
}

// A treeLatest is a row of tree_latest, with who its signer is.
type treeLatest struct {
	attestation, commit int64
	signers.Who
}

// treeRows reads which evidence a tree has. If it is too much, it reads the failures, and
// one more than carries.
func (rd reader) treeRows(id int64, tree *treeEvidence) ([]treeLatest, error) {
	const query = `
SELECT t.attestation_id, t.commit_id, s.person, s.individual
FROM tree_latest t /*+ordered*/ JOIN signers s ON s.id = t.signer_id
WHERE t.tree_id = ? `
	scan := func(row txn.Scanner) (l treeLatest, err error) {
		return l, row.Scan(&l.attestation, &l.commit, &l.Person, &l.Individual)
	}
	list, err := all(rd, scan, query+"LIMIT ?", id, policy.MaxTopics+1)
	if tree.tooMuch = len(list) > policy.MaxTopics; !tree.tooMuch {
		return list, err
	}
	return all(rd, scan, query+"AND t.failed = 1 LIMIT ?", id, policy.MaxTopics+1)
}

// addTreeRows adds the evidence of a tree to facts. It returns the attestations that are not
// cached, and notes their places.
func (rd reader) addTreeRows(
	list []treeLatest, tree *treeEvidence, facts *policy.Facts, missing map[int64]place,
) (uncached []any) {
	mapped := rd.caches.mapped.Load()
	for _, l := range list {
		tree.rows, tree.commits = append(tree.rows, l.attestation), append(tree.commits, l.commit)
		e, ok := rd.caches.evidence.Get(l.attestation)
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
func (rd reader) readSourceCommits(commits map[int64]*subject) error {
	err := rd.EachIn(func(row txn.Scanner) error {
		c, err := scanCommitRow(row)
		commits[c.id].commitRow = c
		return err
	}, selectCommitRow+"WHERE id IN ", 1, keysOf(commits))
	if err != nil {
		return err
	}

	names := make(map[*deriver]map[string]bool)
	list := make([]*subject, 0, len(commits))
	for id, s := range commits {
		if s.commitRow == nil {
			return fmt.Errorf("commit %d, from which evidence carries, is missing", id)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *subject) int { return cmp.Compare(b.id, a.id) }) // the newest first
	for _, s := range list {
		known, err := s.known()
		if err != nil {
			return err
		}
		s.facts.Authors, s.facts.SigningKeys = known.Authors(), known.SigningKeys
		if names[s.d] == nil {
			names[s.d] = make(map[string]bool)
		}
		for _, name := range identity.AuthorNames(s.facts.Authors) {
			names[s.d][name] = true
		}
		if len(names[s.d]) > maxSourceNames {
			s.facts.Authors = nil
		}
	}
	return rd.gatherAuthors(list)
}

// keysOf returns the keys of a map as arguments of a query.
func keysOf[V any](m map[int64]V) []any {
	keys := make([]any, 0, len(m))
	for id := range m {
		keys = append(keys, id)
	}
	return keys
}

// inheritTree adds the evidence of other commits with the same tree to the facts.
func (s *subject) inheritTree(tree *treeEvidence, from *sources) {
	if tree.tooMuch {
		s.facts.NotCarried = fmt.Sprintf("only failures carry from the commits with the same tree: they have evidence for "+
			"more than %d combinations of predicate, signer and slot", policy.MaxTopics)
	}
	if len(tree.list) > policy.MaxTopics {
		s.facts.Incomplete = "the commits with the same tree have too many failures"
		return
	}
	numbers := make(map[int64]int)
	isHidden := tree.hidden
	for i, commit := range tree.commits {
		if commit == s.id { // it is among the commit's own evidence, unless it is distrusted
			isHidden = isHidden || tree.list[i].Distrusted
		} else {
			s.inherit(tree.list[i], tree.rows[i], s.source(from.commits[commit], numbers))
		}
	}
	if isHidden {
		s.facts.Incomplete = replacing
	}
}

// replacing is why evidence is incomplete after a revocation.
const replacing = "what distrusted evidence about the commits with the same tree had replaced is still to be found"

// source returns the number of a commit among the sources, and adds it if it is new.
func (s *subject) source(c *subject, numbers map[int64]int) int {
	n := numbers[c.id]
	if n == 0 {
		s.facts.Sources = append(s.facts.Sources, policy.Source{
			Commit: c.sha, Authors: c.facts.Authors, AuthorPeople: c.facts.AuthorPeople, SigningKeys: c.facts.SigningKeys,
			KnownAuthors: c.facts.KnownAuthors, Proven: c.isProven(), SameTree: c.treeID != 0 && c.treeID == s.treeID,
		})
		n = len(s.facts.Sources)
		numbers[c.id] = n
	}
	return n
}

// inherit adds evidence of a source to the facts.
func (s *subject) inherit(e policy.Evidence, row int64, source int) {
	e.Source = source
	s.facts.Carried = append(s.facts.Carried, e)
	s.carriedRows = append(s.carriedRows, row)
}

// inheritMerged adds the evidence of a merged commit to the facts.
func (s *subject) inheritMerged(m mergedSource, from *sources) {
	c := from.commits[m.commit]
	tooMuch := len(s.facts.Carried)+len(c.facts.Evidence) > policy.MaxTopics
	if tooMuch {
		s.facts.NotCarried = fmt.Sprintf("only failures carry from %s: at most %d pieces of evidence carry",
			c.sha, policy.MaxTopics)
	}

	numbers := make(map[int64]int)
	if n := slices.IndexFunc(s.facts.Sources, func(known policy.Source) bool { return known.Commit == c.sha }); n >= 0 {
		numbers[c.id] = n + 1
	}
	n := s.source(c, numbers)
	s.facts.Sources[n-1].Claims = m.claims
	known := make(map[string]bool, len(s.facts.Carried))
	for i := range s.facts.Carried {
		known[s.facts.Carried[i].Attestation] = true
	}
	for i, e := range c.facts.Evidence {
		if known[e.Attestation] || tooMuch && !e.Status.IsFailure() {
			continue
		}
		if len(s.facts.Carried) >= 2*policy.MaxTopics {
			s.facts.Incomplete = "the commits that this one merges have too many failures"
			return
		}
		var row int64
		if c.rows != nil {
			row = c.rows[i]
		}
		s.inherit(e, row, n)
	}
}

// gatherPeople reads again who is known to have written commits, and those from which they
// inherit, after people have become one.
func (t *tx) gatherPeople(list []*subject) error {
	if err := t.gatherAuthors(list); err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(s *subject) bool { return s.inherits() }) {
		return nil
	}
	if err := t.kernel.Flush(); err != nil {
		return err
	}
	return t.gatherCarried(list)
}
