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
