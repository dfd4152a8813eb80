package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxMissing limits the reasons of a violation.
const maxMissing = 10

// Violation reports whether e, just recorded and part of f, is a deployment that breaks the
// policy: a pass for a predicate that a DEPLOYED requirement names, which does not count
// for any of these requirements. missing says why: at most maxMissing reasons, shortened.
func (c Contract) Violation(f Facts, e Evidence, now ledger.Time) (missing []string, ok bool) {
	isDeployed := func(r Requirement) bool { return r.State == ledger.Deployed && r.isAbout(&e) }
	if e.Status != ledger.Pass || !slices.ContainsFunc(c.Requirements, isDeployed) {
		return nil, false
	}

	v := c.evaluate(&f, now)
	v.search = nil // with its own limit
	at := slices.IndexFunc(f.Evidence, func(other Evidence) bool { return other.Attestation == e.Attestation })
	for i := range c.Requirements {
		if isDeployed(c.Requirements[i]) && v.decisions[i].applies && at >= 0 && v.hasCounted(i, at) {
			return nil, false
		}
	}

	for i := range c.Requirements {
		if len(missing) == maxMissing {
			break
		}
		r, d, reason := c.Requirements[i], &v.decisions[i], ""
		switch {
		case isDeployed(r):
			reason = v.whyNot(i, at)
		case r.State < ledger.Deployed && d.applies && !d.met && !e.WhilePromotable:
			reason = v.status(i).Reason
		default:
			continue
		}
		missing = append(missing, clipReason(reason))
	}
	return missing, true
}

// Missed returns the reasons of a violation as it has them: the first ones, shortened.
func Missed(reasons []string) (missing []string) {
	for _, reason := range reasons[:min(len(reasons), maxMissing)] {
		missing = append(missing, clipReason(reason))
	}
	return missing
}

// whyNot returns why the evidence at a position does not count for a requirement.
func (v *evaluation) whyNot(i, at int) string {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	name := cmp.Or(r.Predicate, r.Type)
	if !d.applies {
		return name + " does not apply: " + d.Excluded
	}
	if !d.met {
		return v.status(i).Reason
	}
	return name + ": " + v.f.Evidence[at].Signer.String() + " does not count"
}

// maxReason limits a reason of a violation, in bytes.
const maxReason = 300

func clipReason(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason-len("…")], "") + "…"
}

// hasCounted reports whether the evidence at a position counts for a requirement: its own
// person can be assigned to it, apart from the people from whom it must be distinct.
func (v *evaluation) hasCounted(i, at int) bool {
	d := &v.decisions[i]
	return d.verdicts[at] == counts && !d.blocked && v.isAssignable(i, at)
}

// IsDeployment reports whether e is a deployment: a pass for a predicate that a DEPLOYED
// requirement names. It counts, or it is a Violation.
func (c Contract) IsDeployment(e Evidence) bool {
	return e.Status == ledger.Pass && slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
		return r.State == ledger.Deployed && r.isAbout(&e)
	})
}

// Excused returns the DEPLOYED requirements of a commit for which the exception with the
// given id stands in at the time now. Excuses says for which deployments.
func (c Contract) Excused(f Facts, now ledger.Time, exception string) (excused []Requirement) {
	v := c.evaluate(&f, now)
	for i := range v.decisions {
		r, d := c.Requirements[i], &v.decisions[i]
		if r.State == ledger.Deployed && d.exception != nil && d.exception.Attestation == exception {
			excused = append(excused, r)
		}
	}
	return excused
}

// Excuses reports whether an exception that stands in for requirements makes a deployment of a commit count, which has
// not. If another statement has replaced the deployment, f does not say what it shipped.
func (c *Contract) Excuses(excused []Requirement, f Facts, d Evidence) bool {
	if !slices.ContainsFunc(excused, func(r Requirement) bool { return r.isAbout(&d) }) {
		return false
	}
	at := slices.IndexFunc(f.Evidence, func(e Evidence) bool { return e.Attestation == d.Attestation })
	if at >= 0 {
		d.WhilePromotable = f.Evidence[at].WhilePromotable
	}
	return c.mayExcuse(&d)
}
