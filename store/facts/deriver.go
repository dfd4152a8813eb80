package facts

import (
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
