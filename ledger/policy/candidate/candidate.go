// Package candidate says whose approval a commit may be waiting for.
package candidate

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// WouldCount reports whether one more signer would count for requirement i, in addition to those who count by the
// status of all requirements. The signer must match its patterns, not have written the commit, and not be needed for
// requirements of other people. What the statement would say is left open. Of f, only the authors are used.
// evidence returns who the signer with a DN is.
func WouldCount(c *policy.Contract, f policy.Facts, all []ledger.RequirementStatus, i int, dn string,
	evidence func(dn string) policy.Evidence) bool {
	model, at := policy.Contract{Rules: c.Rules, Targets: policy.AllTargets}, 0
	f.Evidence = nil
	add := func(predicate, dn string) {
		e := evidence(dn)
		e.Attestation, e.Predicate, e.Status = fmt.Sprintf("%08d", len(f.Evidence)), predicate, ledger.Pass
		f.Evidence = append(f.Evidence, e)
	}
	for j := range c.Requirements {
		r, s := c.Requirements[j], &all[j]
		if !s.Applies || r.State > all[i].State {
			continue
		}
		if j == i {
			at = len(model.Requirements)
		} else if s.Exception != nil {
			r.Threshold--
		}
		r = policy.Requirement{State: r.State, Predicate: fmt.Sprintf("requirement:%d", j), Signers: r.Signers,
			Threshold: r.Threshold, Accept: []ledger.Status{ledger.Pass}, ExcludeAuthor: r.ExcludeAuthor,
			DistinctFrom: r.DistinctFrom}
		model.Requirements = append(model.Requirements, r)
		for _, dn := range s.SignersCounted {
			add(r.Predicate, dn)
		}
	}

	target := &model.Requirements[at]
	without := f
	add(target.Predicate, dn)
	for target.Threshold = 1; target.Threshold <= all[i].Need; target.Threshold++ {
		if !meets(&model, without, at) && meets(&model, f, at) {
			return true
		}
	}
	return false
}

// meets reports whether a requirement is met, by evidence without times.
func meets(c *policy.Contract, f policy.Facts, i int) bool {
	f.Evidence = slices.Clone(f.Evidence)
	return c.Derive(f, 0).Requirements[i].Met
}
