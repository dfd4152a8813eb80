package facts

import (
	"slices"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Deriver derives the states of a repo's commits under a contract.
type Deriver struct {
	Repo     txn.Repo
	Contract *policy.Contract
}

// Deriver returns the deriver for the repo's active contract.
func (fa *Facts) Deriver(rd txn.Reader, r txn.Repo) (*Deriver, error) {
	contract, err := fa.policies.Contract(rd, r)
	if err != nil {
		return nil, err
	}
	return &Deriver{r, contract}, nil
}

// DeriverOf is like deriver, for a repo given by name.
func (fa *Facts) DeriverOf(rd txn.Reader, org, repo string) (*Deriver, error) {
	r, err := rd.FindRepo(org, repo)
	if err != nil {
		return nil, err
	}
	return fa.Deriver(rd, r)
}

// WritableDeriver is DeriverOf, for a write. It returns CodeArchived if the repo can only be
// read.
func (fa *Facts) WritableDeriver(rd txn.Reader, org, repo string) (*Deriver, error) {
	d, err := fa.DeriverOf(rd, org, repo)
	if err != nil {
		return nil, err
	}
	return d, d.Repo.CheckWritable()
}

// DeriverByID is like deriver, for a repo given by its row id.
func (fa *Facts) DeriverByID(rd txn.Reader, repoID int64) (*Deriver, error) {
	r, err := rd.RepoByID(repoID)
	if err != nil {
		return nil, err
	}
	return fa.Deriver(rd, r)
}

// Derivers are those of the repos that one read or write is about.
type Derivers struct {
	facts *Facts
	known map[int64]*Deriver // by the row id of the repo
}

// Derivers returns a set of derivers, which is empty.
func (fa *Facts) Derivers() *Derivers { return &Derivers{fa, make(map[int64]*Deriver)} }

// Of returns the deriver of a repo. It reads each repo once.
func (ds *Derivers) Of(rd txn.Reader, repoID int64) (*Deriver, error) {
	if d := ds.known[repoID]; d != nil {
		return d, nil
	}
	d, err := ds.facts.DeriverByID(rd, repoID)
	if err == nil {
		ds.known[repoID] = d
	}
	return d, err
}

// PolicyCause returns the cause of what follows from the present version of the policy.
func (d *Deriver) PolicyCause() ledger.Cause {
	return ledger.Cause{Type: ledger.CausePolicy, ID: strconv.Itoa(d.Repo.PolicyVersion)}
}

// factsOf returns what is known of a commit as the contract reads it.
func (d *Deriver) factsOf(known *facts.Commit) policy.Facts {
	return known.Policy(d.Contract.Targets, d.Repo.DefaultBranch)
}

// A Commit is a commit with the facts from which its state is derived.
type Commit struct {
	*CommitRow
	Deriver *Deriver
	Facts   policy.Facts
	// Versions is the sum of the versions of what the commit inherits. If it differs from the basis, the commit is
	// due.
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
func (s *Commit) IsOutdated() bool {
	return !s.IsHistory() && (s.Versions != s.Basis || s.Distrusts != s.Deriver.Repo.Distrusts)
}

// IsOverruled reports whether the policy, or whose evidence counts, has changed since the state was derived.
func (s *Commit) IsOverruled() bool {
	return !s.IsHistory() &&
		(s.PolicyVersion != s.Deriver.Repo.PolicyVersion || s.Distrusts != s.Deriver.Repo.Distrusts)
}

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
