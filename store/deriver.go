package store

import (
	"slices"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A deriver derives the states of a repo's commits under a contract.
type deriver struct {
	repo     txn.Repo
	contract *policy.Contract
}

// deriver returns the deriver for the repo's active contract.
func (rd reader) deriver(r txn.Repo) (*deriver, error) {
	contract, err := rd.s.Contracts.Contract(rd.Reader, r)
	if err != nil {
		return nil, err
	}
	return &deriver{r, contract}, nil
}

// deriverOf is like deriver, for a repo given by name.
func (rd reader) deriverOf(org, repo string) (*deriver, error) {
	r, err := rd.FindRepo(org, repo)
	if err != nil {
		return nil, err
	}
	return rd.deriver(r)
}

// writableDeriver is deriverOf, for a write. It returns CodeArchived if the repo can only be
// read.
func (rd reader) writableDeriver(org, repo string) (*deriver, error) {
	d, err := rd.deriverOf(org, repo)
	if err != nil {
		return nil, err
	}
	return d, d.repo.CheckWritable()
}

// deriverByID is like deriver, for a repo given by its row id.
func (rd reader) deriverByID(repoID int64) (*deriver, error) {
	r, err := rd.RepoByID(repoID)
	if err != nil {
		return nil, err
	}
	return rd.deriver(r)
}

// derivers are the derivers of repos, by row id.
type derivers map[int64]*deriver

// of returns the deriver of a repo. It reads each repo once.
func (known derivers) of(rd reader, repoID int64) (*deriver, error) {
	if d := known[repoID]; d != nil {
		return d, nil
	}
	d, err := rd.deriverByID(repoID)
	if err == nil {
		known[repoID] = d
	}
	return d, err
}

func (d *deriver) policyCause() ledger.Cause {
	return ledger.Cause{Type: ledger.CausePolicy, ID: strconv.Itoa(d.repo.PolicyVersion)}
}

// factsOf returns what is known of a commit as the contract reads it.
func (d *deriver) factsOf(known *facts.Commit) policy.Facts {
	return known.Policy(d.contract.Targets, d.repo.DefaultBranch)
}

// A subject is a commit with the facts from which its state is derived.
type subject struct {
	*commitRow
	d     *deriver
	facts policy.Facts
	// versions is the sum of the versions of what the commit inherits, and of the org's
	// revocations since some time. If it differs from the basis, the commit is due.
	versions int64
	// carriedRows holds the row ids of facts.Carried.
	carriedRows []int64
	// If the contract has expressions, rows holds the row ids of the gathered evidence,
	// and unevaluated what the facts have no verdict of.
	rows        []int64
	unevaluated []unevaluated
}

// isUnevaluated reports whether the state cannot be derived yet: an expression was not
// evaluated on the evidence. A deployed commit stays as it is.
func (s *subject) isUnevaluated() bool { return len(s.unevaluated) > 0 && !s.facts.Deployed }

// expiry returns the cause of a transition at the given time: the evidence, the exception
// or the overlap that expired.
func (s *subject) expiry(at ledger.Time) ledger.Cause {
	if cause := s.d.contract.ExpiredAt(s.facts, at); cause != (ledger.Cause{}) {
		return cause
	}
	for _, o := range s.facts.Overlaps {
		if o.Until == at {
			return ledger.Cause{Type: ledger.CauseRadar, ID: o.Commit}
		}
	}
	return ledger.Cause{Type: ledger.CauseExpiry}
}

// isDue reports whether the policy or inherited evidence has changed, or evidence or an
// overlap has expired, since the state was derived.
func (s *subject) isDue(now ledger.Time) bool {
	return !s.isHistory() && s.policyVersion != s.d.repo.PolicyVersion || s.hasExpired(now) || s.isOutdated()
}

// isOutdated reports whether evidence of other commits, or whose evidence counts, has
// changed since the state was derived.
func (s *subject) isOutdated() bool { return !s.isHistory() && s.versions != s.basis }

// hasExpired reports whether evidence or an overlap has expired since the state was
// derived.
func (s *subject) hasExpired(now ledger.Time) bool {
	return !s.isHistory() && s.expires != 0 && s.expires <= now
}

// isLatest reports whether new evidence becomes the latest of its signer.
func (s *subject) isLatest(e *policy.Evidence) bool {
	for i := range s.facts.Evidence {
		old := &s.facts.Evidence[i]
		if old.Signer == e.Signer && old.Predicate == e.Predicate && old.Slot == e.Slot && !e.Replaces(old) {
			return false
		}
	}
	return true
}

// isPromotable reports whether a commit meets all requirements for PROMOTABLE. A DEPLOYED
// commit may no longer meet them.
func (s *subject) isPromotable(now ledger.Time) bool {
	if s.state != ledger.Deployed {
		return s.state == ledger.Promotable
	}
	standing, _ := s.d.contract.Standing(s.facts, now)
	return standing == ledger.Promotable
}

// add adds evidence to the facts. It replaces the signer's earlier evidence for the predicate and slot,
// as in the table latest. If e is a rollback, the commit is no longer deployed.
func (s *subject) add(e policy.Evidence) {
	f := &s.facts
	f.Attested = true
	f.Evidence = slices.DeleteFunc(f.Evidence, func(old policy.Evidence) bool {
		return e.Signer == old.Signer && e.Replaces(&old)
	})
	f.Evidence = append(f.Evidence, e)
	f.Deployed = f.Deployed && !s.d.contract.RollsBack(*f, e)
}
