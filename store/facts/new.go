package facts

import (
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/linking"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A NewAttestation is what is recorded of an attestation.
type NewAttestation struct {
	*attestation.Attestation
	Evidence *policy.Evidence
	// The rows of its predicate, predicate type, signer and key.
	PredicateID, TypeID, SignerID, KeyID int64
	Event                                string // its id
	Envelope                             envelope.Packed
	// Assertion is that of the passkey which has confirmed the statement, and AssertionDigest its
	// SHA-256; nil without a passkey.
	Assertion, AssertionDigest any
	Verdicts                   map[string]policy.Verdict // of expressions
}

// InsertAttestation adds the rows of an attestation of a commit to the buffers.
func (fa *Facts) InsertAttestation(t *txn.Tx, s *Commit, n NewAttestation) error {
	id, err := t.NextRow("attestations")
	if err != nil {
		return err
	}
	fa.keepEvidence(id, *n.Evidence)
	fa.cached = true

	rows := fa.rows
	rows.attestations.Add(id, s.Newest, n.Evidence.Attestation, s.RepoID, s.ID, n.PredicateID, n.TypeID,
		int64(attestation.MappingVersion), n.Slot, n.SignerID, n.KeyID,
		string(n.Evidence.Status), n.Result.DurationMS, int64(t.Stamp), n.PayloadDigest[:], n.Signer.Identity,
		strings.Join(n.Evidence.Emails, "\n"), n.Evidence.WhilePromotable, n.Event, int64(agedFrom(t)),
		int64(n.Evidence.FinishedAt), n.AssertionDigest, n.Evidence.Reason, n.Evidence.Base)
	s.Newest = id
	rows.envelopes.Add(id, n.Envelope.Body, n.Envelope.Payload, n.Envelope.PayloadAt, n.Assertion)
	for _, x := range slices.Sorted(maps.Keys(n.Verdicts)) {
		if err := fa.AddVerdict(t, id, x, n.Verdicts[x]); err != nil {
			return err
		}
	}
	for _, digest := range n.Artifacts.Digests {
		rows.artifacts.Add(s.Deriver.Repo.OrgID, DigestKey(digest), s.ID, n.Signer.Identity, n.SignerID,
			linking.Builds(n.Predicate, n.Evidence.Status), id)
	}
	if n.Changes != nil {
		if err := fa.addChanges(id, n.Changes.Paths); err != nil {
			return err
		}
	}
	if s.isLatest(n.Evidence) {
		key := LatestKey{s.ID, n.PredicateID, n.Slot, n.SignerID}
		fa.setLatest(key, id)
		fa.inherit(t, s, key, id, n.Evidence)
	}
	fa.Count(RepoAttestations, s.RepoID, 1)
	fa.Count(PredicateAttestations, n.PredicateID, 1)
	return nil
}

// agedFrom returns the time from which the age of an attestation of this write counts, or
// 0 if that is its recorded_at.
func agedFrom(t *txn.Tx) ledger.Time {
	if t.Stamp == t.Now {
		return 0
	}
	return t.Now
}

// FindOrAddCommit returns a commit of the deriver's repo, and whether it is new.
func (fa *Facts) FindOrAddCommit(t *txn.Tx, d *Deriver, sha string) (c *CommitRow, created bool, err error) {
	c, err = ScanCommitRow(t.Row(SelectCommitRow+"WHERE repo_id = ? AND sha = ?", d.Repo.ID, sha))
	if !errors.Is(err, sql.ErrNoRows) {
		return c, false, err
	}
	s, err := fa.AddCommit(t, d, sha)
	if err != nil {
		return nil, false, err
	}
	return s.CommitRow, true, nil
}

// AddCommit adds a new commit to the deriver's repo.
func (fa *Facts) AddCommit(t *txn.Tx, d *Deriver, sha string) (*Commit, error) {
	id, err := t.NextRow("commits")
	if err != nil {
		return nil, err
	}
	c := &CommitRow{
		ID: id, RepoID: d.Repo.ID, SHA: sha, State: ledger.Draft, StateSince: t.Now, registeredAt: t.Now,
		PolicyVersion: d.Repo.PolicyVersion, Distrusts: d.Repo.Distrusts, isNew: true,
		Standing: ledger.Deployed,
	}
	fa.MarkDirty(c)
	fa.CountState(d.Repo.ID, c.State, 1)
	f := d.factsOf(&facts.Commit{ID: sha})
	f.RegisteredAt = c.registeredAt
	return &Commit{CommitRow: c, Deriver: d, Facts: f}, nil
}
