package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/base64text"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Keyring holds the identities of an org, indexed for verifying signatures. It is
// immutable and safe for concurrent use.
type Keyring struct {
	// keys holds all distinct keys, those with an active holder first.
	keys   []*trustedKey
	bySPKI map[[sha256.Size]byte]*trustedKey
	// byHint maps each digest that a hint may have to its key.
	byHint map[[sha256.Size]byte]*trustedKey

	active anchors
	// The active and the revoked roots, without expiry. They distinguish an expired or
	// revoked chain from an unknown one.
	activeTimeless, revokedTimeless anchors
	// The active roots whose keys are not supported, without expiry. No chain may end in
	// them.
	refusedTimeless anchors
}

// A Signer is the verified signer of an attestation.
type Signer struct {
	DN     DN
	Emails []string
	// Identity is the id of the key or root through which the signer is trusted.
	Identity string
	// Key is the SHA-256 of the signing key's DER SubjectPublicKeyInfo, as encoded by
	// x509.MarshalPKIXPublicKey.
	Key [sha256.Size]byte
}

// A trustedKey is a key and the identities registered with it. There can be several:
// for example, if one was revoked or its certificate was renewed.
type trustedKey struct {
	publicKey
	// refused says why the key verifies nothing, if an earlier version accepted it.
	// There is no publicKey then.
	refused error
	holders []*holder
}

// A holder is an identity of kind key.
type holder struct {
	signer    Signer
	revoked   bool
	notBefore time.Time // both zero for a bare key
	notAfter  time.Time
}

// NewKeyring returns a keyring of an org's identities. Include the revoked ones, so
// that Verify can distinguish a revoked signer from an unknown one.
func NewKeyring(ids []Identity) (*Keyring, error) {
	k := &Keyring{
		bySPKI: make(map[[sha256.Size]byte]*trustedKey),
		byHint: make(map[[sha256.Size]byte]*trustedKey),
	}
	for i := range ids {
		if err := k.add(&ids[i]); err != nil {
			return nil, fmt.Errorf("identity %s: %w", ids[i].ID, err)
		}
	}
	slices.SortStableFunc(k.keys, func(a, b *trustedKey) int {
		switch {
		case a.isActive() == b.isActive():
			return 0
		case a.isActive():
			return -1
		}
		return 1
	})
	return k, nil
}

func (k *Keyring) add(id *Identity) error {
	m, err := parseMaterial(id.PEM)
	if err != nil {
		return err
	}
	var refused error
	m.key, refused = publicKeyOf(m.pub)
	switch id.Kind {
	case RootIdentity:
		return k.addRoot(id, m.cert, refused)
	case KeyIdentity:
		return k.addKey(id, m, refused)
	}
	return fmt.Errorf("%q is not an identity kind", text.Clip(string(id.Kind)))
}

func (k *Keyring) addRoot(id *Identity, cert *x509.Certificate, refused error) error {
	switch {
	case cert == nil:
		return errors.New("a root must be a certificate")
	case id.RevokedAt != 0:
		k.revokedTimeless.add(timeless(cert), id.ID)
	case refused != nil:
		k.refusedTimeless.add(timeless(cert), id.ID)
	default:
		k.active.add(cert, id.ID)
		k.activeTimeless.add(timeless(cert), id.ID)
	}
	return nil
}

func (k *Keyring) addKey(id *Identity, m material, refused error) error {
	dn, err := ParseDN(id.DN)
	if err != nil {
		return err
	}
	digest, spki, err := DigestKey(m.pub)
	if err != nil {
		return err
	}

	h := &holder{signer: Signer{DN: dn, Identity: id.ID, Key: digest}, revoked: id.RevokedAt != 0}
	if id.Email != "" {
		h.signer.Emails = []string{id.Email}
	}
	if m.cert != nil {
		h.notBefore, h.notAfter = m.cert.NotBefore, m.cert.NotAfter
		for _, email := range emailsOf(m.cert) {
			if email != id.Email && len(h.signer.Emails) < maxEmails {
				h.signer.Emails = append(h.signer.Emails, email)
			}
		}
	}

	key := k.bySPKI[digest]
	if key == nil {
		key = &trustedKey{publicKey: m.key, refused: refused}
		k.bySPKI[digest] = key
		k.keys = append(k.keys, key)
	}
	key.holders = append(key.holders, h)

	k.byHint[digest] = key
	k.byHint[sha256.Sum256([]byte(id.PEM))] = key
	canonical := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})
	k.byHint[sha256.Sum256(canonical)] = key
	return nil
}

// keyForHint returns the registered key for a keyid or hint, or nil.
func (k *Keyring) keyForHint(hint string) *trustedKey {
	digest, ok := parseHint(hint)
	if !ok {
		return nil
	}
	return k.byHint[digest]
}

// parseHint decodes a SHA-256 in hex or base64.
func parseHint(hint string) (digest [sha256.Size]byte, ok bool) {
	if len(hint) == hex.EncodedLen(sha256.Size) {
		_, err := hex.Decode(digest[:], []byte(hint))
		return digest, err == nil
	}
	if len(hint) < base64.RawStdEncoding.EncodedLen(sha256.Size) ||
		len(hint) > base64.StdEncoding.EncodedLen(sha256.Size) {
		return digest, false
	}
	text, encoding, err := base64text.Trim([]byte(hint))
	if err != nil || encoding.DecodedLen(len(text)) != sha256.Size {
		return digest, false
	}
	_, err = base64text.Append(digest[:0], text, encoding)
	return digest, err == nil
}

func (t *trustedKey) isActive() bool {
	return slices.ContainsFunc(t.holders, func(h *holder) bool { return !h.revoked })
}

// holder returns the identity of the key at the given time. If none is valid, the error
// says why: a revoked identity takes precedence over an expired one, so that expiry does
// not hide a revocation.
func (t *trustedKey) holder(now time.Time) (*holder, error) {
	if t.refused != nil {
		return nil, ledger.Errorf(
			ledger.CodeUntrustedIdentity, "registered key of %s: %v", t.holders[0].signer.DN, t.refused)
	}

	var expired, revoked *holder
	for _, h := range t.holders {
		switch {
		case h.revoked:
			revoked = h
		case h.notAfter.IsZero() || withinValidity(h.notBefore, h.notAfter, now):
			return h, nil
		default:
			expired = h
		}
	}
	if revoked != nil {
		return nil, ledger.Errorf(ledger.CodeRevokedIdentity, "identity %s was revoked", revoked.signer.DN)
	}
	return nil, ledger.Errorf(ledger.CodeExpiredCertificate, "registered certificate of %s %s",
		expired.signer.DN, describeValidity(expired.notBefore, expired.notAfter, now))
}

func withinValidity(notBefore, notAfter, now time.Time) bool {
	return !now.Before(notBefore) && !now.After(notAfter)
}

func describeValidity(notBefore, notAfter, now time.Time) string {
	if now.Before(notBefore) {
		return "is not valid before " + ledger.TimeOf(notBefore).String()
	}
	return "expired at " + ledger.TimeOf(notAfter).String()
}

// anchors is a set of roots, in which a certificate chain must end.
type anchors struct {
	pool     *x509.CertPool
	ids      map[string]string // raw certificate to identity id
	subjects map[string]bool   // raw subjects
}

func (a *anchors) add(root *x509.Certificate, id string) {
	if a.pool == nil {
		a.pool, a.ids, a.subjects = x509.NewCertPool(), make(map[string]string), make(map[string]bool)
	}
	if _, ok := a.ids[string(root.Raw)]; !ok {
		a.pool.AddCert(root)
		a.ids[string(root.Raw)] = id
		a.subjects[string(root.RawSubject)] = true
	}
}

var errNoRoots = errors.New("no roots are registered")

// verify returns a chain from the first of certs to a root, with the others as
// intermediates, and the root's id.
func (a *anchors) verify(certs []*x509.Certificate, now time.Time) (root string, chain []*x509.Certificate, err error) {
	if a.pool == nil { // x509 would use the system's roots
		return "", nil, errNoRoots
	}
	intermediates := x509.NewCertPool()
	for _, cert := range certs[1:] {
		intermediates.AddCert(cert)
	}
	chains, err := certs[0].Verify(x509.VerifyOptions{
		Roots:         a.pool,
		Intermediates: intermediates,
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
	if err != nil {
		return "", nil, err
	}
	chain = chains[0]
	return a.ids[string(chain[len(chain)-1].Raw)], chain, nil
}

// timeless returns a copy of cert that is always valid.
func timeless(cert *x509.Certificate) *x509.Certificate {
	always := *cert
	always.NotBefore = time.Time{}
	always.NotAfter = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	return &always
}
