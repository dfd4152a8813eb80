package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

// Record records a verified attestation and all that it brings about: the
// commit where it is new, its state, the events. Of a statement that is
// recorded already it returns the first record, unless the same signer has
// said something newer: then CodeStaleStatement. keyringVersion is that of the
// keyring that verified it; ErrKeyringChanged where that is not the latest.
func (s *Store) Record(ctx context.Context, org, repo string, a *ledger.Attestation, keyringVersion int64) (rec ledger.AttestationRecord, created bool, err error) {
	var index *radarindex.Index
	if a.Result.Status != ledger.Pass {
		if index, err = s.indexForReturn(ctx, org, repo, a.Commit); err != nil {
			return rec, false, err
		}
	}
	err = s.write(ctx, func(t *tx) error {
		t.index = index
		r, err := findRepo(t.conn, org, repo)
		if err != nil {
			return err
		}
		if r.keyringVersion != keyringVersion {
			return ErrKeyringChanged
		}
		signerID, err := s.names.signerID(t, r.orgID, a.Signer.DN)
		if err != nil {
			return err
		}
		known, err := s.findStatement(t, r, signerID, a)
		if err != nil {
			return err
		}
		if known != nil {
			rec = *known
			return nil
		}
		created = true
		rec, err = s.record(t, r, signerID, a)
		return err
	})
	return rec, created, err
}

// indexForReturn refreshes where the radar looks for a commit that may be about
// to be rolled back, so that the writer has not to read all tips for it.
func (s *Store) indexForReturn(ctx context.Context, org, repo, sha string) (*radarindex.Index, error) {
	var repoID int64
	err := s.read(ctx, func(c *conn) error {
		r, err := findRepo(c, org, repo)
		if err != nil {
			return err
		}
		var deployedTip bool
		const isDeployed = "SELECT EXISTS (SELECT 1 FROM commits c JOIN tips t ON t.commit_id = c.id " +
			"WHERE c.repo_id = ? AND c.sha = ? AND t.flight = ?)"
		err = c.row(isDeployed, r.id, sha, radarindex.Deployed).Scan(&deployedTip)
		if deployedTip {
			repoID = r.id
		}
		return err
	})
	if err != nil || repoID == 0 {
		return nil, err
	}
	return s.indexIfOn(ctx, repoID)
}

// findStatement looks for a record of the same statement by the same signer.
func (s *Store) findStatement(t *tx, r repoRow, signerID int64, a *ledger.Attestation) (*ledger.AttestationRecord, error) {
	var id, commitID, predicateID, latest int64
	err := t.row("SELECT id, commit_id, predicate_id FROM attestations WHERE repo_id = ? AND signer_id = ? AND payload_digest = ?",
		r.id, signerID, a.PayloadDigest[:]).Scan(&id, &commitID, &predicateID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find statement: %w", err)
	}
	err = t.row("SELECT attestation_id FROM latest WHERE commit_id = ? AND predicate_id = ? AND signer_id = ?", commitID, predicateID, signerID).Scan(&latest)
	if err != nil {
		return nil, fmt.Errorf("find latest: %w", err)
	}
	known, err := s.findAttestation(t.conn, r, id)
	if err != nil || latest == id {
		return &known, err
	}
	newer, err := s.findAttestation(t.conn, r, latest)
	if err != nil {
		return nil, err
	}
	return nil, ledger.Errorf(ledger.CodeStaleStatement,
		"this statement is recorded as %s, and %s has replaced it: say something new, such as another startedOn and finishedOn", known.ID, newer.ID)
}

func (s *Store) record(t *tx, r repoRow, signerID int64, a *ledger.Attestation) (rec ledger.AttestationRecord, err error) {
	c, _, err := t.findOrAddCommit(r, a.Commit)
	if err != nil {
		return rec, err
	}
	d, err := s.deriver(t.conn, r)
	if err != nil {
		return rec, err
	}
	c, f, err := t.settleDue(d, c)
	if err != nil {
		return rec, err
	}
	rec = ledger.AttestationRecord{
		Org: r.org, Repo: r.name, Commit: a.Commit,
		Predicate: a.Predicate, PredicateType: a.PredicateType,
		Identity: a.Signer.DN.String(), Signer: a.Signer.DN.CN,
		Result: a.Result, RecordedAt: t.now,
		PayloadDigest: digestText(a.PayloadDigest[:]),
	}
	if rec.ID, err = t.ids.next(attestationPrefix, t.now); err != nil {
		return rec, err
	}
	if rec.Event, err = t.attestationEvent(r, rec); err != nil {
		return rec, err
	}
	e := ledger.Evidence{
		Attestation: rec.ID, Predicate: a.Predicate, Signer: a.Signer.DN, Emails: a.Signer.Emails,
		Status: a.Result.Status, RecordedAt: t.now, WhilePromotable: d.isPromotable(c, f, t.now),
	}
	if err := s.insertAttestation(t, r, c, signerID, a, rec, e); err != nil {
		return rec, err
	}
	c.attestations++
	_, err = t.settle(d, c, d.with(f, e), ledger.Cause{Type: ledger.CauseAttestation, ID: e.Attestation})
	return rec, err
}

// isPromotable reports whether all is met that a commit needs to be
// PROMOTABLE: of one that is DEPLOYED, and stays so, its state does not tell.
func (d deriver) isPromotable(c commitRow, f ledger.Facts, now ledger.Time) bool {
	if c.state != ledger.Deployed {
		return c.state == ledger.Promotable
	}
	f.Deployed = false
	return d.contract.Derive(f, now).State >= ledger.Promotable
}

// with returns the facts after e was recorded: it takes the place of what its
// signer said before of that predicate, and may be a rollback.
func (d deriver) with(f ledger.Facts, e ledger.Evidence) ledger.Facts {
	f.Attested = true
	f.Evidence = slices.DeleteFunc(f.Evidence, func(old ledger.Evidence) bool {
		return old.Predicate == e.Predicate && old.Signer == e.Signer
	})
	f.Evidence = append(f.Evidence, e)
	f.Deployed = f.Deployed && !d.contract.RollsBack(f, e)
	return f
}

func (s *Store) insertAttestation(t *tx, r repoRow, c commitRow, signerID int64, a *ledger.Attestation, rec ledger.AttestationRecord, e ledger.Evidence) error {
	predicateID, err := s.names.predicateID(t, r.orgID, a.Predicate)
	if err != nil {
		return err
	}
	id, err := t.insert(`
INSERT INTO attestations (attestation_id, repo_id, commit_id, predicate_id, signer_id, own_type, status, duration_ms, recorded_at,
  payload_digest, identity_id, emails, while_promotable, event_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		rec.ID, r.id, c.id, predicateID, signerID, a.PredicateType == ledger.ResultPredicateType, e.Status, a.Result.DurationMS, e.RecordedAt,
		a.PayloadDigest[:], a.Signer.Identity, strings.Join(e.Emails, "\n"), e.WhilePromotable, rec.Event)
	if err != nil {
		return fmt.Errorf("insert attestation: %w", err)
	}
	if _, err := t.exec("INSERT INTO envelopes (attestation_id, body) VALUES (?, ?)", id, a.Envelope); err != nil {
		return fmt.Errorf("insert envelope: %w", err)
	}
	if _, err := t.exec("INSERT OR REPLACE INTO latest (commit_id, predicate_id, signer_id, attestation_id) VALUES (?, ?, ?, ?)", c.id, predicateID, signerID, id); err != nil {
		return fmt.Errorf("keep latest: %w", err)
	}
	t.count(repoAttestations, r.id, 1)
	t.count(predicateAttestations, predicateID, 1)
	return nil
}

func digestText(digest []byte) string { return "sha256:" + hex.EncodeToString(digest) }

// The id comes last, for the cursor.
const selectAttestation = `
SELECT a.attestation_id, c.sha, a.predicate_id, a.own_type, a.signer_id, a.status, a.duration_ms, a.recorded_at, a.payload_digest, a.event_id, a.id
FROM attestations a CROSS JOIN commits c ON c.id = a.commit_id `

// attestationScanner returns what makes records of selectAttestation's rows.
func attestationScanner(c *conn, n *names, r repoRow) func(scanner) (keyed[ledger.AttestationRecord], error) {
	return func(row scanner) (a keyed[ledger.AttestationRecord], err error) {
		var predicateID, signerID int64
		var ownType bool
		var digest []byte
		v := &a.row
		if err = row.Scan(&v.ID, &v.Commit, &predicateID, &ownType, &signerID, &v.Result.Status, &v.Result.DurationMS,
			&v.RecordedAt, &digest, &v.Event, &a.id); err != nil {
			return a, err
		}
		if v.Predicate, err = n.predicate(c, predicateID); err != nil {
			return a, err
		}
		signer, err := n.signer(c, signerID)
		v.Org, v.Repo = r.org, r.name
		v.Identity, v.Signer = signer.String(), signer.CN
		v.PayloadDigest = digestText(digest)
		v.PredicateType = v.Predicate
		if ownType {
			v.PredicateType = ledger.ResultPredicateType
		}
		return a, err
	}
}

func (s *Store) findAttestation(c *conn, r repoRow, id int64) (ledger.AttestationRecord, error) {
	a, err := attestationScanner(c, s.names, r)(c.row(selectAttestation+"WHERE a.id = ?", id))
	if err != nil {
		return a.row, fmt.Errorf("read attestation: %w", err)
	}
	return a.row, nil
}

// Attestation returns the record of one attestation.
func (s *Store) Attestation(ctx context.Context, org, repo, id string) (ledger.AttestationRecord, error) {
	var rec ledger.AttestationRecord
	err := s.readAttestation(ctx, org, repo, id, func(c *conn, a keyed[ledger.AttestationRecord]) error {
		rec = a.row
		return nil
	})
	return rec, err
}

// Envelope returns the bytes that were posted for one attestation.
func (s *Store) Envelope(ctx context.Context, org, repo, id string) ([]byte, error) {
	var body []byte
	err := s.readAttestation(ctx, org, repo, id, func(c *conn, a keyed[ledger.AttestationRecord]) error {
		return c.row("SELECT body FROM envelopes WHERE attestation_id = ?", a.id).Scan(&body)
	})
	return body, err
}

// readAttestation finds an attestation by its id. There is no index of ids: an
// id holds the time at which it was made, which is that of its record.
func (s *Store) readAttestation(ctx context.Context, org, repo, id string, visit func(*conn, keyed[ledger.AttestationRecord]) error) error {
	return s.read(ctx, func(c *conn) error {
		r, err := findRepo(c, org, repo)
		if err != nil {
			return err
		}
		at, ok := idTime(attestationPrefix, id)
		if !ok {
			return ledger.Errorf(ledger.CodeNotFound, "there is no attestation %s", id)
		}
		a, err := attestationScanner(c, s.names, r)(c.row(selectAttestation+"WHERE a.repo_id = ? AND a.recorded_at = ? AND a.attestation_id = ?", r.id, at, id))
		if err != nil {
			return missing(err, "attestation %s", id)
		}
		return visit(c, a)
	})
}
