package facts

import (
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Evidence returns the evidence in a signed attestation, without what its recording adds.
func Evidence(a *attestation.Attestation) policy.Evidence {
	e := policy.Evidence{
		Predicate: a.Predicate, PredicateType: a.PredicateType, Slot: a.Slot, Signer: a.Signer.DN, Emails: a.Signer.Emails,
		Status: a.Result.Status, FinishedAt: a.FinishedAt, Passkey: len(a.Assertion) > 0, Reason: a.Reason(),
	}
	if a.Changes != nil {
		e.Paths = a.Changes.Paths
	}
	return e
}

// Exception returns the exception in a signed attestation, whose evidence has been recorded,
// and whether there is one.
func Exception(a *attestation.Attestation, e *policy.Evidence) (x policy.Exception, ok bool) {
	if a.Exception == nil {
		return x, false
	}
	return policy.Exception{
		Attestation: e.Attestation, Requirement: a.Exception.Requirement, Signer: e.Signer, Reason: a.Exception.Reason,
		RecordedAt: e.RecordedAt, Until: a.Exception.Until,
	}, true
}
