package store

import (
	"github.com/ledgerd/ledgerd/ledger"
	ledgerfacts "github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
)

// recordException records what an exception says, if r is one, and adds it to the facts of its
// commit.
func (t *tx) recordException(s *facts.Commit, r *recording, e *policy.Evidence) error {
	x, ok := ledgerfacts.Exception(r.attestation, e)
	if !ok {
		return nil
	}
	if err := t.auditException(s, r, x); err != nil {
		return err
	}
	t.s.Facts.AddException(t.kernel, s, x)
	return nil
}

// auditException appends the event of an exception that was granted or ended.
func (t *tx) auditException(s *facts.Commit, r *recording, x policy.Exception) error {
	action := ledger.AuditExceptionGranted
	if x.Until <= t.Now {
		action = ledger.AuditExceptionEnded
	}
	repo := s.Deriver.Repo
	return t.s.Journal.Audit(t.kernel, repo.OrgID, repo.Org, events.Audited{
		Action: action, Repo: repo.Name, Target: r.rec.ID, After: []ledger.Field{
			{Name: "commit", Value: r.rec.Commit},
			{Name: "identity", Value: r.identity},
			{Name: "requirement", Value: x.Requirement},
			{Name: "reason", Value: x.Reason},
			{Name: "until", Value: x.Until},
		},
	})
}

// cause returns the cause of the transitions that the recording of an attestation has.
func (r *recording) cause() ledger.Cause {
	if r.attestation.Exception != nil {
		return ledger.Cause{Type: ledger.CauseException, ID: r.rec.ID}
	}
	return ledger.Cause{Type: ledger.CauseAttestation, ID: r.rec.ID}
}
