package record

import (
	"github.com/ledgerd/ledgerd/ledger"
	ledgerfacts "github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// recordException records what an exception says, if r is one, and adds it to the facts of its
// commit.
func (re *Recorder) recordException(t *txn.Tx, s *facts.Commit, r *Recording, e *policy.Evidence) error {
	x, ok := ledgerfacts.Exception(r.Attestation, e)
	if !ok {
		return nil
	}
	if err := re.auditException(t, s, r, x); err != nil {
		return err
	}
	re.facts.AddException(s, x)
	return nil
}

// auditException appends the event of an exception that was granted or ended.
func (re *Recorder) auditException(t *txn.Tx, s *facts.Commit, r *Recording, x policy.Exception) error {
	action := ledger.AuditExceptionGranted
	if x.Until <= t.Now {
		action = ledger.AuditExceptionEnded
	}
	repo := s.Deriver.Repo
	return re.journal.Audit(t, repo.OrgID, repo.Org, events.Audited{
		Action: action, Repo: repo.Name, Target: r.Record.ID, After: []ledger.Field{
			{Name: "commit", Value: r.Record.Commit},
			{Name: "identity", Value: r.Identity},
			{Name: "requirement", Value: x.Requirement},
			{Name: "reason", Value: x.Reason},
			{Name: "until", Value: x.Until},
		},
	})
}

// cause returns the cause of the transitions that the recording of an attestation has.
func (r *Recording) cause() ledger.Cause {
	if r.Attestation.Exception != nil {
		return ledger.Cause{Type: ledger.CauseException, ID: r.Record.ID}
	}
	return ledger.Cause{Type: ledger.CauseAttestation, ID: r.Record.ID}
}
