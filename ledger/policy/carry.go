package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// Carries reports whether any requirement takes evidence of other commits into account. If
// so, Derive needs Facts.Sources and Facts.Carried.
func (c *Contract) Carries() bool {
	for i := range c.Requirements {
		if c.Requirements[i].Carry != 0 {
			return true
		}
	}
	return false
}

// carriable returns the evidence of other commits that may carry. Deployments do not, nor
// does evidence that is about one commit only.
func (c *Contract) carriable(f *Facts) []Evidence {
	if len(f.Carried) == 0 || !c.Carries() {
		return nil
	}
	list := make([]Evidence, 0, len(f.Carried))
	for i := range f.Carried {
		if e := &f.Carried[i]; ledger.ReservedPrefix(e.Predicate) == "" && !c.isDeployment(e) {
			list = append(list, *e)
		}
	}
	return list
}

// isDeployment reports whether a requirement for DEPLOYED is about e.
func (c *Contract) isDeployment(e *Evidence) bool {
	for i := range c.Requirements {
		if r := &c.Requirements[i]; r.State == ledger.Deployed && r.isAbout(e) {
			return true
		}
	}
	return false
}

// A carrying finds out which evidence of other commits carries.
type carrying struct {
	f *Facts
	// own is the number of pieces of evidence of the commit itself, which are the first.
	own int
	// people numbers the people of the evidence, by its position.
	people []int
	// about is reused.
	about []int
	// ways and claims have, by source, how it carries to the requirement, and by which
	// claim. They are reused.
	ways   []CarryRule
	claims []*MergeClaim
	// any reports whether any evidence carries to a requirement that applies.
	any bool
}

// take returns those of the positions whose evidence a requirement takes into
// account: the latest of each person for each predicate and slot, of the commit itself and
// of all others from which evidence carries. The result is valid until the next call.
func (k *carrying) take(r *Requirement, about []int) []int {
	k.findWays(r)
	k.about = k.about[:0]
	carries := false
	for _, at := range about {
		source := k.f.Evidence[at].Source
		if source == 0 || k.ways[source-1] != 0 {
			k.about = append(k.about, at)
			carries = carries || source != 0
		}
	}
	if carries {
		k.any = true
		k.about = k.latest(k.about)
	}
	return k.about
}

// findWays finds out how each source carries to a requirement.
func (k *carrying) findWays(r *Requirement) {
	if k.ways == nil {
		k.ways, k.claims = make([]CarryRule, len(k.f.Sources)), make([]*MergeClaim, len(k.f.Sources))
	}
	for n := range k.f.Sources {
		s := &k.f.Sources[n]
		k.ways[n], k.claims[n] = 0, nil
		if s.SameTree {
			k.ways[n] = r.Carry & CarryTree
		}
		if r.Carry&CarryMerge != 0 {
			if k.claims[n] = r.claim(s); k.claims[n] != nil {
				k.ways[n] |= CarryMerge
			}
		}
	}
}

// claim returns a claim by which the evidence of a merged commit carries to the
// requirement, or nil. The first parent must have reached the requirement's state: a merge
// does not make good for what is missing there.
func (r *Requirement) claim(s *Source) *MergeClaim {
	for i := range s.Claims {
		if c := &s.Claims[i]; c.ParentState >= r.State && matchesAny(r.CarrySigners, c.Signer) {
			return c
		}
	}
	return nil
}

// latest is like Latest, for evidence at some positions. It changes the list.
func (k *carrying) latest(list []int) []int {
	if len(list) <= maxCompared {
		return slices.DeleteFunc(list, func(at int) bool {
			return slices.ContainsFunc(list, func(other int) bool { return k.isReplaced(at, other) })
		})
	}

	type key struct {
		person          int
		predicate, slot string
	}
	latest := make(map[key]int, len(list))
	keyOf := func(at int) key {
		return key{k.people[at], k.f.Evidence[at].Predicate, k.f.Evidence[at].Slot}
	}
	for _, at := range list {
		if other, ok := latest[keyOf(at)]; !ok || k.isReplaced(other, at) {
			latest[keyOf(at)] = at
		}
	}
	return slices.DeleteFunc(list, func(at int) bool { return latest[keyOf(at)] != at })
}

// isReplaced reports whether the evidence at the second position takes the place of that at
// the first.
func (k *carrying) isReplaced(at, by int) bool {
	e, other := &k.f.Evidence[at], &k.f.Evidence[by]
	return at != by && k.people[at] == k.people[by] && e.Predicate == other.Predicate && e.Slot == other.Slot &&
		other.isLater(e)
}
