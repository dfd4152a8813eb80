package facts

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A Commit is a commit with the facts from which its state is derived.
type Commit struct {
	*CommitRow
	Deriver *Deriver
	Facts   policy.Facts
	// Versions is the sum of the versions of what the commit inherits, and of the org's
	// revocations since some time. If it differs from the basis, the commit is due.
	Versions int64
	// carriedRows holds the row ids of facts.Carried.
	carriedRows []int64
	// If the contract has expressions, rows holds the row ids of the gathered evidence,
	// and unevaluated what the facts have no verdict of.
	rows        []int64
	Unevaluated []Unevaluated
}

// IsUnevaluated reports whether the state cannot be derived yet: an expression was not
// evaluated on the evidence. A deployed commit stays as it is.
func (s *Commit) IsUnevaluated() bool { return len(s.Unevaluated) > 0 && !s.Facts.Deployed }

// Expiry returns the cause of a transition at the given time: the evidence, the exception
// or the overlap that expired.
func (s *Commit) Expiry(at ledger.Time) ledger.Cause {
	if cause := s.Deriver.Contract.ExpiredAt(s.Facts, at); cause != (ledger.Cause{}) {
		return cause
	}
	for _, o := range s.Facts.Overlaps {
		if o.Until == at {
			return ledger.Cause{Type: ledger.CauseRadar, ID: o.Commit}
		}
	}
	return ledger.Cause{Type: ledger.CauseExpiry}
}

// IsDue reports whether the policy or inherited evidence has changed, or evidence or an
// overlap has expired, since the state was derived.
func (s *Commit) IsDue(now ledger.Time) bool {
	return !s.IsHistory() && s.PolicyVersion != s.Deriver.Repo.PolicyVersion || s.HasExpired(now) || s.IsOutdated()
}

// IsOutdated reports whether evidence of other commits, or whose evidence counts, has
// changed since the state was derived.
func (s *Commit) IsOutdated() bool { return !s.IsHistory() && s.Versions != s.Basis }

// HasExpired reports whether evidence or an overlap has expired since the state was
// derived.
func (s *Commit) HasExpired(now ledger.Time) bool {
	return !s.IsHistory() && s.Expires != 0 && s.Expires <= now
}

// isLatest reports whether new evidence becomes the latest of its signer.
func (s *Commit) isLatest(e *policy.Evidence) bool {
	for i := range s.Facts.Evidence {
		old := &s.Facts.Evidence[i]
		if old.Signer == e.Signer && old.Predicate == e.Predicate && old.Slot == e.Slot && !e.Replaces(old) {
			return false
		}
	}
	return true
}

// IsPromotable reports whether a commit meets all requirements for PROMOTABLE. A DEPLOYED
// commit may no longer meet them.
func (s *Commit) IsPromotable(now ledger.Time) bool {
	if s.State != ledger.Deployed {
		return s.State == ledger.Promotable
	}
	standing, _ := s.Deriver.Contract.Standing(s.Facts, now)
	return standing == ledger.Promotable
}

// Add adds evidence to the facts. It replaces the signer's earlier evidence for the predicate and slot,
// as in the table latest. If e is a rollback, the commit is no longer deployed.
func (s *Commit) Add(e policy.Evidence) {
	f := &s.Facts
	f.Attested = true
	f.Evidence = slices.DeleteFunc(f.Evidence, func(old policy.Evidence) bool {
		return e.Signer == old.Signer && e.Replaces(&old)
	})
	f.Evidence = append(f.Evidence, e)
	f.Deployed = f.Deployed && !s.Deriver.Contract.RollsBack(*f, e)
}

// An Unevaluated is an attestation on which an expression was not evaluated yet.
type Unevaluated struct {
	Row         int64  // of the attestation
	Attestation string // its id
	Expression  string
}

// A VerdictRow is what an expression says of an attestation.
type VerdictRow struct {
	Unevaluated
	Verdict policy.Verdict
}
