package states

import (
	"github.com/go-json-experiment/json"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// SelectViolation reads violations v. The names of their repos are in the row only if the
// query is for an org.
const (
	SelectViolation = `
SELECT v.id, v.repo_id, c.sha, v.predicate_id, a.attestation_id, a.signer_id, v.state, v.missing, v.opened_at,
  v.closed_at, v.closed_how, v.closed_by`
	JoinViolation = `
/*+ordered*/ JOIN attestations a ON a.id = v.attestation_id /*+ordered*/ JOIN commits c ON c.id = v.commit_id`
)

// ScanViolation scans a row of SelectViolation, and further columns.
func (st *States) ScanViolation(rd txn.Reader, row txn.Scanner, more ...any) (v txn.Keyed[ledger.Violation],
	err error) {
	var repoID, predicateID, signerID int64
	var missing []byte
	var by ledger.Closing
	err = row.Scan(append([]any{&v.ID, &repoID, &v.Row.Commit, &predicateID, &v.Row.Attestation, &signerID, &v.Row.State,
		&missing, &v.Row.OpenedAt, &v.Row.ClosedAt, &by.Type, &by.ID}, more...)...)
	if err != nil {
		return v, err
	}

	v.Row.Status = ledger.ViolationOpen
	if v.Row.ClosedAt != 0 {
		v.Row.Status, v.Row.ClosedBy = ledger.ViolationClosed, &by
	}
	if v.Row.Predicate, err = st.signers.Predicate(rd, predicateID); err != nil {
		return v, err
	}
	signer, err := st.signers.Signer(rd, signerID)
	if err != nil {
		return v, err
	}
	v.Row.Identity = signer.Text
	return v, json.Unmarshal(missing, &v.Row.Missing)
}
