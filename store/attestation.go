package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
	"github.com/ledgerd/ledgerd/store/txn"
)

// attestationColumns are the columns of an attestation a of a commit c, for
// scanAttestation. The row id, the last one, is for the cursor. The column recorded_at has the time
// in the id, which is not always that of recording.
const attestationColumns = `a.attestation_id, c.sha, a.predicate_id, a.type_id, a.signer_id, a.status,
  a.duration_ms, ` + ageOf + `, a.payload_digest,
  a.event_id, a.slot, a.assertion, a.reason, a.id`

const selectAttestation = "SELECT " + attestationColumns + `
FROM attestations a /*+ordered*/ JOIN commits c ON c.id = a.commit_id `

// An attestationRow is an attestation record with its row id and payload digest.
type attestationRow struct {
	rec    txn.Keyed[ledger.AttestationRecord]
	digest []byte // of the payload
}

// scanAttestation scans a row of the columns in before, followed by
// attestationColumns. It calls repo, which returns the attestation's repo, after the
// scan.
func (rd reader) scanAttestation(row txn.Scanner, repo func() txn.Repo, before ...any) (a attestationRow, err error) {
	var predicateID, typeID, signerID, recordedAt int64
	var status string // plain types are cheaper to scan
	var assertion []byte
	v := &a.rec.Row
	err = row.Scan(append(before, &v.ID, &v.Commit, &predicateID, &typeID, &signerID, &status, &v.Result.DurationMS,
		&recordedAt, &a.digest, &v.Event, &v.Slot, &assertion, &v.Reason, &a.rec.ID)...)
	if err != nil {
		return a, err
	}

	v.Result.Status, v.RecordedAt = ledger.Status(status), ledger.Time(recordedAt)
	if v.Predicate, err = rd.s.Signers.Predicate(rd.Reader, predicateID); err != nil {
		return a, err
	}
	if v.PredicateType, err = rd.s.Signers.PredicateType(rd.Reader, typeID); err != nil {
		return a, err
	}
	v.Rollout = rolloutOf(v)
	signer, err := rd.s.Signers.Signer(rd.Reader, signerID)

	r := repo()
	v.Org, v.Repo = r.Org, r.Name
	v.Identity, v.Signer = signer.Text, signer.DN.CN
	v.PayloadDigest = digestText(a.digest)
	if assertion != nil {
		v.AssertionDigest = digestText(assertion)
	}
	return a, err
}

// rolloutOf returns what a record says of a deployment: of its own type, only the statement of an
// attempt that failed has no outcome.
func rolloutOf(v *ledger.AttestationRecord) string {
	if _, ok := ledger.EnvironmentOf(v.Predicate); ok && v.PredicateType == ledger.ResultType &&
		v.Result.Status == ledger.Recorded {
		return ledger.RolloutFailed
	}
	return ""
}

// attestationScanner returns a scan function for rows of selectAttestation.
func (rd reader) attestationScanner(r txn.Repo) func(txn.Scanner) (txn.Keyed[ledger.AttestationRecord], error) {
	return func(row txn.Scanner) (txn.Keyed[ledger.AttestationRecord], error) {
		a, err := rd.scanAttestation(row, func() txn.Repo { return r })
		return a.rec, err
	}
}

// Attestation returns an attestation by id.
func (s *Store) Attestation(ctx context.Context, org, repo, id string) (ledger.AttestationRecord, error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (ledger.AttestationRecord, error) {
		a, err := rd.findAttestation(org, repo, id)
		if err != nil {
			return a.Row, err
		}
		list := []txn.Keyed[ledger.AttestationRecord]{a}
		if err = rd.addVerification(list); err == nil {
			err = rd.addCertificate(list[0])
		}
		return list[0].Row, err
	})
}

// addCertificate adds to an attestation what its keyless certificate says of its signer. The
// certificate is in the envelope.
func (rd reader) addCertificate(a txn.Keyed[ledger.AttestationRecord]) error {
	v := a.Row.Verification
	if v == nil || v.EnvelopePruned {
		return nil
	}
	var isKeyless bool
	err := rd.Row("SELECT EXISTS (SELECT 1 FROM identities WHERE identity_id = ? AND kind = ?)", v.IdentityID,
		identity.SigstoreIdentity).Scan(&isKeyless)
	if err != nil || !isKeyless {
		return err
	}
	body, err := rd.envelope(a.ID)
	if err == nil {
		v.Certificate = attestation.CertificateOf(body)
	}
	return err
}

// Envelope returns the envelope of an attestation, byte for byte as it was posted.
func (s *Store) Envelope(ctx context.Context, org, repo, id string) ([]byte, error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) ([]byte, error) {
		a, err := rd.findAttestation(org, repo, id)
		if err != nil {
			return nil, err
		}
		return rd.envelope(a.ID)
	})
}

// Assertion returns what a passkey has signed to confirm an attestation: the JSON text of a
// [passkey.Assertion].
func (s *Store) Assertion(ctx context.Context, org, repo, id string) ([]byte, error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (text []byte, err error) {
		a, err := rd.findAttestation(org, repo, id)
		if err != nil {
			return nil, err
		}
		err = rd.Row("SELECT assertion FROM envelopes WHERE attestation_id = ?", a.ID).Scan(&text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read assertion: %w", err)
		case text == nil:
			return nil, ledger.Errorf(ledger.CodeNotFound, "attestation %s was not confirmed by a passkey", id)
		}
		return text, nil
	})
}

// envelope returns the envelope of an attestation, as it was posted. It returns CodePruned if it
// was pruned.
func (rd reader) envelope(row int64) ([]byte, error) {
	body, payload, at, err := rd.packed(row)
	if err != nil || !at.Valid {
		return body, err
	}
	return envelope.Unpack(body, payload, int(at.Int64)), nil
}

// packed returns the envelope of an attestation as [envelope.Packed] has it. It returns CodePruned
// if it was pruned.
func (rd reader) packed(row int64) (body, payload []byte, at sql.NullInt64, err error) {
	err = rd.Row("SELECT body, payload, payload_at FROM envelopes WHERE attestation_id = ?", row).
		Scan(&body, &payload, &at)
	switch {
	case err != nil:
		return nil, nil, at, fmt.Errorf("read envelope: %w", err)
	case envelope.IsPruned(at):
		return nil, nil, at, ledger.Errorf(ledger.CodePruned,
			"the envelope was pruned: the record of the attestation and its digests are kept")
	}
	return body, payload, at, nil
}

// isPruned reports whether an error says that something was pruned.
func isPruned(err error) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && e.Code == ledger.CodePruned
}

// prunedDigest returns the digest of an envelope that was pruned, and the size of the digest.
func (rd reader) prunedDigest(row int64) (digest string, size int, err error) {
	var sum []byte
	if err := rd.Row("SELECT body FROM envelopes WHERE attestation_id = ?", row).Scan(&sum); err != nil {
		return "", 0, fmt.Errorf("read the digest of an envelope: %w", err)
	}
	return digestText(sum), len(sum), nil
}

// findAttestation finds an attestation by id. There is no index on ids, so it uses
// the index on the time of recording, which is the creation time in the id.
func (rd reader) findAttestation(org, repo, id string) (a txn.Keyed[ledger.AttestationRecord], err error) {
	r, err := rd.FindRepo(org, repo)
	if err != nil {
		return a, err
	}
	at, ok := txn.IDTime(txn.AttestationPrefix, id)
	if !ok {
		return a, ledger.Errorf(ledger.CodeNotFound, "attestation %s not found", id)
	}
	a, err = rd.attestationScanner(r)(rd.Row(selectAttestation+`
WHERE a.repo_id = ? AND a.recorded_at = ? AND a.attestation_id = ?`, r.ID, at, id))
	if err != nil {
		return a, txn.Missing(err, "attestation %s not found", id)
	}
	list := []txn.Keyed[ledger.AttestationRecord]{a}
	err = rd.markDistrusted(r, list)
	return list[0], err
}

func digestText(digest []byte) string { return "sha256:" + hex.EncodeToString(digest) }
