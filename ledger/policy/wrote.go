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
	return !slices.ContainsFunc(w.ways(r, at), func(way way) bool { return !w.wroteAny(way.wrote, at) })
}

// knows reports whether it is known, as the requirement wants it, who wrote what the evidence at a position is
// about, and that its signer did not.
func (w *writing) knows(r *Requirement, at int) bool {
	w.weigh()
	if w.isPlain {
		known := w.known
		return known[0] >= r.ExcludeAuthor && known[w.carrying.f.Evidence[at].Source] >= r.ExcludeAuthor
	}
	return slices.ContainsFunc(w.ways(r, at), func(way way) bool { return w.isByOther(r, way, at) })
}

// isByOther reports whether it is known who wrote what the evidence at a position is about, if it carries in one way,
// and that its signer did not.
func (w *writing) isByOther(r *Requirement, way way, at int) bool {
	return !w.wroteAny(way.wrote, at) &&
		!slices.ContainsFunc(way.wrote, func(a *authors.Authorship) bool { return w.writersOf(a).known < r.ExcludeAuthor })
}

// A way is one in which evidence is taken into account: by a claim, or without any.
type way struct {
	claim *MergeClaim
	// wrote says who wrote what the evidence is then about.
	wrote []*authors.Authorship
}

// way returns the way in which the evidence of a source at a position counts, or would if it was not by an author.
func (w *writing) way(r *Requirement, at int) way {
	w.weigh()
	ways := w.ways(r, at)
	if r.ExcludeAuthor == AuthorCounts || w.isPlain {
		return ways[0]
	}
	return ways[max(0, slices.IndexFunc(ways, func(way way) bool { return w.isByOther(r, way, at) }))]
}

// ways returns the ways in which evidence is taken into account. It is about the commit, the one from which it carries,
// and those since the base of a review. By a claim that may carry anybody's evidence, a clean merge is written by those
// who wrote its source, and not by who has pressed its button.
func (w *writing) ways(r *Requirement, at int) (ways []way) {
	k := w.carrying
	e, own := &k.f.Evidence[at], &w.list[0]
	if e.Source == 0 {
		return []way{{nil, since(k.f.Spans, e, own)}}
	}

	source, from := &w.list[e.Source], &k.f.Sources[e.Source-1]
	if k.carriesByTree(r, e) {
		ways = append(ways, way{nil, since(from.Spans, e, own, source)})
	}
	for _, claim := range k.claims[e.Source-1] {
		if !claim.carries(r, e, from) {
			continue
		}
		list := since(from.Spans, e, source)
		if claim.Side == nil || !matchesAny(r.CarrySigners, claim.Signer) {
			list = append(list, own)
		}
		if claim.Side != nil && claim.Side.Wrote != nil {
			list = append(list, claim.Side.Wrote)
		}
		ways = append(ways, way{claim, list})
	}
	return ways
}

// since adds to a list who wrote the commits since the base of a review, if that is known.
func since(spans map[string]*authors.Authorship, e *Evidence, list ...*authors.Authorship) []*authors.Authorship {
	if span, ok := spans[e.Base]; ok && e.IsReview() {
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
