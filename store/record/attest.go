package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	ledgerfacts "github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/room"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// attest verifies an attestation with the keyring of the org, and records it. If the keyring changes before it is
// recorded, attest verifies it again.
func (re *Recorder) attest(ctx context.Context, org, repo string, verify Verify) (r *Recording, err error) {
	a, by, err := re.verify(ctx, org, repo, verify)
	if err != nil {
		return nil, err
	}
	r = NewRecording(org, repo, a, by.version)
	r.verify, r.webURL = verify, by.webURL
	return r, re.record(ctx, r)
}

// record writes a recording. Before, it evaluates the expressions of the contract that it expects.
func (re *Recorder) record(ctx context.Context, r *Recording) error {
	if err := r.Attestation.CheckRepo(r.Org, r.Repo); err != nil {
		return err
	}
	key := repoKey(r.Org, r.Repo)
	expected, _ := re.expected.Get(key)
	if expected.contract != nil {
		e := r.evidence()
		if err := re.evaluateNew(ctx, r, expected.contract.Expressions(&e)); err != nil {
			return err
		}
	}

	if err := re.db.Admit(r.Org); err != nil {
		return err
	}
	r.by = txn.ActorOf(ctx)
	r.re = re
	err := txn.Retry(ctx, func(ctx context.Context) error {
		err := re.db.Write(ctx, sqldb.Write{Org: r.Org, Set: Set{Recorder: re}, Item: r})
		return cmp.Or(err, r.Err)
	})
	if expected.contract != nil && r.contract != nil && r.contract != expected.contract {
		re.expect(key, func(x *expectation) { x.contract = r.contract })
	}
	r.Record.Unlinked = r.Attestation.Artifacts.Left
	return err
}

// A Set records the attestations that are queued at the same time as one set. It
// reads the data for all of them, processes each in the order of arrival, and writes all
// rows. So the number of SQL statements does not depend on the size of the set.
type Set struct{ Recorder *Recorder }

// WriteAll implements sqldb.Set.
func (r Set) WriteAll(c *sqldb.Conn, items []any) error {
	list := make([]*Recording, len(items))
	for i, item := range items {
		list[i] = item.(*Recording)
	}

	return r.Recorder.db.Do(c, func(t *txn.Tx) error {
		for len(list) > 0 {
			v, err := r.Recorder.view(t, list)
			if err != nil {
				return err
			}
			if list, err = r.Recorder.recordAll(t, v, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordAll records attestations until one of them affects other commits. It settles these,
// unless they only inherit the evidence, and returns the remaining attestations, which need a
// new view.
func (re *Recorder) recordAll(t *txn.Tx, v *view, list []*Recording) (rest []*Recording, err error) {
	for i, r := range list {
		t.Actor = r.by
		if err := re.recordOne(t, v, r); err != nil {
			return nil, fmt.Errorf("record attestation: %w", err)
		}
		if re.facts.HasWork() {
			return list[i+1:], re.states.Drain(t, v.repos[repoKey(r.Org, r.Repo)])
		}
		if v.isInherited(r, list[i+1:]) {
			return list[i+1:], nil
		}
	}
	return nil, nil
}

// recordOne records an attestation of a set, or sets r.err if the attestation is refused.
// A refused attestation adds no rows.
func (re *Recorder) recordOne(t *txn.Tx, v *view, r *Recording) error {
	r.Record, r.Created, r.Err = ledger.AttestationRecord{}, false, nil
	r.contract, r.merge, r.uncovered = nil, nil, nil
	d, err := v.deriver(r)
	if err != nil {
		r.Err = err
		return nil
	}

	if id := r.Attestation.Passkey; id != "" {
		if r.Err, err = access.CheckPasskeyInUse(t, id); r.Err != nil || err != nil {
			return err
		}
	}
	r.people, err = re.signers.PeopleLike(t, d.Repo.OrgID, r.Attestation.Signer, r.Identity, r.KeyringVersion)
	if err != nil {
		return err
	}
	key := commitKey{d.Repo.ID, r.Attestation.Commit}
	s := v.commits[key]
	if s != nil {
		dup, err := re.findDuplicate(t, v, s, r)
		if err != nil {
			return err
		}
		if dup != nil {
			r.setDuplicate(dup)
			return nil
		}
		if r.setStale(s.Facts.Evidence) || r.setStale(s.Facts.Carried) {
			return nil
		}

		e := r.evidence()
		if r.Err = room.Check(s.Facts.Evidence, &e, r.people); r.Err != nil {
			return nil
		}
	}

	if r.Err = r.Attestation.CheckNew(); r.Err != nil {
		return nil
	}
	r.contract = d.Contract
	r.Err = cmp.Or(d.Contract.CheckClaims(r.Attestation.Predicate, &r.Attestation.Signer), r.checkBaseline(s),
		r.checkVerdicts(s))
	if r.Err != nil {
		return nil
	}
	if ok, err := re.checkMerge(t, v, d, s, r); err != nil || !ok {
		return err
	}
	if err := re.checkRollback(t, d, r); err != nil || r.Err != nil {
		return err
	}
	if err := re.checkNothingRuns(t, d, r); err != nil || r.Err != nil {
		return err
	}
	r.Created = true
	if s == nil {
		if s, err = re.facts.AddCommit(t, d, r.Attestation.Commit); err != nil {
			return err
		}
		v.commits[key] = s
	}

	if err := re.states.SettleDue(t, s, ledger.Cause{}); err != nil {
		return err
	}
	return re.addAttestation(t, v, s, r)
}

// findDuplicate finds the record of the same statement by the same person. It returns nil
// if the statement is new.
func (re *Recorder) findDuplicate(t *txn.Tx, v *view, s *facts.Commit, r *Recording) (*duplicate, error) {
	recorded, bar, err := re.trustedStatements(t, s, r, v.statements[statementKey{s.ID, r.Attestation.PayloadDigest}])
	if len(recorded) == 0 || err != nil {
		return bar, err
	}

	i := slices.IndexFunc(recorded, func(st statement) bool {
		person, e := signers.PersonOfName(t.Conn, s.Deriver.Repo.OrgID, st.signerID)
		err = errors.Join(err, e)
		return slices.Contains(r.people, person)
	})
	if i < 0 || err != nil {
		return bar, err
	}

	dup := &duplicate{rec: recorded[i].rec}
	for _, e := range policy.Latest(s.Facts.Evidence) {
		if e.Predicate == dup.rec.Predicate && e.Slot == dup.rec.Slot && slices.Contains(r.people, e.Person) &&
			e.Attestation != dup.rec.ID {
			dup.replacedBy = e.Attestation
		}
	}
	if dup.replacedBy == "" {
		dup.replacedBy, err = re.replacedDeployment(t, s, &dup.rec)
	}
	return dup, err
}

// trustedStatements returns the records of an attestation's statement that are not
// distrusted: others do not keep it from being recorded again, but with another key. bar is
// the one that has the same.
func (re *Recorder) trustedStatements(t *txn.Tx,
	s *facts.Commit, r *Recording, recorded []statement,
) (trusted []statement, bar *duplicate, err error) {
	for _, st := range recorded {
		if !st.isDistrusted {
			trusted = append(trusted, st)
			continue
		}
		org := s.Deriver.Repo.OrgID
		signer, err := re.signers.RowOf(t.Reader, signers.SignerOf(org, r.Identity))
		if err != nil {
			return nil, nil, err
		}
		key, err := re.signers.RowOf(t.Reader, signers.KeyOf(org, string(r.Attestation.Signer.Key[:])))
		if err != nil {
			return nil, nil, err
		}
		if st.signerID == signer && st.keyID == key {
			bar = &duplicate{rec: st.rec, isDistrusted: true}
		}
	}
	return trusted, bar, nil
}

// addAttestation records an attestation on a commit, and its effects.
func (re *Recorder) addAttestation(t *txn.Tx, v *view, s *facts.Commit, r *Recording) error {
	a, rec := r.Attestation, &r.Record
	*rec = ledger.AttestationRecord{
		Org: s.Deriver.Repo.Org, Repo: s.Deriver.Repo.Name, Commit: a.Commit,
		Predicate: a.Predicate, PredicateType: a.PredicateType,
		Identity: r.Identity, Signer: a.Signer.DN.CN,
		Result: a.Result, RecordedAt: t.Now,
		PayloadDigest: facts.DigestText(a.PayloadDigest[:]), Slot: a.Slot, AssertionDigest: passkey.Digest(a.Assertion),
		Reason: a.Reason(), Base: a.Base,
	}
	rec.Rollout = facts.RolloutOf(rec)

	var err error
	if rec.ID, err = t.NewID(s.Deriver.Repo.OrgID, txn.AttestationPrefix); err != nil {
		return err
	}
	if rec.Event, err = re.journal.AppendAttestation(t, s.Deriver.Repo, *rec, r.key,
		r.envelopeDigest); err != nil {
		return err
	}

	e := r.evidence()
	e.Attestation, e.RecordedAt, e.WhilePromotable = rec.ID, t.Now, s.IsPromotable(t.Now)
	st, err := re.bufferAttestation(t, v, s, r, &e)
	if err != nil {
		return err
	}
	key := statementKey{s.ID, a.PayloadDigest}
	v.statements[key] = append(v.statements[key], st)

	s.Attestations++
	wasDeployed := s.Facts.Deployed
	if r.contract.NeedsVerdicts() {
		for _, x := range r.contract.Expressions(&e) {
			s.SetVerdict(e.Attestation, x, r.verdicts[x])
		}
	}
	s.Add(e)
	if e.IsReview() && (e.Base != "" || s.Gap) { // which it may have filled, in the place of a review with a base
		if err := re.facts.GatherSpans(t.Reader, []*facts.Commit{s}); err != nil {
			return err
		}
	}
	if err := re.recordException(t, s, r, &e); err != nil {
		return err
	}
	if err := re.addMerge(t, v, s, r); err != nil {
		return err
	}
	environment, err := re.states.EnvironmentOf(t, s, &e, st.predicateID)
	if err != nil {
		return err
	}
	j := states.Judge(s, environment, e, wasDeployed)
	if err := re.states.SettleCommit(t, s, r.cause()); err != nil {
		return err
	}
	switch rec.Violation = j.Note; {
	case r.uncovered == nil:
	case j.Note != nil:
		j.Note.Missing = policy.Missed(append(r.uncovered, j.Note.Missing...))
	default: // with a status that is accepted, but not a pass
		rec.Notice = "it does not count as a deployment: " + r.uncovered[0]
	}
	if s.State == ledger.Deployed && !wasDeployed && environment.Name == "" {
		re.facts.WatchAgain(r.cause(), s.ID)
	}
	if err := re.recordDeployment(t, s, r, j, st.predicateID); err != nil {
		return err
	}
	return re.states.RecordViolations(t, s, j)
}

// bufferAttestation adds the rows of an attestation to the buffers.
func (re *Recorder) bufferAttestation(t *txn.Tx, v *view, s *facts.Commit, r *Recording,
	e *policy.Evidence) (st statement, err error) {
	a, org := r.Attestation, s.Deriver.Repo.OrgID
	var typeID int64
	st.rec = r.Record

	for _, name := range []struct {
		row *int64
		key signers.NameKey
	}{
		{&st.predicateID, signers.PredicateOf(org, a.Predicate)},
		{&typeID, signers.PredicateTypeOf(org, a.PredicateType)},
		{&st.signerID, signers.SignerOf(org, r.Identity)},
		{&st.keyID, signers.KeyOf(org, string(a.Signer.Key[:]))},
	} {
		if *name.row, err = re.signers.RowFor(t, name.key, a.Signer.DN); err != nil {
			return st, err
		}
	}

	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: a.Signer.Identity}
	key := signers.PersonKey{
		Signature: signers.Signature{SignerID: st.signerID, KeyID: st.keyID}, KeyringVersion: r.KeyringVersion,
	}
	emails := strings.Join(e.Emails, "\n")
	by, changed, err := re.signers.WhoSigned(t, org, key, a.Signer.DN.CN, emails, cause)
	if err != nil {
		return st, err
	}
	e.Person, e.Individual = by.Person, by.Individual
	if changed {
		if err := re.viewPeople(t, v, org, r.people, by.Person); err != nil {
			return st, err
		}
	}
	e.FinishedAt = policy.Finished(s.Facts.Evidence, e)
	e.WhilePromotable = e.WhilePromotable && s.Deriver.Contract.MayDeploy(s.Facts, *e, a.Again != "", t.Now)
	if e.WhilePromotable && s.Deriver.Contract.Delivers(e) {
		if r.uncovered, err = re.uncovered(t, s, e); err != nil {
			return st, err
		}
		e.WhilePromotable = r.uncovered == nil
	}

	return st, re.facts.InsertAttestation(t, s, facts.NewAttestation{
		Attestation: a, Evidence: e, PredicateID: st.predicateID, TypeID: typeID, SignerID: st.signerID, KeyID: st.keyID,
		Event: r.Record.Event, Envelope: r.Envelope, Assertion: r.assertion, AssertionDigest: r.assertionDigest,
		Verdicts: r.verdicts,
	})
}

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
