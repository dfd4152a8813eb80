// Package reviews prepares the reviews that members sign in the page, makes envelopes of what they
// have signed, and enrols the passkeys that confirm it. The script of the page signs the bytes of a
// draft with a key that cannot leave the browser, and its certificate is valid for this statement
// alone.
package reviews

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/ledgerd/ledgerd/authority"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/review"
	"github.com/ledgerd/ledgerd/store"
)

// A Desk is where members review.
type Desk struct {
	Store *store.Store
	// Authority certifies the keys of reviewers. If it is nil, nobody reviews.
	Authority *authority.Authority
	// Party is the domain and the origin of passkeys. If its ID is empty, members cannot use passkeys.
	Party passkey.Party
	Now   func() ledger.Time
}

// A Place is a commit in a repo.
type Place struct{ Org, Repo, Commit string }

// checkMember returns an error unless a token is that of a member who has signed in, and the desk is
// open.
func (d *Desk) checkMember(t ledger.Token) error {
	if !t.IsSignIn || t.Member == "" {
		return ledger.Errorf(ledger.CodeForbidden,
			"only people who sign in with a provider can review commits here (with a key, use 'ledgerd review approve')")
	}
	if d.Authority == nil {
		return ledger.Errorf(ledger.CodeNotFound, "this server has no folder for the keys of CAs")
	}
	return nil
}

// Draft returns a statement for a member to sign. Until it is signed, it is only remembered. A member
// whose sign-in is too long ago can confirm it with a passkey; if the member has none, the error has
// CodeSignInAgain.
func (d *Desk) Draft(ctx context.Context, at Place, t ledger.Token, n review.NewDraft) (draft review.Draft, err error) {
	if err := d.checkMember(t); err != nil {
		return draft, err
	}
	if draft, err = d.confirmable(ctx, at.Org, t); err != nil {
		return draft, err
	}
	if n, err = n.Completed(); err != nil {
		return draft, err
	}
	if err := d.Authority.CheckReviewer(ctx, at.Org, t.DN, n.Predicate); err != nil {
		return draft, err
	}
	commit, err := d.Store.Commit(ctx, at.Org, at.Repo, at.Commit)
	if err != nil {
		return draft, err
	}

	var random [32]byte
	rand.Read(random[:]) // never returns an error
	tree := ""
	if commit.Proven { // otherwise it is only a claim
		tree = commit.Tree
	}
	draft.Scope, err = d.Store.ReviewScope(ctx, at.Org, at.Repo, commit.SHA)
	if err != nil {
		return draft, err
	}
	draft.Payload, err = n.Statement(commit.Org+"/"+commit.Repo, commit.SHA, tree, draft.Base, review.Nonce(random))
	if err != nil {
		return draft, err
	}
	draft.ExpiresAt = d.Now().Add(review.Lifetime)
	return draft, d.Store.CreateReviewDraft(ctx, at.Org, at.Repo,
		store.ReviewDraft{Digest: sha256.Sum256(draft.Payload), Token: t.ID, Until: draft.ExpiresAt})
}

// confirmable returns a draft that says how a member can confirm that it is the member who signs.
func (d *Desk) confirmable(ctx context.Context, org string, t ledger.Token) (draft review.Draft, err error) {
	mine, err := d.passkeys(ctx, org, t)
	if err != nil {
		return draft, err
	}
	for _, p := range mine {
		draft.Passkeys = append(draft.Passkeys, p.CredentialID)
	}
	if len(mine) > 0 {
		draft.RPID = d.Party.ID
	}

	err = review.CheckRecent(t.AuthTime, d.Now(), "review a commit")
	if err != nil && len(mine) > 0 {
		draft.PasskeyRequired, err = true, nil
	}
	return draft, err
}

// passkeys returns the passkeys of a member for the domain of this server.
func (d *Desk) passkeys(ctx context.Context, org string, t ledger.Token) (mine []passkey.Passkey, err error) {
	if d.Party.ID == "" {
		return nil, nil
	}
	list, err := d.Store.Passkeys(ctx, org, t.Member, store.Query{Limit: passkey.MaxPasskeys})
	if err != nil {
		return nil, err
	}
	for _, p := range list.Data {
		if p.RPID == d.Party.ID {
			mine = append(mine, p)
		}
	}
	return mine, nil
}

// A Signed is a review that a member has signed: what is recorded of it.
type Signed struct {
	Envelope []byte
	// Assertion is the JSON text of what the passkey has confirmed; nil without a passkey.
	Assertion []byte
	// Passkey is the ID of the passkey; empty without one.
	Passkey string
}

// Sign returns the review that a member has signed, with a certificate for this one statement. It uses
// the draft up. It returns CodeSignInAgain if the sign-in of the member is too long ago and no passkey
// has confirmed the review.
func (d *Desk) Sign(ctx context.Context, at Place, t ledger.Token, n review.NewReview) (s Signed, err error) {
	if err := d.checkMember(t); err != nil {
		return s, err
	}
	if n.Confirmation == nil {
		if err := review.CheckRecent(t.AuthTime, d.Now(), "review a commit"); err != nil {
			return s, err
		}
	}
	key, err := n.Verify()
	if err != nil {
		return s, err
	}
	if commit, err := attestation.CommitOf(n.Payload); err != nil || commit != at.Commit {
		return s, ledger.FieldErrorf(ledger.CodeInvalidField, "payload", "it is not a statement about commit %.64q",
			at.Commit)
	}

	draft := store.ReviewDraft{Digest: n.Digest(), Token: t.ID}
	if n.Confirmation != nil {
		if s.Passkey, s.Assertion, err = d.confirmed(ctx, at.Org, t, *n.Confirmation, n.Payload); err != nil {
			return s, err
		}
	}
	draft.Passkey = s.Passkey
	issued, err := d.Authority.IssueReview(ctx, at.Org, at.Repo, t.DN, key, draft)
	if err != nil {
		return s, err
	}
	chain, err := identity.ParseCertificates([]byte(issued.Certificate))
	if err != nil {
		return s, fmt.Errorf("read the certificate of a review: %w", err)
	}
	if s.Envelope, err = attestation.NewBundle(chain, n.Payload, n.Signature); err != nil {
		return s, fmt.Errorf("make the bundle of a review: %w", err)
	}
	return s, nil
}

// confirmed returns the ID of the passkey of a member that has confirmed a payload, with the text of
// its assertion.
func (d *Desk) confirmed(
	ctx context.Context, org string, t ledger.Token, c passkey.Confirmation, payload []byte,
) (id string, assertion []byte, err error) {
	mine, err := d.passkeys(ctx, org, t)
	if err != nil {
		return "", nil, err
	}
	for _, p := range mine {
		if !bytes.Equal(p.CredentialID, c.CredentialID) {
			continue
		}
		a, err := p.Assertion(d.Party, c, payload)
		if err != nil {
			return "", nil, err
		}
		assertion, err = a.Text()
		return p.ID, assertion, err
	}
	return "", nil, ledger.FieldErrorf(ledger.CodeInvalidField, "confirmation.credential_id",
		"it is not the credential ID of a passkey of yours")
}
