package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// IsDeployment reports whether e is a deployment: a pass for a predicate that a DEPLOYED
// requirement names. It counts, or it is a Violation.
func (c Contract) IsDeployment(e Evidence) bool {
	return e.Status == ledger.Pass && slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
		return r.State == ledger.Deployed && r.isAbout(&e)
	})
}

// Excuses reports whether the exception with the given id stands in, at the time now, for
// a DEPLOYED requirement of a commit that names a predicate, or its type.
func (c Contract) Excuses(f Facts, now ledger.Time, exception, predicate, predicateType string) bool {
	e := Evidence{Predicate: predicate, PredicateType: predicateType}
	for i, s := range c.Derive(f, now).Requirements[:len(c.Requirements)] {
		r := &c.Requirements[i]
		if r.State == ledger.Deployed && r.isAbout(&e) && s.Exception != nil && s.Exception.Attestation == exception {
			return true
		}
	}
	return false
}
