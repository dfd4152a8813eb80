package lists

import (
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
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

	signerID int64
}

// maxDistrusted limits the attestations about what runs in an environment that are skipped because their signers are
// distrusted. If there are more, what runs is not known.
const maxDistrusted = 100

// An Environment is an environment of a repo.
type Environment struct {
	OrgID, RepoID int64
	Name          string
	// PredicateID is the row of the predicate of the deployments. If it is 0, it is looked up.
	PredicateID int64
}

// Base returns the base of an environment: its newest deployment that counts and was not rolled back, or else its
// newest baseline. examined is the number of rows that it has read.
func (li *Lists) Base(rd txn.Reader, e Environment) (b Base, examined int, err error) {
	if e.PredicateID == 0 {
		e.PredicateID, err = li.signers.RowOf(rd, signers.PredicateOf(e.OrgID, ledger.EnvironmentPredicate(e.Name)))
		if err != nil {
			return b, 0, err
		}
	}
	b, examined, err = li.newest(rd, e.RepoID, e.PredicateID)
	if err != nil || b.CommitID != 0 || examined == maxDistrusted {
		return b, examined, err
	}

	id, err := li.signers.RowOf(rd, signers.PredicateOf(e.OrgID, ledger.BaselinePredicate(e.Name)))
	if err != nil || id == 0 {
		return b, examined, err
	}
	b, n, err := li.newest(rd, e.RepoID, id)
	b.IsBaseline = b.CommitID != 0
	return b, examined + n, err
}

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
  c.sha, c.state, c.branch, substr(c.message, 1, `+SubjectBytes+`), c.target, c.tree_id,`+facts.IsTrusted+`
FROM deployments d /*+index deployments_present*/ /*+ordered*/ JOIN attestations a ON a.id = d.attestation_id
/*+ordered*/ JOIN commits c ON c.id = d.commit_id
WHERE d.repo_id = ? AND d.predicate_id = ? AND d.ended_id = 0 ORDER BY d.attestation_id DESC LIMIT ?`,
		repoID, predicateID, maxDistrusted)
	if err != nil && !errors.Is(err, txn.ErrFull) {
		return Base{}, examined, fmt.Errorf("read what runs: %w", err)
	}
	if newest.CommitID == 0 {
		return Base{}, examined, nil
	}

	signer, err := li.signers.Signer(rd, newest.signerID)
	newest.Identity, newest.Subject = signer.Text, ledger.Subject(newest.Subject)
	return newest, examined, err
}
