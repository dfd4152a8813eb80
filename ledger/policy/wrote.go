package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger/authors"
)

// A writing weighs whether signers wrote what they have signed. It is filled when it is needed.
type writing struct {
	carrying *carrying
	// list says who wrote the commit, and then each source.
	list []authors.Authorship
	// By the position of the evidence, isAuthor says whether its signer wrote the commit, or the one that it is about.
	isAuthor []bool
	// known has, as list, the strictest rule that knows who it was.
	known []AuthorRule
	// isPlain reports whether list is all that counts: there is no review with a base, and no clean merge.
	isPlain bool
	others  map[*authors.Authorship]*writers
}

// writers are those who wrote a commit, or several.
type writers struct {
	*authors.Set
	known AuthorRule
}

// wrote reports whether the evidence at a position is by somebody who wrote what it is about, as the requirement that
// is weighed takes it.
func (w *writing) wrote(r *Requirement, at int) bool {
	w.weigh()
	if w.isPlain {
		return w.isAuthor[at]
	}
	return !slices.ContainsFunc(w.written(r, at), func(list []*authors.Authorship) bool { return !w.wroteAny(list, at) })
}

// knows reports whether it is known, as the requirement wants it, who wrote what the evidence at a position is
// about, and that its signer did not.
func (w *writing) knows(r *Requirement, at int) bool {
	w.weigh()
	if w.isPlain {
		known := w.known
		return known[0] >= r.ExcludeAuthor && known[w.carrying.f.Evidence[at].Source] >= r.ExcludeAuthor
	}
	return slices.ContainsFunc(w.written(r, at), func(list []*authors.Authorship) bool {
		return !w.wroteAny(list, at) &&
			!slices.ContainsFunc(list, func(a *authors.Authorship) bool { return w.writersOf(a).known < r.ExcludeAuthor })
	})
}

// written returns what the evidence at a position is about, once for each way in which it counts: who wrote the commit,
// the one from which it carries, and those since the base of a review. By a claim that may carry anybody's evidence, a
// clean merge is written by those who wrote its source, and not by who has pressed its button.
func (w *writing) written(r *Requirement, at int) (ways [][]*authors.Authorship) {
	e, own := &w.carrying.f.Evidence[at], &w.list[0]
	if e.Source == 0 {
		return [][]*authors.Authorship{since(w.carrying.f.Spans, e, own)}
	}

	source, spans := &w.list[e.Source], w.carrying.f.Sources[e.Source-1].Spans
	claim := w.carrying.claim(r, at)
	if w.carrying.trees[e.Source-1] || claim == nil || claim.Side == nil {
		ways = append(ways, since(spans, e, own, source))
	}
	if claim == nil || claim.Side == nil {
		return ways
	}
	list := since(spans, e, source)
	switch {
	case !matchesAny(r.CarrySigners, claim.Signer):
		list = append(list, own)
	case claim.Side.Wrote != nil:
		list = append(list, claim.Side.Wrote)
	}
	return append(ways, list)
}

// since adds to a list who wrote the commits since the base of a review, if that is known.
func since(spans map[string]*authors.Authorship, e *Evidence, list ...*authors.Authorship) []*authors.Authorship {
	if span, ok := spans[e.Base]; ok {
		list = append(list, span)
	}
	return list
}

// wroteAny reports whether the signer of the evidence at a position is among the authors.
func (w *writing) wroteAny(list []*authors.Authorship, at int) bool {
	var signer authors.Signer
	setSigner(&signer, &w.carrying.f.Evidence[at])
	return slices.ContainsFunc(list, func(a *authors.Authorship) bool { return w.writersOf(a).Wrote(&signer) })
}

// writersOf returns the writers of an authorship.
func (w *writing) writersOf(a *authors.Authorship) *writers {
	of := w.others[a]
	if of == nil {
		of = &writers{authors.NewSet(a), satisfied(a, w.carrying.c.authorRule())}
		w.others[a] = of
	}
	return of
}

// weigh fills w, if it was not yet.
func (w *writing) weigh() {
	if w.list != nil {
		return
	}
	w.list = w.carrying.f.authorships()
	w.isPlain = len(w.carrying.f.Spans) == 0 && !slices.ContainsFunc(w.carrying.f.Sources, func(s Source) bool {
		return len(s.Spans) > 0 || slices.ContainsFunc(s.Claims, func(m MergeClaim) bool { return m.Side != nil })
	})
	if !w.isPlain {
		w.others = make(map[*authors.Authorship]*writers)
		return
	}
	w.isAuthor = w.byAuthors()
	strictest := w.carrying.c.authorRule()
	for i := range w.list {
		w.known = append(w.known, satisfied(&w.list[i], strictest))
	}
}

// byAuthors reports, for each piece of evidence, whether its signer wrote the commit, or the
// one that it is about.
func (w *writing) byAuthors() []bool {
	sets := make([]*authors.Set, len(w.list))
	sets[0] = authors.NewSet(&w.list[0])
	list := make([]bool, len(w.carrying.f.Evidence))
	var signer authors.Signer
	for i := range w.carrying.f.Evidence {
		e := &w.carrying.f.Evidence[i]
		setSigner(&signer, e)
		list[i] = sets[0].Wrote(&signer)
		if e.Source == 0 || list[i] {
			continue
		}
		source := &sets[e.Source]
		if *source == nil {
			*source = authors.NewSet(&w.list[e.Source])
		}
		list[i] = (*source).Wrote(&signer)
	}
	return list
}

// setSigner sets s to the signer of e.
func setSigner(s *authors.Signer, e *Evidence) { s.Set(e.individual().id, e.Signer.CN, e.Emails) }
