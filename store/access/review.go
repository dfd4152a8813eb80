package access

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxDrafts is the maximum number of drafts per sign-in.
const maxDrafts = 20

// A ReviewDraft is a statement that was prepared for a member to sign. It counts once.
type ReviewDraft struct {
	// Digest is the SHA-256 of the statement.
	Digest [sha256.Size]byte
	// Token is the ID of the member's sign-in.
	Token string
	Until ledger.Time
	// Passkey is the ID of the passkey that has confirmed the statement. It may be empty.
	Passkey string
}

// CreateReviewDraft stores a draft for a repo. If the sign-in has too many drafts, it deletes the
// oldest. It returns CodeForbidden if the sign-in has ended.
func (ac *Access) CreateReviewDraft(ctx context.Context, org, repo string, d ReviewDraft) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		r, err := t.WritableRepo(org, repo)
		if err != nil {
			return err
		}
		m, err := currentSignIn(t.Reader, org, d.Token)
		if err != nil {
			return err
		}

		const deleteOldest = `DELETE FROM review_drafts WHERE digest IN
			(SELECT digest FROM review_drafts WHERE token_id = ? ORDER BY until DESC, digest DESC LIMIT ? OFFSET ?)`
		if _, err := t.Exec(deleteOldest, m.token, maxDrafts, maxDrafts-1); err != nil {
			return fmt.Errorf("delete the oldest drafts: %w", err)
		}
		_, err = t.Exec("INSERT INTO review_drafts (digest, token_id, repo_id, until) VALUES (?, ?, ?, ?)",
			d.Digest[:], m.token, r.ID, d.Until)
		if err != nil {
			return fmt.Errorf("insert draft: %w", err)
		}
		return nil
	})
}

// LogReview uses up a draft, and logs the certificate with which its statement is signed, before
// anybody gets it. It returns CodeNotFound if the sign-in has no such draft for the repo, or if the
// draft has expired or was used, CodeRevokedIdentity if the CA is no longer in use, and CodeForbidden
// if the passkey was removed.
func (ac *Access) LogReview(ctx context.Context, org, repo string, d ReviewDraft, c signers.Certificate) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		r, err := t.WritableRepo(org, repo)
		if err != nil {
			return err
		}
		m, err := currentSignIn(t.Reader, org, d.Token)
		if err != nil {
			return err
		}
		if m.dn != c.DN {
			return ledger.Errorf(ledger.CodeForbidden, "the certificate is for %s, and the member signs as %s", c.DN, m.dn)
		}
		if err := signers.CheckInUse(t.Reader, org, ca.People, c.CA); err != nil {
			return err
		}
		if d.Passkey != "" {
			if err := checkPasskey(t, m.member, d.Passkey); err != nil {
				return err
			}
		}

		used, err := t.Exec("DELETE FROM review_drafts WHERE digest = ? AND token_id = ? AND repo_id = ? AND until > ?",
			d.Digest[:], m.token, r.ID, t.Now)
		if err != nil {
			return fmt.Errorf("delete draft: %w", err)
		}
		if used == 0 {
			return ledger.Errorf(ledger.CodeNotFound, "this sign-in has no such draft of a review for %s/%s: it was used, or "+
				"it has expired (create another)", org, repo)
		}
		return ac.journal.Audit(t, r.OrgID, org, events.Audited{
			Action: ledger.AuditCertificateIssued, Repo: r.Name, Target: c.Serial, After: reviewFields(c, d),
		})
	})
}

// reviewFields returns the fields of a certificate for a review that audit events have.
func reviewFields(c signers.Certificate, d ReviewDraft) []ledger.Field {
	fields := append(c.Fields(), ledger.Field{Name: "payload_digest", Value: fmt.Sprintf("sha256:%x", d.Digest)})
	if d.Passkey != "" {
		fields = append(fields, ledger.Field{Name: "passkey", Value: d.Passkey})
	}
	return fields
}

// PruneDrafts deletes expired drafts.
func (ac *Access) PruneDrafts(ctx context.Context) error {
	return ac.pruneExpired(ctx, ac.db.Clock.Now(), "SELECT EXISTS (SELECT 1 FROM review_drafts WHERE until <= ?)", `
DELETE FROM review_drafts
WHERE digest IN (SELECT digest FROM review_drafts WHERE until <= ? ORDER BY until LIMIT ?)`)
}
