package facts

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
	"github.com/ledgerd/ledgerd/store/txn"
)

// AttestationColumns are the columns of an attestation a of a commit c, for
// ScanAttestation. The row id, the last one, is for the cursor. The column recorded_at has the time
// in the id, which is not always that of recording.
const AttestationColumns = `a.attestation_id, c.sha, a.predicate_id, a.type_id, a.signer_id, a.status,
  a.duration_ms, ` + AgeOf + `, a.payload_digest,
  a.event_id, a.slot, a.assertion, a.reason, a.base, a.id`

// SelectAttestation selects attestations a, for a scanner of the AttestationColumns.
const SelectAttestation = "SELECT " + AttestationColumns + `
FROM attestations a /*+ordered*/ JOIN commits c ON c.id = a.commit_id `

// An AttestationRow is an attestation record with its row id and payload digest.
type AttestationRow struct {
	Record txn.Keyed[ledger.AttestationRecord]
	Digest []byte // of the payload
}

// ScanAttestation scans a row of the columns in before, followed by
// AttestationColumns. It calls repo, which returns the attestation's repo, after the
// scan.
func (fa *Facts) ScanAttestation(rd txn.Reader, row txn.Scanner, repo func() txn.Repo,
	before ...any) (a AttestationRow, err error) {
	var predicateID, typeID, signerID, recordedAt int64
	var status string // plain types are cheaper to scan
	var assertion []byte
	v := &a.Record.Row
	err = row.Scan(append(before, &v.ID, &v.Commit, &predicateID, &typeID, &signerID, &status, &v.Result.DurationMS,
		&recordedAt, &a.Digest, &v.Event, &v.Slot, &assertion, &v.Reason, &v.Base, &a.Record.ID)...)
	if err != nil {
		return a, err
	}

	v.Result.Status, v.RecordedAt = ledger.Status(status), ledger.Time(recordedAt)
	if v.Predicate, err = fa.signers.Predicate(rd, predicateID); err != nil {
		return a, err
	}
	if v.PredicateType, err = fa.signers.PredicateType(rd, typeID); err != nil {
		return a, err
	}
	v.Rollout = RolloutOf(v)
	signer, err := fa.signers.Signer(rd, signerID)

	r := repo()
	v.Org, v.Repo = r.Org, r.Name
	v.Identity, v.Signer = signer.Text, signer.DN.CN
	v.PayloadDigest = DigestText(a.Digest)
	if assertion != nil {
		v.AssertionDigest = DigestText(assertion)
	}
	return a, err
}

// RolloutOf returns what a record says of a deployment: of its own type, only the statement of an
// attempt that failed has no outcome.
func RolloutOf(v *ledger.AttestationRecord) string {
	if _, ok := ledger.EnvironmentOf(v.Predicate); ok && v.PredicateType == ledger.ResultType &&
		v.Result.Status == ledger.Recorded {
		return ledger.RolloutFailed
	}
	return ""
}

// AttestationScanner returns a scan function for rows of SelectAttestation.
func (fa *Facts) AttestationScanner(rd txn.Reader, r txn.Repo) func(txn.Scanner) (txn.Keyed[ledger.AttestationRecord],
	error) {
	return func(row txn.Scanner) (txn.Keyed[ledger.AttestationRecord], error) {
		a, err := fa.ScanAttestation(rd, row, func() txn.Repo { return r })
		return a.Record, err
	}
}

// Attestation returns an attestation by id.
func (fa *Facts) Attestation(ctx context.Context, org, repo, id string) (ledger.AttestationRecord, error) {
	return txn.Read(ctx, fa.db, txn.ByOrg(org), func(rd txn.Reader) (ledger.AttestationRecord, error) {
		a, err := fa.findAttestation(rd, org, repo, id)
		if err != nil {
			return a.Row, err
		}
		list := []txn.Keyed[ledger.AttestationRecord]{a}
		if err = AddVerification(rd, list); err == nil {
			err = addCertificate(rd, list[0])
		}
		return list[0].Row, err
	})
}

// addCertificate adds to an attestation what its keyless certificate says of its signer. The
// certificate is in the envelope.
func addCertificate(rd txn.Reader, a txn.Keyed[ledger.AttestationRecord]) error {
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
	body, err := Envelope(rd, a.ID)
	if err == nil {
		v.Certificate = attestation.CertificateOf(body)
	}
	return err
}

// Envelope returns the envelope of an attestation, byte for byte as it was posted.
func (fa *Facts) Envelope(ctx context.Context, org, repo, id string) ([]byte, error) {
	return txn.Read(ctx, fa.db, txn.ByOrg(org), func(rd txn.Reader) ([]byte, error) {
		a, err := fa.findAttestation(rd, org, repo, id)
		if err != nil {
			return nil, err
		}
		return Envelope(rd, a.ID)
	})
}

// Assertion returns what a passkey has signed to confirm an attestation: the JSON text of a
// [passkey.Assertion].
func (fa *Facts) Assertion(ctx context.Context, org, repo, id string) ([]byte, error) {
	return txn.Read(ctx, fa.db, txn.ByOrg(org), func(rd txn.Reader) (text []byte, err error) {
		a, err := fa.findAttestation(rd, org, repo, id)
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

// Envelope returns the envelope of an attestation, as it was posted. It returns CodePruned if it
// was pruned.
func Envelope(rd txn.Reader, row int64) ([]byte, error) {
	body, payload, at, err := Packed(rd, row)
	if err != nil || !at.Valid {
		return body, err
	}
	return envelope.Unpack(body, payload, int(at.Int64)), nil
}

// Packed returns the envelope of an attestation as [envelope.Packed] has it. It returns CodePruned
// if it was pruned.
func Packed(rd txn.Reader, row int64) (body, payload []byte, at sql.NullInt64, err error) {
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

// PruneEnvelope deletes the envelope of an attestation, and keeps its digest. It is a no-op if it was pruned before.
func PruneEnvelope(t *txn.Tx, row int64) error {
	whole, err := Envelope(t.Reader, row)
	if IsPruned(err) {
		return nil
	}
	if err != nil {
		return err
	}
	digest := sha256.Sum256(whole)
	_, err = t.Exec("UPDATE envelopes SET body = ?, payload = NULL, payload_at = ? WHERE attestation_id = ?",
		digest[:], envelope.PrunedAt, row)
	if err != nil {
		return fmt.Errorf("prune an envelope: %w", err)
	}
	return nil
}

// IsPruned reports whether an error says that something was pruned.
func IsPruned(err error) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && e.Code == ledger.CodePruned
}

// PrunedDigest returns the digest of an envelope that was pruned, and the size of the digest.
func PrunedDigest(rd txn.Reader, row int64) (digest string, size int, err error) {
	var sum []byte
	if err := rd.Row("SELECT body FROM envelopes WHERE attestation_id = ?", row).Scan(&sum); err != nil {
		return "", 0, fmt.Errorf("read the digest of an envelope: %w", err)
	}
	return DigestText(sum), len(sum), nil
}

// findAttestation finds an attestation by id. There is no index on ids, so it uses
// the index on the time of recording, which is the creation time in the id.
func (fa *Facts) findAttestation(rd txn.Reader, org, repo, id string) (a txn.Keyed[ledger.AttestationRecord],
	err error) {
	r, err := rd.FindRepo(org, repo)
	if err != nil {
		return a, err
	}
	at, ok := txn.IDTime(txn.AttestationPrefix, id)
	if !ok {
		return a, ledger.Errorf(ledger.CodeNotFound, "attestation %s not found", id)
	}
	a, err = fa.AttestationScanner(rd, r)(rd.Row(SelectAttestation+`
WHERE a.repo_id = ? AND a.recorded_at = ? AND a.attestation_id = ?`, r.ID, at, id))
	if err != nil {
		return a, txn.Missing(err, "attestation %s not found", id)
	}
	list := []txn.Keyed[ledger.AttestationRecord]{a}
	err = MarkDistrusted(rd, r, list)
	return list[0], err
}

// DigestText returns a SHA-256 as the API has it.
func DigestText(digest []byte) string { return "sha256:" + hex.EncodeToString(digest) }

// DigestKey returns a digest as stored: its length says which one it is.
func DigestKey(digest string) []byte {
	_, digits, _ := strings.Cut(digest, ":")
	key, _ := hex.DecodeString(digits) // it has been parsed
	return key
}

// maxRunPayload is the maximum size in bytes of a payload that is searched for the address
// of its run. Longer ones are not read.
const maxRunPayload = "16384"

// AddVerification adds to attestations how their signatures were verified. Each may be in
// the list once.
func AddVerification(rd txn.Reader, list []txn.Keyed[ledger.AttestationRecord]) error {
	rows := make([]any, len(list))
	places := make(map[int64]int, len(list))
	for i, a := range list {
		rows[i], places[a.ID] = a.ID, i
	}

	err := rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var digest, payload []byte
		var at sql.NullInt64
		v := &ledger.Verification{}
		if err := row.Scan(&id, &digest, &v.IdentityID, &payload, &at); err != nil {
			return err
		}
		v.EnvelopePruned = envelope.IsPruned(at)
		v.Key, v.RunURL = hex.EncodeToString(digest), attestation.RunOf(payload)
		list[places[id]].Row.Verification = v
		return nil
	}, `
SELECT a.id, k.digest, a.identity_id, CASE WHEN length(e.payload) <= `+maxRunPayload+` THEN e.payload END,
  e.payload_at
FROM attestations a /*+ordered*/ JOIN keys k ON k.id = a.key_id /*+ordered*/ JOIN envelopes e ON e.attestation_id = a.id
WHERE a.id IN `, 1, rows)
	if err != nil {
		return fmt.Errorf("find the keys of attestations: %w", err)
	}
	return nil
}
