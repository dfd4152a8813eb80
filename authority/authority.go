// Package authority creates the CAs of orgs, and issues certificates to CI jobs and to people.
// Their keys are in a folder, never in the database.
package authority

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// Config configures an Authority.
type Config struct {
	Store *store.Store
	// Keys opens the folder of the keys.
	Keys func() (*transparency.Keys, error)
}

// An Authority creates the CAs of orgs, and issues certificates.
type Authority struct{ Config }

// New returns an Authority.
func New(c Config) *Authority { return &Authority{c} }

// Create creates the CA of an org for a purpose, with a new key in the folder of the keys. It
// returns CodeAlreadyExists if the org has one, unless the request is to replace it.
func (a *Authority) Create(
	ctx context.Context, org string, p ca.Purpose, n ca.NewAuthority,
) (root identity.Identity, err error) {
	if err := attestation.CheckMay(n.May); err != nil {
		return root, err
	}
	if !n.Replace {
		if err := a.Store.CheckNoCA(ctx, org, p); err != nil {
			return root, err
		}
	}
	keys, err := a.Keys()
	if err != nil {
		return root, err
	}

	serial := ca.NewSerial()
	name := ca.SerialText(serial)
	key, err := keys.NewCAKey(name)
	if err != nil {
		return root, err
	}
	cert, err := ca.NewRoot(p, org, serial, key, a.Store.Now())
	if err != nil {
		return root, err
	}

	if root, err = n.Identity(p, org, ca.PEM(cert)); err != nil {
		return root, err
	}
	if err := keys.SaveCAKey(name, key); err != nil {
		return root, err
	}
	return a.Store.CreateCA(ctx, org, p, root, n.Replace)
}

// Issue issues a certificate for a key to a CI job of an org, by the token of the job and the rule
// that the token matches. If e has a scope, it also creates an API token. When Issue returns, both
// are logged. It returns CodeForbidden if the CA does not certify the rule's name, CodeTokenUsed if
// the token was used before, CodeNotFound if the org has no CA, and CodeRevokedIdentity or
// CodeExpiredCertificate if the CA was revoked or is about to expire.
func (a *Authority) Issue(
	ctx context.Context, org string, key *ecdsa.PublicKey, e store.Exchange,
) (c ca.Certificate, err error) {
	leaf := ca.Leaf{Purpose: ca.Jobs, Key: key, Claims: ca.Claims{Issuer: e.Claims.Issuer, Digest: e.Claims.Digest()}}
	c, logged, err := a.certify(ctx, org, e.Rule.DN, leaf)
	if err != nil {
		return c, ruled(e.Rule.ID, err)
	}
	c.APIToken, err = a.log(ctx, org, logged, e)
	return returned(c, err)
}

// ruled adds the ID of the rule to an error about the name that the rule gives.
func ruled(rule string, err error) error {
	if e, ok := errors.AsType[*ledger.Error](err); ok && e.Code == ledger.CodeForbidden {
		return ledger.Errorf(e.Code, "rule %s: %s", rule, e.Detail)
	}
	return err
}

// CheckReviewer returns an error if IssueReview would refuse to certify a name, or if those who are
// certified may not attest a predicate.
func (a *Authority) CheckReviewer(ctx context.Context, org, dn, predicate string) error {
	root, err := a.Store.CA(ctx, org, ca.People)
	if err != nil {
		return err
	}
	if !root.May.Match(predicate) {
		return ledger.Errorf(ledger.CodePredicateNotAllowed, "the CA for people %s may not attest %s, only %s", root.ID,
			predicate, root.May)
	}
	_, err = ca.People.Certified(root, dn)
	return err
}

// IssueReview issues a certificate for a key to a member of an org, with which only the statement
// of a draft can be signed, and uses the draft up. When IssueReview returns, the certificate is
// logged. It returns CodeForbidden if the CA does not certify the member's name, CodeNotFound if the
// org has no CA, and the errors of [store.Store.LogReview].
func (a *Authority) IssueReview(
	ctx context.Context, org, repo, dn string, key *ecdsa.PublicKey, d store.ReviewDraft,
) (ca.Certificate, error) {
	c, logged, err := a.certify(ctx, org, dn, ca.Leaf{Purpose: ca.People, Key: key, Payload: d.Digest})
	if err != nil {
		return c, err
	}
	return returned(c, a.Store.LogReview(ctx, org, repo, d, logged))
}

// returned returns a certificate, or an error without it.
func returned(c ca.Certificate, err error) (ca.Certificate, error) {
	if err != nil {
		return ca.Certificate{}, err
	}
	return c, nil
}

// certify creates the certificate of a leaf with a name. The caller must log the certificate as the
// store's one before anything else gets it.
func (a *Authority) certify(
	ctx context.Context, org, name string, l ca.Leaf,
) (c ca.Certificate, logged store.Certificate, err error) {
	root, err := a.Store.CA(ctx, org, l.Purpose)
	if err != nil {
		return c, logged, err
	}
	if l.DN, err = l.Purpose.Certified(root, name); err != nil {
		return c, logged, err
	}
	cert, err := a.sign(root, l)
	if err != nil {
		return c, logged, err
	}
	fingerprint, err := identity.Fingerprint(l.Key)
	if err != nil {
		return c, logged, err
	}

	serial, until := ca.SerialText(cert.SerialNumber), ledger.TimeOf(cert.NotAfter)
	c = ca.Certificate{Certificate: ca.PEM(cert), DN: l.DN.String(), Serial: serial, Identity: root.ID, NotAfter: until}
	logged = store.Certificate{CA: root.ID, Serial: serial, Key: fingerprint, DN: c.DN, NotAfter: until}
	return c, logged, nil
}

// log logs a certificate. It returns the secret of the API token, or "" if e has no scope.
func (a *Authority) log(
	ctx context.Context, org string, c store.Certificate, e store.Exchange,
) (secret string, err error) {
	if e.Scope == 0 {
		return "", a.Store.LogCertificate(ctx, org, c, e, nil)
	}
	secret = ledger.NewSecret()
	hash, err := ledger.ParseSecret(secret)
	if err != nil {
		return "", err
	}
	return secret, a.Store.LogCertificate(ctx, org, c, e, &hash)
}

// sign returns a certificate of a root.
func (a *Authority) sign(root identity.Identity, l ca.Leaf) (*x509.Certificate, error) {
	chain, err := identity.ParseCertificates([]byte(root.PEM))
	if err != nil {
		return nil, fmt.Errorf("read the certificate of identity %s: %w", root.ID, err)
	}
	keys, err := a.Keys()
	if err != nil {
		return nil, err
	}
	key, err := keys.LoadCAKey(chain[0])
	if err != nil {
		return nil, err
	}
	return l.Issue(chain[0], key, a.Store.Now())
}
