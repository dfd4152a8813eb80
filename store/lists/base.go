package lists

import (
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/running"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Base is the commit that an environment of a repo shows as running, with the attestation which says so. It is zero
// if what runs is not known.
type Base struct {
	CommitID, AttestationID int64
	Commit, Attestation     string
	// IsBaseline reports whether the attestation is a baseline; otherwise it is a deployment, or the rollback of another
	// commit to this one.
	IsBaseline bool
	// Required reports whether a DEPLOYED requirement named the predicate when the deployment was recorded. It is false
	// for a baseline.
	Required bool

	Identity string // the signer's DN
	At       ledger.Time
	Reason   string
	State    ledger.State // of the commit, as it is stored
	Branch   string
	Target   string
	Subject  string
	TreeID   int64

	signerID, predicateID int64
}

// SubjectBytes is how much of a message is read for its subject.
const SubjectBytes = "1000"

// An Environment is an environment of a repo.
type Environment struct {
	OrgID, RepoID int64
	Name          string
	// PredicateID is the row of the predicate of the deployments. If it is 0, it is looked up.
	PredicateID int64
}

// Base returns the base of an environment: its newest deployment that counts and was not rolled back, or else its
// newest baseline. If the signers of the newest running.MaxRan deployments are distrusted, it is not known. examined is
// the number of rows that it has read.
func (li *Lists) Base(rd txn.Reader, e Environment) (b Base, examined int, err error) {
	if e.PredicateID == 0 {
		e.PredicateID, err = li.signers.RowOf(rd, signers.PredicateOf(e.OrgID, ledger.EnvironmentPredicate(e.Name)))
		if err != nil {
			return b, 0, err
		}
	}
	b, examined, err = li.newest(rd, e.RepoID, e.PredicateID)
	if err != nil || b.CommitID != 0 || examined == running.MaxRan {
		return b, examined, err
	}
	b, n, err := li.baseline(rd, e)
	return b, examined + n, err
}

// baseline returns the newest baseline of an environment.
func (li *Lists) baseline(rd txn.Reader, e Environment) (b Base, examined int, err error) {
	id, err := li.signers.RowOf(rd, signers.PredicateOf(e.OrgID, ledger.BaselinePredicate(e.Name)))
	if err != nil || id == 0 {
		return b, 0, err
	}
	b, examined, err = li.newest(rd, e.RepoID, id)
	b.IsBaseline = b.CommitID != 0
	return b, examined, err
}

// ran returns the commits that run or ran in an environment, by their newest deployments that count and were not rolled
// back, and by its newest baseline. The base is what runs.
func (li *Lists) ran(rd txn.Reader, e Environment) (base Base, commits map[string]bool, err error) {
	if base, _, err = li.Base(rd, e); err != nil || base.CommitID == 0 {
		return base, nil, err
	}
	commits = map[string]bool{base.Commit: true}
	if base.IsBaseline {
		return base, commits, nil
	}
	before, _, err := li.baseline(rd, e)
	if err != nil {
		return base, nil, err
	}
	if before.CommitID != 0 {
		commits[before.Commit] = true
	}

	err = rd.Each(func(row txn.Scanner) error {
		var sha string
		var isTrusted bool
		err := row.Scan(&sha, &isTrusted)
		commits[sha] = commits[sha] || isTrusted
		return err
	}, "SELECT c.sha,"+facts.IsTrusted+joinRan+" LIMIT ?", e.RepoID, base.predicateID, running.MaxRan)
	if err != nil {
		return base, nil, fmt.Errorf("read what ran: %w", err)
	}
	return base, commits, nil
}

// joinRan joins the deployments to an environment that were not rolled back, the newest first, with their attestations
// and commits.
const joinRan = `
FROM deployments d /*+index deployments_present*/ /*+ordered*/ JOIN attestations a ON a.id = d.attestation_id
/*+ordered*/ JOIN commits c ON c.id = d.commit_id
WHERE d.repo_id = ? AND d.predicate_id = ? AND d.ended_id = 0 ORDER BY d.attestation_id DESC`

// newest returns the newest commit of a repo that was deployed, or is a baseline, under a predicate, and was not rolled
// back.
func (li *Lists) newest(rd txn.Reader, repoID, predicateID int64) (newest Base, examined int, err error) {
	err = rd.Each(func(row txn.Scanner) error {
		examined++
		var b Base
		var isTrusted bool
		err := row.Scan(&b.CommitID, &b.AttestationID, &b.Required, &b.Attestation, &b.signerID, &b.At, &b.Reason,
			&b.Commit, &b.State, &b.Branch, &b.Subject, &b.Target, &b.TreeID, &isTrusted)
		if err != nil || !isTrusted {
			return err
		}
		newest = b
		return txn.ErrFull
	}, `
SELECT d.commit_id, d.attestation_id, d.required, a.attestation_id, a.signer_id, a.recorded_at, a.reason,
  c.sha, c.state, c.branch, substr(c.message, 1, `+SubjectBytes+`), c.target, c.tree_id,`+
		facts.IsTrusted+joinRan+" LIMIT ?",
		repoID, predicateID, running.MaxRan)
	if err != nil && !errors.Is(err, txn.ErrFull) {
		return Base{}, examined, fmt.Errorf("read what runs: %w", err)
	}
	if newest.CommitID == 0 {
		return Base{}, examined, nil
	}

	signer, err := li.signers.Signer(rd, newest.signerID)
	newest.Identity, newest.Subject, newest.predicateID = signer.Text, ledger.Subject(newest.Subject), predicateID
	return newest, examined, err
}
