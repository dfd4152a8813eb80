package ancestry

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A History is what is known of the history of a repo. What is not known is answered as if it was not so.
type History interface {
	// Between returns the commits that lead to the head and not to the base, as lineage.Between does.
	Between(base, head string) (list []Commit, known bool, err error)
	// IsKnown reports whether the object of a commit is known.
	IsKnown(sha string) (bool, error)
	// Commit returns who wrote a commit. It reports false if its object is not known.
	Commit(sha string) (c Commit, known bool, err error)
	// IsAncestor reports whether commit a is b, or an ancestor of b, as lineage.IsAncestor does.
	IsAncestor(a, b string) (is, sure bool, err error)
	// IsFirstParent reports whether commit a is among the first n that follow b by first parents.
	IsFirstParent(a, b string, n int) (bool, error)
}

// maxBases limits the bases of the reviews of one commit. Of further ones, it is not known who wrote what they are
// about.
const maxBases = 16

// MaxGaps limits the commits of a repo with a gap that are derived again when an object becomes known: the newest.
const MaxGaps = 200

// Spans are what the history says of the evidence of a commit.
type Spans struct {
	// Wrote says who wrote commits. Their people are still to be set: AuthorPeople and KnownAuthors.
	Wrote []*authors.Authorship
	// Gap reports whether more could follow from objects that are not known.
	Gap bool
}

// A gathering fills in the facts of a commit.
type gathering struct {
	history  History
	contract *policy.Contract
	commit   string
	facts    *policy.Facts
	// byTree reports whether what covers changes may carry to the commit from others with its tree.
	byTree bool
	// below says of bases of reviews whether all parents of the commit contain them.
	below map[string]bool
	spans Spans
}

// Complete sets the parts of the facts of a commit that follow from the history: who wrote the commits that reviews are
// about, which of their bases a mainline contains, and who wrote a clean merge. All other evidence, sources and claims
// must be in the facts.
func Complete(h History, contract *policy.Contract, commit string, f *policy.Facts) (Spans, error) {
	g := &gathering{history: h, contract: contract, commit: commit, facts: f}
	if g.byTree = len(f.Sources) > 0 && contract.CarriesChanges(); g.byTree {
		g.below = make(map[string]bool)
	}
	f.Spans = nil
	for i := range f.Sources {
		f.Sources[i].Spans, f.Sources[i].Bases = nil, nil
	}
	for _, evidence := range [][]policy.Evidence{f.Evidence, f.Carried} {
		for i := range evidence {
			if err := g.addSpan(&evidence[i]); err != nil {
				return g.spans, err
			}
		}
	}

	for i := range f.Sources {
		if err := g.addSides(&f.Sources[i]); err != nil {
			return g.spans, err
		}
	}
	return g.spans, nil
}

// addSpan sets who wrote the commits that a review is about, if that decides anything and is not set yet.
func (g *gathering) addSpan(e *policy.Evidence) error {
	if e.Base == "" || !e.IsReview() {
		return nil
	}
	if e.Source == 0 {
		return g.addSpanOf(&g.facts.Spans, e.Base, g.commit, g.contract.ExcludesAuthor() || g.contract.HasDelivery())
	}
	from := &g.facts.Sources[e.Source-1]
	byTree := from.SameTree && g.byTree
	needed := g.contract.ExcludesAuthor() || slices.ContainsFunc(from.Claims, isAlive) || byTree
	if err := g.addSpanOf(&from.Spans, e.Base, from.Commit, needed); err != nil {
		return err
	}
	// By tree, it covers what leads to the commit.
	return g.addSpanOf(&g.facts.Spans, e.Base, g.commit, byTree && g.contract.HasDelivery())
}

// addSpanOf sets who wrote the commits from a base to a head, if that is needed and not set yet.
func (g *gathering) addSpanOf(spans *map[string]*authors.Authorship, base, head string, needed bool) error {
	if _, ok := (*spans)[base]; ok || !needed || len(*spans) >= maxBases {
		return nil
	}

	commits, known, err := g.history.Between(base, head)
	if err != nil {
		return err
	}
	if !known {
		is, sure, err := g.history.IsAncestor(base, head)
		g.spans.Gap = g.spans.Gap || is || !sure
		return err
	}
	if *spans == nil {
		*spans = make(map[string]*authors.Authorship)
	}
	if a, ok := authorship(commits); ok {
		(*spans)[base] = a
		g.spans.Wrote = append(g.spans.Wrote, a)
	}
	return nil
}

// isAlive reports whether what the mainline meets now decides about a claim.
func isAlive(m policy.MergeClaim) bool { return m.Side != nil }

// addSides sets what the claims about a source rest on, and which bases of its reviews lead to the commit.
func (g *gathering) addSides(from *policy.Source) error {
	if from.SameTree && g.byTree {
		if err := g.addBases(from); err != nil {
			return err
		}
	}
	for i := range from.Claims {
		side := from.Claims[i].Side
		if side == nil || side.Refused != "" {
			continue
		}

		side.Bases = make(map[string]bool)
		if err := g.noteContained(side.Bases, from, side.Commit); err != nil {
			return err
		}
		if err := g.addWriters(from.Claims[i].Kind, side); err != nil {
			return err
		}
	}
	return nil
}

// addBases sets which bases of reviews of a source with the same tree all parents of the commit contain. A merge commit
// contains its branch, and so what lies below a base in there: it must not be taken for reviewed.
func (g *gathering) addBases(from *policy.Source) error {
	from.Bases = g.below
	for base := range from.Spans {
		if _, ok := g.below[base]; ok {
			continue
		}
		c, known, err := g.history.Commit(g.commit)
		if err != nil || !known {
			return err
		}

		isBelow := len(c.Parents) > 0
		for _, parent := range c.Parents {
			is, sure, err := g.history.IsAncestor(base, parent)
			if err != nil {
				return err
			}
			isBelow = isBelow && is
			g.spans.Gap = g.spans.Gap || !sure
		}
		g.below[base] = isBelow
	}
	return nil
}

// noteContained notes which bases of reviews of a source a commit contains.
func (g *gathering) noteContained(bases map[string]bool, from *policy.Source, commit string) error {
	for base := range from.Spans {
		is, sure, err := g.history.IsAncestor(base, commit)
		if err != nil {
			return err
		}
		bases[base] = is
		g.spans.Gap = g.spans.Gap || !sure
	}
	return nil
}

// addWriters sets who wrote a clean merge in addition to its source: of a squash, and of all commits of a rebase, the
// author and the co-authors, and of others nobody.
func (g *gathering) addWriters(kind string, side *policy.Side) error {
	isRebased := kind == string(attestation.Rebased)
	if !isRebased && kind != string(attestation.Squashed) || !g.contract.ExcludesAuthor() {
		return nil
	}
	list, known, err := g.written(isRebased, side.Commit)
	if err != nil {
		return err
	}
	g.spans.Gap = g.spans.Gap || !known
	side.Wrote = new(authors.Authorship) // anybody may have
	if !known {
		return nil
	}

	for i := range list {
		list[i].Committer, list[i].SigningKeys = list[i].Author, nil
	}
	if a, ok := authorship(list); ok {
		side.Wrote = a
		g.spans.Wrote = append(g.spans.Wrote, a)
	}
	return nil
}

// written returns the commits that a squash or a rebase has written. The list may be changed. It reports false if not
// all are known.
func (g *gathering) written(isRebased bool, side string) (list []Commit, known bool, err error) {
	if isRebased {
		list, known, err = g.history.Between(side, g.commit)
		return slices.Clone(list), known, err
	}
	c, known, err := g.history.Commit(g.commit)
	return []Commit{c}, known, err
}
