package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Attest verifies an attestation with the keyring of the org, and records it like Record. If the
// keyring changes before it is recorded, Attest verifies it again.
func (s *Store) Attest(
	ctx context.Context, org, repo string, verify Verify,
) (rec ledger.AttestationRecord, created bool, err error) {
	a, version, err := s.verify(ctx, org, verify)
	if err != nil {
		return rec, false, err
	}
	r := newRecording(org, repo, a, version)
	r.verify = verify
	return s.record(ctx, r)
}

// Record records a verified attestation and its effects: the commit if it is new, its
// state and the events. If the statement is already recorded, it returns that record and
// false, or CodeStaleStatement if the same signer has since attested something else for
// the predicate. keyringVersion is the version of the keyring that verified the
// attestation; if it is not the latest, Record returns ErrKeyringChanged.
func (s *Store) Record(
	ctx context.Context, org, repo string, a *attestation.Attestation, keyringVersion int64,
) (rec ledger.AttestationRecord, created bool, err error) {
	return s.record(ctx, newRecording(org, repo, a, keyringVersion))
}

// record writes a recording. Before, it evaluates the expressions of the contract that it
// takes for active.
func (s *Store) record(ctx context.Context, r *recording) (rec ledger.AttestationRecord, created bool, err error) {
	if err := cmp.Or(r.attestation.CheckRepo(r.org, r.repo), r.attestation.CheckName()); err != nil {
		return rec, false, err
	}
	key := repoKey(r.org, r.repo)
	contract, known := s.caches.active.Get(key)
	if known {
		e := r.evidence()
		if err := s.evaluateNew(ctx, r, contract.Expressions(&e)); err != nil {
			return rec, false, err
		}
	}

	if err := s.db.Admit(r.org); err != nil {
		return rec, false, err
	}
	r.by = txn.ActorOf(ctx)
	r.s = s
	err = txn.Retry(ctx, func(ctx context.Context) error {
		err := s.db.Write(ctx, sqldb.Write{Org: r.org, Set: recorder{s}, Item: r})
		return cmp.Or(err, r.err)
	})
	if known && r.contract != nil && r.contract != contract {
		s.caches.active.Put(key, r.contract)
	}
	r.rec.Unlinked = r.attestation.Artifacts.Left
	return r.rec, r.created, err
}

// A recorder records the attestations that are queued at the same time as one set. It
// reads the data for all of them, processes each in the order of arrival, and writes all
// rows. So the number of SQL statements does not depend on the size of the set.
type recorder struct{ store *Store }

// WriteAll implements sqldb.Set.
func (r recorder) WriteAll(c *sqldb.Conn, items []any) error {
	list := make([]*recording, len(items))
	for i, item := range items {
		list[i] = item.(*recording)
	}

	return r.store.inTx(c, func(t *tx) error {
		for len(list) > 0 {
			v, err := t.view(list)
			if err != nil {
				return err
			}
			if list, err = t.recordAll(v, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordAll records attestations until one of them affects other commits. It settles these,
// unless they only inherit the evidence, and returns the remaining attestations, which need a
// new view.
func (t *tx) recordAll(v *view, list []*recording) (rest []*recording, err error) {
	for i, r := range list {
		t.kernel.Actor = r.by
		if err := t.recordOne(v, r); err != nil {
			return nil, fmt.Errorf("record attestation: %w", err)
		}
		if t.s.Facts.HasWork() {
			return list[i+1:], t.s.States.Drain(t.kernel, v.repos[repoKey(r.org, r.repo)])
		}
		if v.isInherited(r, list[i+1:]) {
			return list[i+1:], nil
		}
	}
	return nil, nil
}

// recordOne records an attestation of a set, or sets r.err if the attestation is refused.
// A refused attestation adds no rows.
func (t *tx) recordOne(v *view, r *recording) error {
	r.rec, r.created, r.err = ledger.AttestationRecord{}, false, nil
	r.contract, r.merge = nil, nil
	d, err := v.deriver(r)
	if err != nil {
		r.err = err
		return nil
	}

	if id := r.attestation.Passkey; id != "" {
		if r.err, err = access.CheckPasskeyInUse(t.kernel, id); r.err != nil || err != nil {
			return err
		}
	}
	r.people, err = t.s.Signers.PeopleLike(t.kernel, d.Repo.OrgID, r.attestation.Signer, r.identity, r.keyringVersion)
	if err != nil {
		return err
	}
	key := commitKey{d.Repo.ID, r.attestation.Commit}
	s := v.commits[key]
	if s != nil {
		dup, err := t.findDuplicate(v, s, r)
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
		if r.err = policy.CheckRoom(s.Facts.Evidence, &e, r.people); r.err != nil {
			return nil
		}
	}

	r.contract = d.Contract
	if r.err = r.checkVerdicts(s); r.err != nil {
		return nil
	}
	if ok, err := t.checkMerge(v, d, s, r); err != nil || !ok {
		return err
	}
	if err := t.checkRollback(d, r); err != nil || r.err != nil {
		return err
	}
	r.created = true
	if s == nil {
		if s, err = t.s.Facts.AddCommit(t.kernel, d, r.attestation.Commit); err != nil {
			return err
		}
		v.commits[key] = s
	}

	if err := t.s.States.SettleDue(t.kernel, s, ledger.Cause{}); err != nil {
		return err
	}
	return t.addAttestation(v, s, r)
}

// findDuplicate finds the record of the same statement by the same person. It returns nil
// if the statement is new.
func (t *tx) findDuplicate(v *view, s *facts.Commit, r *recording) (*duplicate, error) {
	recorded, bar, err := t.trustedStatements(s, r, v.statements[statementKey{s.ID, r.attestation.PayloadDigest}])
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
		dup.replacedBy, err = t.replacedDeployment(s, &dup.rec)
	}
	return dup, err
}

// trustedStatements returns the records of an attestation's statement that are not
// distrusted: others do not keep it from being recorded again, but with another key. bar is
// the one that has the same.
func (t *tx) trustedStatements(
	s *facts.Commit, r *recording, recorded []statement,
) (trusted []statement, bar *duplicate, err error) {
	for _, st := range recorded {
		if !st.isDistrusted {
			trusted = append(trusted, st)
			continue
		}
		org := s.Deriver.Repo.OrgID
		signer, err := t.s.Signers.RowOf(t.Reader, signers.SignerOf(org, r.identity))
		if err != nil {
			return nil, nil, err
		}
		key, err := t.s.Signers.RowOf(t.Reader, signers.KeyOf(org, string(r.attestation.Signer.Key[:])))
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
func (t *tx) addAttestation(v *view, s *facts.Commit, r *recording) error {
	a, rec := r.attestation, &r.rec
	*rec = ledger.AttestationRecord{
		Org: s.Deriver.Repo.Org, Repo: s.Deriver.Repo.Name, Commit: a.Commit,
		Predicate: a.Predicate, PredicateType: a.PredicateType,
		Identity: r.identity, Signer: a.Signer.DN.CN,
		Result: a.Result, RecordedAt: t.Now,
		PayloadDigest: facts.DigestText(a.PayloadDigest[:]), Slot: a.Slot, AssertionDigest: passkey.Digest(a.Assertion),
		Reason: a.Reason(),
	}
	rec.Rollout = facts.RolloutOf(rec)

	var err error
	if rec.ID, err = t.kernel.NewID(s.Deriver.Repo.OrgID, txn.AttestationPrefix); err != nil {
		return err
	}
	if rec.Event, err = t.s.Journal.AppendAttestation(t.kernel, s.Deriver.Repo, *rec, r.key,
		r.envelopeDigest); err != nil {
		return err
	}

	e := r.evidence()
	e.Attestation, e.RecordedAt, e.WhilePromotable = rec.ID, t.Now, s.IsPromotable(t.Now)
	st, err := t.bufferAttestation(v, s, r, &e)
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
	if err := t.recordException(s, r, &e); err != nil {
		return err
	}
	if err := t.addMerge(v, s, r); err != nil {
		return err
	}
	environment, err := t.s.States.EnvironmentOf(t.kernel, s, &e, st.predicateID)
	if err != nil {
		return err
	}
	j := states.Judge(s, environment, e, wasDeployed)
	if err := t.s.States.Settle(t.kernel, s, r.cause()); err != nil {
		return err
	}
	rec.Violation = j.Note
	if s.State == ledger.Deployed && !wasDeployed && environment.Name == "" {
		t.s.Facts.WatchAgain(t.kernel, r.cause(), s.ID)
	}
	if err := t.recordDeployment(s, r, j); err != nil {
		return err
	}
	return t.s.States.RecordViolations(t.kernel, s, j)
}

// bufferAttestation adds the rows of an attestation to the buffers.
func (t *tx) bufferAttestation(v *view, s *facts.Commit, r *recording, e *policy.Evidence) (st statement, err error) {
	a, org := r.attestation, s.Deriver.Repo.OrgID
	var typeID int64
	st.rec = r.rec

	for _, name := range []struct {
		row *int64
		key signers.NameKey
	}{
		{&st.predicateID, signers.PredicateOf(org, a.Predicate)},
		{&typeID, signers.PredicateTypeOf(org, a.PredicateType)},
		{&st.signerID, signers.SignerOf(org, r.identity)},
		{&st.keyID, signers.KeyOf(org, string(a.Signer.Key[:]))},
	} {
		if *name.row, err = t.s.Signers.RowFor(t.kernel, name.key, a.Signer.DN); err != nil {
			return st, err
		}
	}

	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: a.Signer.Identity}
	key := signers.PersonKey{
		Signature: signers.Signature{SignerID: st.signerID, KeyID: st.keyID}, KeyringVersion: r.keyringVersion,
	}
	emails := strings.Join(e.Emails, "\n")
	by, changed, err := t.s.Signers.WhoSigned(t.kernel, org, key, a.Signer.DN.CN, emails, cause)
	if err != nil {
		return st, err
	}
	e.Person, e.Individual = by.Person, by.Individual
	if changed {
		if err := t.viewPeople(v, org, r.people, by.Person); err != nil {
			return st, err
		}
	}
	e.FinishedAt = policy.Finished(s.Facts.Evidence, e)
	e.WhilePromotable = e.WhilePromotable && s.Deriver.Contract.MayDeploy(s.Facts, *e, a.Again != "", t.Now)

	return st, t.s.Facts.InsertAttestation(t.kernel, s, facts.NewAttestation{
		Attestation: a, Evidence: e, PredicateID: st.predicateID, TypeID: typeID, SignerID: st.signerID, KeyID: st.keyID,
		Event: r.rec.Event, Envelope: r.envelope, Assertion: r.assertion, AssertionDigest: r.assertionDigest,
		Verdicts: r.verdicts,
	})
}
