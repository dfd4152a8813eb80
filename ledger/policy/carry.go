package policy

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
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

// MayCarry reports whether a claim of a merge by d may carry evidence to a requirement.
func (c *Contract) MayCarry(d identity.DN) bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
		return r.Carry&CarryMerge != 0 && matchesAny(r.CarrySigners, d)
	})
}

// carriable returns the evidence of other commits that may carry. Deployments do not, nor
// does evidence that is about one commit only. If it is by too many names, only failures carry, and
// f.NotCarried says so.
func (c *Contract) carriable(f *Facts) []Evidence {
	if len(f.Carried) == 0 || !c.Carries() {
		return nil
	}
	list := make([]Evidence, 0, len(f.Carried))
	for i := range f.Carried {
		if e := &f.Carried[i]; !e.isReserved() && !c.isDeployment(e) {
			list = append(list, *e)
		}
	}

	if len(list) > MaxSigners && len(signersOf(list)) > MaxSigners {
		f.NotCarried = fmt.Sprintf("only failures carry: more than %d names have signed what might carry", MaxSigners)
		list = slices.DeleteFunc(list, func(e Evidence) bool { return !e.Status.IsFailure() })
	}
	return list
}

// isReserved reports whether the predicate of e is reserved. A result that an earlier release has
// recorded under a name that is reserved since is an ordinary one.
func (e *Evidence) isReserved() bool {
	return ledger.ReservedPrefix(e.Predicate) != "" && e.PredicateType != ledger.ResultType
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
	// topics numbers the pairs of person and predicate of the evidence, by its position.
	topics []int
	// next links the evidence of a person for a predicate and slot: it has the position of
	// the next one, and of the first one for the last. It is nil until it is needed.
	next []int
	// about is reused.
	about []int
	// ways and claims have, by source, how it carries to the requirement, and by which
	// claim. They are reused.
	ways   []CarryRule
	claims []*MergeClaim
	// any reports whether any evidence carries to a requirement that applies.
	any bool
}

// take returns those of the positions whose evidence a requirement takes into account: the
// latest of each person for each predicate and slot, of the commit itself and of all others
// from which evidence carries. The result is valid until the next call.
func (k *carrying) take(r *Requirement, about []int) []int {
	k.findWays(r)
	k.about = k.about[:0]
	for _, at := range about {
		if k.isTaken(at) && !k.isReplaced(at) {
			k.about = append(k.about, at)
			k.any = k.any || k.f.Evidence[at].Source != 0
		}
	}
	return k.about
}

// isTaken reports whether the evidence at a position is that of the commit itself, or
// carries to the requirement.
func (k *carrying) isTaken(at int) bool {
	source := k.f.Evidence[at].Source
	return source == 0 || k.ways[source-1] != 0
}

// isReplaced reports whether other evidence that is taken into account takes the place of
// that at a position.
func (k *carrying) isReplaced(at int) bool {
	if k.next == nil {
		k.link()
	}
	for other := k.next[at]; other != at; other = k.next[other] {
		e, by := &k.f.Evidence[at], &k.f.Evidence[other]
		if k.isTaken(other) && by.isLater(e) && !by.isOvertakenBy(e) {
			return true
		}
	}
	return false
}

// link sets next.
func (k *carrying) link() {
	type key struct {
		topic int
		slot  string
	}
	last := make(map[key]int, len(k.f.Evidence))
	k.next = make([]int, len(k.f.Evidence))
	for at := range k.f.Evidence {
		e := &k.f.Evidence[at]
		key := key{k.topics[at], e.Slot}
		k.next[at] = at
		if before, ok := last[key]; ok {
			k.next[at], k.next[before] = k.next[before], at
		}
		last[key] = at
	}
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
