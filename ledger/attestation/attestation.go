// Package attestation parses and creates DSSE envelopes, Sigstore bundles, and the
// in-toto statements in them. The table in mapping.go says how statements of each predicate type are read.
package attestation

import (
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// An Attestation is a verified statement about a commit.
type Attestation struct {
	Outcome
	Commit        string
	PredicateType string
	// Repo is the repo that the statement is for, as org/name. It is empty if the
	// statement does not say so.
	Repo   string
	Signer identity.Signer
	// Exception is what an exception says. It is nil for statements of other types.
	Exception *Exception
	// Artifacts are the digests that the statement links with the commit.
	Artifacts Artifacts
	// Merge is what a claim of a merge says. It is nil for statements of other types.
	Merge *Merge
	// Rollback is what a rollback says. It is nil for statements of other types.
	Rollback *Rollback
	// Baseline is what a baseline says. It is nil for statements of other types.
	Baseline *Baseline
	// Changes is what a change record says. It is nil for statements of other types.
	Changes *Changes
	// Again is why a commit is deployed that was rolled back. It is empty for other statements.
	Again string
	// Base is the commit since which the changes were reviewed: a review is about the commits that Commit has and Base
	// has not. Of a claim of a merge, it is the commit of the mainline, and of a change record, the one with which the
	// commit was compared. It is empty in other statements, and if a review is about its commit alone. It counts only in
	// a new statement: earlier releases did not read it.
	Base string
	// IsPlaced reports whether the meaning of the statement depends on the web URL of the repo.
	IsPlaced bool
	// Payload is the signed bytes of the statement.
	Payload []byte
	// PayloadDigest is the SHA-256 of the payload bytes.
	PayloadDigest [sha256.Size]byte
	// Envelope is the body passed to Verify, not a copy.
	Envelope []byte
	// Assertion is the document of the passkey that has confirmed the payload, byte for byte. It is
	// nil without one. Verify leaves it nil: it is for callers who have verified the document.
	Assertion []byte
	// Passkey is the ID of that passkey. It must not have been removed when the attestation is recorded.
	Passkey string

	fault error // of a base that is malformed
}

// IsMalformed reports whether an error of Verify is about the form of a body, with any keys, and not
// about what it says.
func IsMalformed(err error) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && (e.Code == ledger.CodeInvalidJSON || e.Code == ledger.CodeInvalidEnvelope)
}

// Verify parses an envelope or bundle, verifies that one of the org's identities signed
// it and may attest its predicate, and returns its statement. Certificates must be valid at the time now; times in
// the envelope are ignored. A keyless certificate must be valid at the time that its bundle proves. Every error is a
// *ledger.Error.
func Verify(body []byte, keys *identity.Keyring, now ledger.Time) (*Attestation, error) {
	return Place{}.Verify(body, keys, now)
}

// Verify is like the function Verify, for a statement for the repo at the place.
func (p Place) Verify(body []byte, keys *identity.Keyring, now ledger.Time) (*Attestation, error) {
	env, err := ParseEnvelope(body)
	if err != nil {
		return nil, err
	}
	vouchers, err := keys.Verify(&env.Signed, now.Std())
	if err != nil {
		return nil, err
	}

	st, err := parseStatement(env.Payload, p)
	if err != nil {
		return nil, explainUnread(env.Payload, err)
	}
	if st.outcome.FinishedAt > now.Add(maxAhead) {
		return nil, ledger.Errorf(ledger.CodeInvalidStatement,
			"the statement says that it finished at %s, which is in the future: it is %s (check the signer's clock)",
			st.outcome.FinishedAt, now)
	}
	signer, err := vouchers.Signer(st.outcome.Predicate, st.commit)
	if err != nil {
		return nil, err
	}
	a := &Attestation{
		Outcome:       st.outcome,
		Commit:        st.commit,
		PredicateType: st.predicateType,
		Repo:          st.repo,
		Signer:        signer,
		Artifacts:     st.artifacts,
		Rollback:      st.rollback,
		Baseline:      st.baseline,
		Changes:       st.changes,
		Again:         st.again,
		IsPlaced:      st.isPlaced,
		Payload:       env.Payload,
		PayloadDigest: sha256.Sum256(env.Payload),
		Envelope:      body,
	}
	switch a.PredicateType {
	case ExceptionPredicateType:
		a.Exception = &st.exception
		err = a.Exception.checkEnd(now)
	case MergePredicateType:
		a.Merge = st.merge
		err = a.Merge.checkCommit(a.Commit)
	case RollbackPredicateType:
		err = a.Rollback.checkCommit(a.Commit)
	case ledger.ChangesType:
		err = a.Changes.checkCommit(a.Commit)
	}
	if err != nil {
		return nil, err
	}
	a.readBase()
	return a, nil
}

// Reason returns why the commit was rolled back, is a baseline, or is deployed again. It is empty for other
// statements.
func (a *Attestation) Reason() string {
	switch {
	case a.Rollback != nil:
		return a.Rollback.Reason
	case a.Baseline != nil:
		return a.Baseline.Reason
	}
	return a.Again
}

// CheckRepo refuses a statement that is for another repo.
func (a *Attestation) CheckRepo(org, repo string) error {
	if a.Repo == "" || strings.EqualFold(a.Repo, org+"/"+repo) {
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeWrongRepo, "predicate.repo", "the statement is for %s, not for %s/%s",
		a.Repo, org, repo)
}

// CertifiedKey returns the digest of the signing key, as in [identity.Signer], from the
// certificate of an envelope. Without a certificate, ok is false; the signing key is then
// the key of the signer's identity. CertifiedKey does not verify the envelope: [Verify]
// must have accepted it before.
func CertifiedKey(envelope []byte) (digest [sha256.Size]byte, ok bool, err error) {
	env, err := ParseEnvelope(envelope)
	if err != nil || len(env.Certificates) == 0 {
		return digest, false, err
	}
	digest, _, err = identity.DigestKey(env.Certificates[0].PublicKey)
	return digest, err == nil, err
}

// CertificateOf returns what the keyless certificate of an envelope says of its signer; nil if the
// envelope has no such certificate. [Verify] must have accepted the envelope before.
func CertificateOf(envelope []byte) *ledger.SigstoreCertificate {
	env, err := ParseEnvelope(envelope)
	if err != nil || len(env.Certificates) == 0 {
		return nil
	}
	c := identity.KeylessCertificate(env.Certificates[0])
	if c != nil {
		c.RunURL = forge.Web(c.RunURL)
	}
	return c
}

// CommitOf returns the commit that a statement is about.
func CommitOf(payload []byte) (string, error) {
	st, err := parseStatement(payload, Place{})
	return st.commit, err
}

// IsCommitPlaced reports whether the commit that a statement is about depends on the web URL of the repo: some
// provenance names several commits, or only that of what was run. It is false for a statement that is not valid.
func IsCommitPlaced(payload []byte) bool {
	doc, err := decodeDocument(payload)
	if err != nil {
		return false
	}
	_, b, err := doc.read(payload)
	return err == nil && doc.isCommitPlaced(&b)
}

// MergedCommits returns the commits that a claim of a merge is about: the commit, its first
// parent and the source. It does not verify the envelope. It returns nil if the envelope has
// no such claim.
func MergedCommits(envelope []byte) []string {
	payload, err := Payload(envelope)
	if err != nil {
		return nil
	}
	st, err := parseStatement(payload, Place{})
	if err != nil || st.merge == nil {
		return nil
	}
	return []string{st.commit, st.merge.Parent.SHA, st.merge.Source.SHA}
}

// CheckNew refuses a new statement for what earlier releases have recorded: a result with a predicate that is reserved
// since, and a review with a malformed base.
func (a *Attestation) CheckNew() error {
	if a.PredicateType != ResultPredicateType {
		return nil
	}
	if err := checkReserved(a.Predicate); err != nil {
		return err
	}
	return a.fault
}

// readBase sets the base of a review, or why it is malformed. The base is no part of the outcome, which is mapped again
// after an upgrade: releases that did not read it have recorded reviews with any member of this name.
func (a *Attestation) readBase() {
	switch {
	case a.Merge != nil:
		a.Base = a.Merge.Parent.SHA
	case a.Changes != nil:
		a.Base = a.Changes.Base
	case a.PredicateType == ResultPredicateType && strings.HasPrefix(a.Predicate, ledger.ReviewPrefix):
		a.Base, a.fault = baseOf(a.Payload, a.Predicate, a.Commit)
	}
}

// baseOf returns the base in the statement of a review. It is empty if the statement has none.
func baseOf(payload []byte, predicate, commit string) (string, error) {
	doc, err := decodeDocument(payload)
	if err != nil {
		return "", err
	}
	var p struct {
		Base  *string      `json:"base"`
		Other otherMembers `json:",embed"`
	}
	err = decodePredicate(payload[doc.Predicate.start:doc.Predicate.end], &p)
	if err != nil || p.Base == nil {
		return "", err
	}
	if err := checkBase(*p.Base, predicate, commit); err != nil {
		return "", err
	}
	return *p.Base, nil
}

// AsRecorded gives the statement the status with which it was recorded. It differs only for a
// failed attempt to deploy that was recorded as a failure, before rollout was read.
func (a *Attestation) AsRecorded(status ledger.Status) {
	if _, ok := ledger.EnvironmentOf(a.Predicate); ok && a.PredicateType == ResultPredicateType &&
		a.Result.Status == ledger.Recorded && status.IsFailure() {
		a.Result.Status = status
	}
}

// UnreadVersion says that a version of a predicate type is not read, so that neither its result nor a commit in it
// is known. It returns "" for other types.
func UnreadVersion(predicateType string) string {
	switch predicateType {
	case "https://slsa.dev/provenance/v0.1", "https://in-toto.io/Provenance/v0.1":
		return "the predicate of provenance v0.1 is not read (use https://slsa.dev/provenance/v1 or v0.2)"
	}
	return ""
}

// explainUnread adds to the error of a statement without a commit that the version of its type is not read.
func explainUnread(payload []byte, err error) error {
	fault, ok := errors.AsType[*ledger.Error](err)
	if !ok || fault.Code != ledger.CodeNoCommitSubject {
		return err
	}
	doc, decodeErr := decodeDocument(payload)
	if decodeErr != nil {
		return err
	}
	if why := UnreadVersion(doc.PredicateType); why != "" {
		return ledger.Errorf(fault.Code, "%s, and %s", fault.Detail, why)
	}
	return err
}
