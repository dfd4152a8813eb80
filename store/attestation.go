package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// attestationColumns are the columns that scanAttestation reads from an
// attestation a of a commit c. The row id comes last, for the cursor.
const attestationColumns = `a.attestation_id, c.sha, a.predicate_id, a.type_id, a.signer_id, a.status,
  a.duration_ms, a.recorded_at, a.payload_digest, a.event_id, a.id`

const selectAttestation = "SELECT " + attestationColumns + `
FROM attestations a /*+ordered*/ JOIN commits c ON c.id = a.commit_id `

// A foundAttestation is a record with the digest of its payload.
type foundAttestation struct {
	rec    keyed[ledger.AttestationRecord]
	digest []byte
}

// scanAttestation scans a row: first the columns in before, then the
// attestationColumns. It calls repo after the scan.
func (rd reader) scanAttestation(row scanner, repo func() repoRow, before ...any) (a foundAttestation, err error) {
	var predicateID, typeID, signerID, recordedAt int64
	var status string // plain types are cheaper to scan
	v := &a.rec.row
	err = row.Scan(append(before, &v.ID, &v.Commit, &predicateID, &typeID, &signerID, &status, &v.Result.DurationMS,
		&recordedAt, &a.digest, &v.Event, &a.rec.id)...)
	if err != nil {
		return a, err
	}
	v.Result.Status, v.RecordedAt = ledger.Status(status), ledger.Time(recordedAt)
	if v.Predicate, err = rd.predicate(predicateID); err != nil {
		return a, err
	}
	if v.PredicateType, err = rd.predicateType(typeID); err != nil {
		return a, err
	}
	signer, err := rd.signer(signerID)
	r := repo()
	v.Org, v.Repo = r.org, r.name
	v.Identity, v.Signer = signer.text, signer.dn.CN
	v.PayloadDigest = digestText(a.digest)
	return a, err
}

// attestationScanner returns a function that scans rows of selectAttestation.
func (rd reader) attestationScanner(r repoRow) func(scanner) (keyed[ledger.AttestationRecord], error) {
	return func(row scanner) (keyed[ledger.AttestationRecord], error) {
		a, err := rd.scanAttestation(row, func() repoRow { return r })
		return a.rec, err
	}
}

// Attestation returns the record of one attestation.
func (s *Store) Attestation(ctx context.Context, org, repo, id string) (ledger.AttestationRecord, error) {
	return read(ctx, s, func(rd reader) (ledger.AttestationRecord, error) {
		a, err := rd.findAttestation(org, repo, id)
		return a.row, err
	})
}

// Envelope returns the bytes that were posted for one attestation.
func (s *Store) Envelope(ctx context.Context, org, repo, id string) ([]byte, error) {
	return read(ctx, s, func(rd reader) ([]byte, error) {
		a, err := rd.findAttestation(org, repo, id)
		if err != nil {
			return nil, err
		}
		return rd.envelope(a.id)
	})
}

// envelope returns the bytes that were posted for an attestation.
func (rd reader) envelope(row int64) ([]byte, error) {
	var body, payload []byte
	var at sql.NullInt64
	err := rd.Row("SELECT body, payload, payload_at FROM envelopes WHERE attestation_id = ?", row).
		Scan(&body, &payload, &at)
	if err != nil {
		return nil, fmt.Errorf("read envelope: %w", err)
	}
	if !at.Valid {
		return body, nil
	}
	return unpack(body, payload, int(at.Int64)), nil
}

// findAttestation finds an attestation by its id. Ids have no index: an id
// contains its creation time, which is also the time of the record.
func (rd reader) findAttestation(org, repo, id string) (a keyed[ledger.AttestationRecord], err error) {
	r, err := rd.findRepo(org, repo)
	if err != nil {
		return a, err
	}
	at, ok := idTime(attestationPrefix, id)
	if !ok {
		return a, ledger.Errorf(ledger.CodeNotFound, "attestation %s not found", id)
	}
	a, err = rd.attestationScanner(r)(rd.Row(selectAttestation+`
WHERE a.repo_id = ? AND a.recorded_at = ? AND a.attestation_id = ?`, r.id, at, id))
	return a, missing(err, "attestation %s not found", id)
}

func digestText(digest []byte) string { return "sha256:" + hex.EncodeToString(digest) }
