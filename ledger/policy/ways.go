package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// A carrying finds out which evidence of other commits carries.
type carrying struct {
	c *Contract
	f *Facts
	// own is the number of pieces of evidence of the commit itself, which are the first.
	own int
	// topics numbers the pairs of person and predicate of the evidence, by its position.
	topics []int
	// next links the evidence of a person for a predicate and slot: it has the position of
	// the next one, and of the first one for the last. It is nil until it is needed. old reports which is not the latest
	// about its commit.
	next []int
	old  []bool
	// about is reused.
	about []int
	// trees and claims have, by source, whether it carries to the requirement by its tree, and the claims by which it
	// may. They are reused.
	trees  []bool
	claims [][]*MergeClaim
	// isShipped reports whether the commit is one of a delivery. What claims say of it does not depend on the mainline,
	// which is asked for itself.
	isShipped bool
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
		if k.isTaken(r, at) && !k.isReplaced(r, at) {
			k.about = append(k.about, at)
			k.any = k.any || k.f.Evidence[at].Source != 0
		}
	}
	return k.about
}

// isTaken reports whether the evidence at a position is that of the commit itself, or
// carries to the requirement.
func (k *carrying) isTaken(r *Requirement, at int) bool {
	e := &k.f.Evidence[at]
	return e.Source == 0 || k.carriesByTree(r, e) || slices.ContainsFunc(k.claims[e.Source-1], func(m *MergeClaim) bool {
		return m.carries(r, e, &k.f.Sources[e.Source-1])
	})
}

// carriesByTree reports whether evidence of a source carries to the requirement since both commits have the same tree.
// What covers a change carries only from a base that the commit contains: on another one, the tree is another change.
func (k *carrying) carriesByTree(r *Requirement, e *Evidence) bool {
	if !k.trees[e.Source-1] {
		return false
	}
	s := &k.f.Sources[e.Source-1]
	return r.Covers != CoversChange || e.blocks(r) || s.isSince(e.Base, s.Bases)
}

// isReplaced reports whether newer evidence replaces that at a position: evidence that is taken into account, or any
// of the same commit. An older result on a source never counts, even if the newer one does not carry.
func (k *carrying) isReplaced(r *Requirement, at int) bool {
	if k.next == nil {
		k.link()
	}
	for other := k.next[at]; other != at; other = k.next[other] {
		if !k.old[other] && k.replaces(other, at) && k.isTaken(r, other) {
			return true
		}
	}
	return k.old[at]
}

// replaces reports whether the evidence at a position takes the place of other evidence that it is linked with, if both
// are taken into account.
func (k *carrying) replaces(by, at int) bool {
	e, other := &k.f.Evidence[by], &k.f.Evidence[at]
	return e.isLater(other) && !e.isOvertakenBy(other)
}

// link sets next and old.
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

	k.old = make([]bool, len(k.f.Evidence))
	for at := range k.f.Evidence {
		for other := k.next[at]; other != at && !k.old[at]; other = k.next[other] {
			k.old[at] = k.f.Evidence[other].Source == k.f.Evidence[at].Source && k.replaces(other, at)
		}
	}
}

// findWays finds out how each source carries to a requirement.
func (k *carrying) findWays(r *Requirement) {
	if k.trees == nil {
		k.trees, k.claims = make([]bool, len(k.f.Sources)), make([][]*MergeClaim, len(k.f.Sources))
	}
	for n := range k.f.Sources {
		s := &k.f.Sources[n]
		k.trees[n], k.claims[n] = s.SameTree && r.Carry&CarryTree != 0, k.claims[n][:0]
		if r.Carry&CarryMerge == 0 {
			continue
		}
		for i := range s.Claims {
			if k.whyRefused(r, &s.Claims[i]) == "" {
				k.claims[n] = append(k.claims[n], &s.Claims[i])
			}
		}
	}
}

// carries reports whether evidence of the source carries to a requirement by a claim, for which the mainline meets what
// it must. A review carries only if its base was on the mainline, and if it is known who wrote all commits from there.
// A claim by somebody who is not in carry_signers carries the reviews of the same person alone. Nothing that blocks is
// left behind.
func (m *MergeClaim) carries(r *Requirement, e *Evidence, s *Source) bool {
	isOwn := m.Side != nil && e.IsReview() && m.by().sameIndividual(e)
	if !isOwn && !matchesAny(r.CarrySigners, m.Signer) {
		return false
	}
	if m.Side == nil || e.blocks(r) || !e.IsReview() && r.Covers != CoversChange {
		return true
	}
	return s.isSince(e.Base, m.Side.Bases)
}

// blocks reports whether e keeps a commit from meeting the requirement.
func (e *Evidence) blocks(r *Requirement) bool {
	return e.Distrusted || e.Status.IsFailure() && !slices.Contains(r.Accept, e.Status)
}

// isSince reports whether all commits from the base of a review of the source are known, and the base is contained.
func (s *Source) isSince(base string, contained map[string]bool) bool {
	_, known := s.Spans[base]
	return known && contained[base]
}

// by returns evidence by the signer of the claim.
func (m *MergeClaim) by() *Evidence {
	return &Evidence{Signer: m.Signer, Person: m.Person, Individual: m.Individual}
}

// IsReview reports whether e is a review by its name.
func (e *Evidence) IsReview() bool { return strings.HasPrefix(e.Predicate, ledger.ReviewPrefix) }

// whyRefused says why nothing carries to a requirement by a claim. It is empty if something may.
func (k *carrying) whyRefused(r *Requirement, m *MergeClaim) string {
	switch {
	case m.Side == nil && m.ParentState < r.State:
		return fmt.Sprintf("the first parent was %s when %s claimed the merge: once it is %s, claim the merge again",
			m.ParentState, m.Signer, r.State)
	case m.Side == nil:
		return ""
	case m.Side.Refused != "":
		return m.Side.Refused
	}
	if k.isShipped {
		return ""
	}
	if q := m.Side.Met.lacks(k.c, r, k.f.RegisteredAt); q != nil {
		return ledger.Short(m.Side.Commit) + " on the mainline does not meet " + cmp.Or(q.Name, q.Subject())
	}
	return ""
}
