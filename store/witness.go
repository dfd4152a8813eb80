package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Witnessed is the latest checkpoint of a log that this server cosigned as a witness.
type Witnessed struct {
	Origin     string
	Size       int64
	Root       tlog.Hash
	Checkpoint []byte // with the signatures of the log and of the witness
	At         ledger.Time
	WitnessMark
}

// A WitnessMark is the state of a witness: how many checkpoints it has cosigned, without
// repetitions, and a digest of them all.
type WitnessMark struct {
	Seq              int64
	Digest, Previous [sha256.Size]byte
}

// next returns the mark after a checkpoint was cosigned.
func (m WitnessMark) next(w Witnessed) WitnessMark {
	text := append([]byte("ledgerd/witness/v1\x00"), m.Digest[:]...)
	text = binary.BigEndian.AppendUint64(text, uint64(w.Size))
	text = append(append(text, w.Root[:]...), w.Origin...)
	return WitnessMark{Seq: m.Seq + 1, Digest: sha256.Sum256(text), Previous: m.Digest}
}

const selectWitnessed = "SELECT origin, size, root, checkpoint, at, seq, digest, previous FROM witnessed "

func scanWitnessed(row scanner) (w Witnessed, err error) {
	var root, digest, previous []byte
	var checkpoint string
	err = row.Scan(&w.Origin, &w.Size, &root, &checkpoint, &w.At, &w.Seq, &digest, &previous)
	if err != nil {
		return w, err
	}
	w.Checkpoint = []byte(checkpoint)
	if copy(w.Root[:], root) != len(w.Root) || copy(w.Digest[:], digest) != len(w.Digest) ||
		copy(w.Previous[:], previous) != len(w.Previous) {
		return w, fmt.Errorf("the record of the cosigned checkpoint of %s is damaged", w.Origin)
	}
	return w, nil
}

// Witnessed returns the latest cosigned checkpoint of a log. Before the first, its size
// is 0 and it has no checkpoint.
func (s *Store) Witnessed(ctx context.Context, origin string) (Witnessed, error) {
	return readLoose(ctx, s, forWrite(""), func(rd reader) (Witnessed, error) { return rd.witnessed(origin) })
}

func (rd reader) witnessed(origin string) (Witnessed, error) {
	w, err := scanWitnessed(rd.Row(selectWitnessed+"WHERE origin = ?", origin))
	if errors.Is(err, sql.ErrNoRows) {
		return Witnessed{Origin: origin}, nil
	}
	if err != nil {
		return w, fmt.Errorf("read cosigned checkpoint: %w", err)
	}
	return w, nil
}

// WitnessMark returns the mark after the latest checkpoint that was cosigned.
func (s *Store) WitnessMark(ctx context.Context) (WitnessMark, error) {
	return readLoose(ctx, s, forWrite(""), reader.witnessMark)
}

func (rd reader) witnessMark() (WitnessMark, error) {
	w, err := scanWitnessed(rd.Row(selectWitnessed + "ORDER BY seq DESC LIMIT 1"))
	if errors.Is(err, sql.ErrNoRows) {
		return WitnessMark{}, nil
	}
	if err != nil {
		return WitnessMark{}, fmt.Errorf("read the state of the witness: %w", err)
	}
	return w.WitnessMark, nil
}

// A StaleWitnessError reports that another checkpoint of the log has been cosigned.
type StaleWitnessError struct{ Size int64 }

func (e *StaleWitnessError) Error() string {
	return fmt.Sprintf("the latest cosigned checkpoint has size %d", e.Size)
}

// SaveWitnessed stores a cosigned checkpoint, if the latest one of its log still has the
// given size and root, and returns the mark after it. Otherwise it returns a
// *StaleWitnessError. If the tree has not grown, only the signatures change.
func (s *Store) SaveWitnessed(ctx context.Context, w, old Witnessed) (WitnessMark, error) {
	return write(ctx, s, "", func(t *tx) (mark WitnessMark, err error) {
		now, err := t.witnessed(w.Origin)
		if err != nil {
			return mark, err
		}
		if now.Size != old.Size || now.Root != old.Root {
			return mark, &StaleWitnessError{now.Size}
		}
		if mark, err = t.witnessMark(); err != nil {
			return mark, err
		}

		if now.Seq > 0 && w.Size == now.Size {
			_, err = t.Exec("UPDATE witnessed SET checkpoint = ?, at = ? WHERE origin = ?", string(w.Checkpoint), t.now,
				w.Origin)
		} else {
			mark = mark.next(w)
			_, err = t.Exec(`
INSERT INTO witnessed (origin, size, root, checkpoint, seq, digest, previous, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (origin) DO UPDATE SET size = excluded.size, root = excluded.root, checkpoint = excluded.checkpoint,
  seq = excluded.seq, digest = excluded.digest, previous = excluded.previous, at = excluded.at`,
				w.Origin, w.Size, w.Root[:], string(w.Checkpoint), mark.Seq, mark.Digest[:], mark.Previous[:], t.now)
		}
		if err != nil {
			return mark, fmt.Errorf("save cosigned checkpoint: %w", err)
		}
		return mark, nil
	})
}

// An EvidenceKind says why a checkpoint is not consistent with a cosigned one.
type EvidenceKind string

// The kinds of evidence.
const (
	// Forked means that the log has signed two trees of the same size.
	Forked EvidenceKind = "fork"
	// Unproved means that the submitted proof does not show that the tree has grown.
	// The sender may have sent a wrong proof.
	Unproved EvidenceKind = "unproved"
)

// maxWitnessEvidence is how much evidence of each kind is kept for a log: the first of a fork, and
// the latest without a proof.
const maxWitnessEvidence = 16

// Evidence is a checkpoint that its log has signed, but that is not consistent with what
// was cosigned.
type Evidence struct {
	Origin     string
	Kind       EvidenceKind
	Size       int64
	Root       tlog.Hash
	Checkpoint []byte // as it was submitted
	Cosigned   []byte // the checkpoint that was cosigned at that time
	At         ledger.Time
}

// KeepEvidence stores evidence, and reports whether it is new. Of each kind and log, it
// stores a limited number.
func (s *Store) KeepEvidence(ctx context.Context, e Evidence) (added bool, err error) {
	return write(ctx, s, "", func(t *tx) (bool, error) {
		var has, count int
		err := t.Row(`SELECT count(*), count(CASE WHEN size = ? AND root = ? THEN 1 END) FROM witness_evidence
WHERE origin = ? AND kind = ?`, e.Size, e.Root[:], e.Origin, string(e.Kind)).Scan(&count, &has)
		if err != nil {
			return false, fmt.Errorf("count evidence: %w", err)
		}
		if has > 0 || e.Kind == Forked && count >= maxWitnessEvidence {
			return false, nil
		}

		if count >= maxWitnessEvidence {
			if _, err := t.Exec(`DELETE FROM witness_evidence WHERE id = (SELECT min(id) FROM witness_evidence
WHERE origin = ? AND kind = ?)`, e.Origin, string(e.Kind)); err != nil {
				return false, fmt.Errorf("delete the oldest evidence: %w", err)
			}
		}
		_, err = t.Exec(`INSERT INTO witness_evidence (origin, kind, size, root, checkpoint, cosigned, at)
VALUES (?, ?, ?, ?, ?, ?, ?)`,
			e.Origin, string(e.Kind), e.Size, e.Root[:], string(e.Checkpoint), string(e.Cosigned), t.now)
		if err != nil {
			return false, fmt.Errorf("save evidence: %w", err)
		}
		return true, nil
	})
}

// Evidence returns the evidence against a log, oldest first.
func (s *Store) Evidence(ctx context.Context, origin string) ([]Evidence, error) {
	return readLoose(ctx, s, forWrite(""), func(rd reader) ([]Evidence, error) {
		return sqldb.All(rd.Conn, scanEvidence, `
SELECT origin, kind, size, root, checkpoint, cosigned, at FROM witness_evidence WHERE origin = ? ORDER BY id`, origin)
	})
}

func scanEvidence(row scanner) (e Evidence, err error) {
	var root []byte
	var kind, checkpoint, cosigned string
	err = row.Scan(&e.Origin, &kind, &e.Size, &root, &checkpoint, &cosigned, &e.At)
	copy(e.Root[:], root)
	e.Kind, e.Checkpoint, e.Cosigned = EvidenceKind(kind), []byte(checkpoint), []byte(cosigned)
	return e, err
}
