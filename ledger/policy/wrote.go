package policy

import "slices"

// authors weighs whether signers wrote what they have signed. It is filled when it is needed.
type authors struct {
	// list says who wrote the commit, and then each source.
	list []Authorship
	// By the position of the evidence, isAuthor says whether its signer wrote the commit, or the one that it is about.
	isAuthor []bool
	// known has, as list, the strictest rule that knows who it was.
	known []AuthorRule
	// isPlain reports whether list is all that counts: there is no review with a base, and no clean merge.
	isPlain bool
	others  map[*Authorship]*writers
}

// writers are those who wrote a commit, or several.
type writers struct {
	*authorSet
	known AuthorRule
}

// wrote reports whether the evidence at a position is by somebody who wrote what it is about, as the requirement that
// is weighed takes it.
func (v *evaluation) wrote(r *Requirement, at int) bool {
	v.weighAuthors()
	if v.authors.isPlain {
		return v.authors.isAuthor[at]
	}
	return !slices.ContainsFunc(v.written(r, at), func(list []*Authorship) bool { return !v.wroteAny(list, at) })
}

// knowsAuthors reports whether it is known, as the requirement wants it, who wrote what the evidence at a position is
// about, and that its signer did not.
func (v *evaluation) knowsAuthors(r *Requirement, at int) bool {
	v.weighAuthors()
	if v.authors.isPlain {
		known := v.authors.known
		return known[0] >= r.ExcludeAuthor && known[v.f.Evidence[at].Source] >= r.ExcludeAuthor
	}
	return slices.ContainsFunc(v.written(r, at), func(list []*Authorship) bool {
		return !v.wroteAny(list, at) &&
			!slices.ContainsFunc(list, func(a *Authorship) bool { return v.writersOf(a).known < r.ExcludeAuthor })
	})
}

// written returns what the evidence at a position is about, once for each way in which it counts: who wrote the commit,
// and the one from which it carries. A clean merge is written by those who wrote its source, and not by who has pressed
// its button.
func (v *evaluation) written(r *Requirement, at int) (ways [][]*Authorship) {
	e, own := &v.f.Evidence[at], &v.authors.list[0]
	if e.Source == 0 {
		list := []*Authorship{own}
		if side, source := v.cleanMerge(r); side != nil {
			list = side.writtenWith(source)
		}
		if span, ok := v.f.Spans[e.Base]; ok {
			list = append(list, span)
		}
		return [][]*Authorship{list}
	}

	source := &v.authors.list[e.Source]
	claim := v.carrying.claim(r, at)
	if v.carrying.trees[e.Source-1] || claim == nil || claim.Side == nil {
		ways = append(ways, []*Authorship{own, source})
	}
	if claim != nil && claim.Side != nil {
		if span, ok := v.f.Sources[e.Source-1].Spans[e.Base]; ok {
			source = span
		}
		ways = append(ways, claim.Side.writtenWith(source))
	}
	return ways
}

// writtenWith returns who wrote a clean merge, given who wrote its source.
func (s *Side) writtenWith(source *Authorship) []*Authorship {
	if s.Wrote == nil {
		return []*Authorship{source}
	}
	return []*Authorship{source, s.Wrote}
}

// cleanMerge returns the side of the mainline and who wrote the source, if a claim that counts for a requirement says
// that the commit is a clean merge.
func (v *evaluation) cleanMerge(r *Requirement) (*Side, *Authorship) {
	for n := range v.f.Sources {
		for i := range v.f.Sources[n].Claims {
			m := &v.f.Sources[n].Claims[i]
			if m.Side != nil && matchesAny(r.CarrySigners, m.Signer) && v.c.whyRefused(r, v.f, m) == "" {
				return m.Side, &v.authors.list[n+1]
			}
		}
	}
	return nil, nil
}

// wroteAny reports whether the signer of the evidence at a position is among the authors.
func (v *evaluation) wroteAny(list []*Authorship, at int) bool {
	var names signerNames
	names.setTo(&v.f.Evidence[at])
	return slices.ContainsFunc(list, func(a *Authorship) bool { return v.writersOf(a).wrote(&names) })
}

// writersOf returns the writers of an authorship.
func (v *evaluation) writersOf(a *Authorship) *writers {
	w := v.authors.others[a]
	if w == nil {
		w = &writers{newAuthorSet(a), a.satisfies(v.c.authorRule())}
		v.authors.others[a] = w
	}
	return w
}

// weighAuthors fills authors.
func (v *evaluation) weighAuthors() {
	if v.authors.list != nil {
		return
	}
	v.authors.list = v.f.authorships()
	v.authors.isPlain = len(v.f.Spans) == 0 && !slices.ContainsFunc(v.f.Sources, func(s Source) bool {
		return slices.ContainsFunc(s.Claims, func(m MergeClaim) bool { return m.Side != nil })
	})
	if !v.authors.isPlain {
		v.authors.others = make(map[*Authorship]*writers)
		return
	}
	v.authors.isAuthor = v.byAuthors()
	strictest := v.c.authorRule()
	for i := range v.authors.list {
		v.authors.known = append(v.authors.known, v.authors.list[i].satisfies(strictest))
	}
}

// byAuthors reports, for each piece of evidence, whether its signer wrote the commit, or the
// one that it is about.
func (v *evaluation) byAuthors() []bool {
	sets := make([]*authorSet, len(v.authors.list))
	sets[0] = newAuthorSet(&v.authors.list[0])
	list := make([]bool, len(v.f.Evidence))
	var names signerNames
	for i := range v.f.Evidence {
		e := &v.f.Evidence[i]
		names.setTo(e)
		list[i] = sets[0].wrote(&names)
		if e.Source == 0 || list[i] {
			continue
		}
		source := &sets[e.Source]
		if *source == nil {
			*source = newAuthorSet(&v.authors.list[e.Source])
		}
		list[i] = (*source).wrote(&names)
	}
	return list
}
