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

	keyless keylessSigners
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
	voucher
	revoked   bool
	notBefore time.Time // both zero for a bare key
	notAfter  time.Time
}

// NewKeyring returns a keyring of an org's identities. Include the revoked ones, so
// that Verify can distinguish a revoked signer from an unknown one. roots are the versions of trusted
// roots that vouch for keyless signers: those in effect or, to verify what is recorded, all. parse
// reads their documents. It may be nil if there are no roots.
func NewKeyring(ids []Identity, parse RootParser, roots ...TrustedRoot) (*Keyring, error) {
	k := &Keyring{
		bySPKI: make(map[[sha256.Size]byte]*trustedKey),
		byHint: make(map[[sha256.Size]byte]*trustedKey),
	}
	for i := range ids {
		if err := k.add(&ids[i]); err != nil {
			return nil, fmt.Errorf("identity %s: %w", ids[i].ID, err)
		}
	}
	k.keyless.addRoots(parse, roots)
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
	if id.Kind == SigstoreIdentity {
		return k.keyless.add(id)
	}
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
		k.revokedTimeless.add(timeless(cert), nil)
	case refused != nil:
		k.refusedTimeless.add(timeless(cert), nil)
	default:
		root := &anchor{id: id.ID, may: id.May}
		if id.DNPattern != "" {
			var err error
			if root.names, err = ParsePattern(id.DNPattern); err != nil {
				return err
			}
		}
		k.active.add(cert, root)
		k.activeTimeless.add(timeless(cert), root)
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

	h := &holder{
		voucher: voucher{signer: Signer{DN: dn, Identity: id.ID, Key: digest}, may: id.May}, revoked: id.RevokedAt != 0,
	}
	h.signer.Emails = id.Addresses()
	if m.cert != nil {
		h.notBefore, h.notAfter = m.cert.NotBefore, m.cert.NotAfter
		h.signer.Emails = SignerEmails(h.signer.Emails, emailsOf(m.cert))
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
	encoded, encoding, err := text.TrimBase64([]byte(hint))
	if err != nil || encoding.DecodedLen(len(encoded)) != sha256.Size {
		return digest, false
	}
	_, err = text.AppendBase64(digest[:0], encoded, encoding)
	return digest, err == nil
}

func (t *trustedKey) isActive() bool {
	return slices.ContainsFunc(t.holders, func(h *holder) bool { return !h.revoked })
}

// vouchers returns the identities of the key that are active and valid at the given time.
// Without one, the error says why: a revoked identity takes precedence over an
// expired one, so that expiry does not hide a revocation.
func (t *trustedKey) vouchers(now time.Time) (Vouchers, error) {
	if t.refused != nil {
		return nil, ledger.Errorf(
			ledger.CodeUntrustedIdentity, "registered key of %s: %v", t.holders[0].signer.DN, t.refused)
	}

	var valid Vouchers
	var expired, revoked *holder
	for _, h := range t.holders {
		switch {
		case h.revoked:
			revoked = h
		case h.notAfter.IsZero() || withinValidity(h.notBefore, h.notAfter, now):
			valid = append(valid, h.voucher)
		default:
			expired = h
		}
	}
	if valid != nil {
		return valid, nil
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

// An anchor is an active root.
type anchor struct {
	id    string
	may   Predicates
	names Pattern // of the DNs that it may certify
}

// anchors is a set of roots, in which a certificate chain must end.
type anchors struct {
	pool     *x509.CertPool
	roots    map[string][]*anchor // by raw certificate
	subjects map[string]bool      // raw subjects
}

func (a *anchors) add(cert *x509.Certificate, root *anchor) {
	if a.pool == nil {
		a.pool, a.roots, a.subjects = x509.NewCertPool(), make(map[string][]*anchor), make(map[string]bool)
	}
	a.pool.AddCert(cert)
	a.roots[string(cert.Raw)] = append(a.roots[string(cert.Raw)], root)
	a.subjects[string(cert.RawSubject)] = true
}

var errNoRoots = errors.New("no roots are registered")

// verify returns the chains from the first of certs to a root, with the others as
// intermediates: at least one.
func (a *anchors) verify(certs []*x509.Certificate, now time.Time) (chains [][]*x509.Certificate, err error) {
	if a.pool == nil { // x509 would use the system's roots
		return nil, errNoRoots
	}
	intermediates := x509.NewCertPool()
	for _, cert := range certs[1:] {
		intermediates.AddCert(cert)
	}
	return certs[0].Verify(x509.VerifyOptions{
		Roots:         a.pool,
		Intermediates: intermediates,
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
}

// endOf returns the certificate in which a chain ends.
func endOf(chain []*x509.Certificate) *x509.Certificate { return chain[len(chain)-1] }

// timeless returns a copy of cert that is always valid.
func timeless(cert *x509.Certificate) *x509.Certificate {
	always := *cert
	always.NotBefore = time.Time{}
	always.NotAfter = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	return &always
}
