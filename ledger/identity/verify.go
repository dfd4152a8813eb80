package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Signed is a message with its signature and the data that identifies the signer.
type Signed struct {
	// Message is the signed data. For a DSSE envelope, it is the pre-authentication
	// encoding.
	Message   []byte
	Signature []byte
	// Hint identifies the key: a DSSE keyid or a bundle's hint.
	Hint string
	// Certificates are those in the envelope, leaf first.
	Certificates []*x509.Certificate
}

// Verify returns the signer of a signature. It uses the certificate if there is one,
// else the registered key that the hint identifies, else it tries all keys. Every error
// is a *ledger.Error.
func (k *Keyring) Verify(s *Signed, now time.Time) (Signer, error) {
	m := &message{text: s.Message}
	if len(s.Certificates) > 0 {
		key, signer, err := k.certSigner(s.Certificates, now)
		if err != nil {
			return Signer{}, err
		}
		return verifySignature(key, signer, m, s.Signature)
	}
	if key := k.keyForHint(s.Hint); key != nil {
		h, err := key.holder(now)
		if err != nil {
			return Signer{}, err
		}
		return verifySignature(key, h.signer, m, s.Signature)
	}
	return k.tryAllKeys(m, s.Signature, now)
}

func verifySignature(key publicKey, signer Signer, m *message, sig []byte) (Signer, error) {
	if !key.verify(m, sig) {
		return Signer{}, ledger.Errorf(ledger.CodeInvalidSignature,
			"the signature does not match this payload and the key of %s", signer.DN)
	}
	return signer, nil
}

// maxTryBytes limits the bytes that are hashed when all keys are tried: the message, times
// the number of keys.
const maxTryBytes = 256 << 20

// tryAllKeys tries all keys and returns the signer. Keys without an active holder are last;
// they are tried to report that the identity was revoked.
func (k *Keyring) tryAllKeys(m *message, sig []byte, now time.Time) (Signer, error) {
	if len(k.keys)*len(m.text) > maxTryBytes {
		return Signer{}, ledger.Errorf(
			ledger.CodeUntrustedIdentity, "the payload is too large to try all %d keys of the org "+
				"(set keyid to the SHA-256 of the key's SubjectPublicKeyInfo)", len(k.keys))
	}
	for _, key := range k.keys {
		if key.refused != nil || !key.verify(m, sig) {
			continue
		}
		h, err := key.holder(now)
		if err != nil {
			return Signer{}, err
		}
		return h.signer, nil
	}
	return Signer{}, ledger.Errorf(ledger.CodeUntrustedIdentity,
		"the signature matches no trusted key of the org, and the envelope has no certificate: "+
			"the signer is not registered, or the payload or signature was changed")
}

// certSigner returns the key and the signer of the first of certs: a registered identity
// with the same key, or a subject that a root trusts.
func (k *Keyring) certSigner(certs []*x509.Certificate, now time.Time) (publicKey, Signer, error) {
	// Check all keys before one verifies another: anybody can send a certificate with a
	// key that is very slow to verify.
	for _, cert := range certs {
		if _, err := publicKeyOf(cert.PublicKey); err != nil {
			return nil, Signer{}, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate of %s: %v", SubjectOf(cert), err)
		}
	}

	leaf := certs[0]
	digest, _, err := DigestKey(leaf.PublicKey)
	if err != nil {
		return nil, Signer{}, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate of %s: %v", SubjectOf(leaf), err)
	}

	registered := k.bySPKI[digest]
	if registered == nil {
		return k.chainSigner(certs, digest, now)
	}
	h, err := registered.holder(now)
	if err == nil {
		return registered, h.signer, nil
	}
	// The registered certificate has expired, but this one may be its successor.
	if fault, ok := errors.AsType[*ledger.Error](err); ok && fault.Code == ledger.CodeExpiredCertificate {
		if key, signer, chainErr := k.chainSigner(certs, digest, now); chainErr == nil {
			return key, signer, nil
		}
	}
	return nil, Signer{}, err
}

// chainSigner returns the signer of a certificate chain that ends at a trusted root.
// The digest is that of the first certificate's key.
func (k *Keyring) chainSigner(
	certs []*x509.Certificate, digest [sha256.Size]byte, now time.Time,
) (publicKey, Signer, error) {
	leaf := certs[0]
	subject, err := signerDN(leaf.Subject)
	if err != nil {
		return nil, Signer{}, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate does not name a signer: %v", err)
	}
	key, err := publicKeyOf(leaf.PublicKey)
	if err != nil {
		return nil, Signer{}, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate of %s: %v", subject, err)
	}
	if err := checkUsage(leaf); err != nil {
		return nil, Signer{}, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate of %s %v", subject, err)
	}
	root, err := k.rootOf(certs, now)
	if err != nil {
		return nil, Signer{}, err
	}
	return key, Signer{DN: subject, Emails: emailsOf(leaf), Identity: root, Key: digest}, nil
}

// checkUsage refuses a certificate that is not explicitly for code signing, even if it
// is for any usage.
func checkUsage(leaf *x509.Certificate) error {
	if !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageCodeSigning) {
		return errors.New("is not for code signing (extendedKeyUsage lacks codeSigning)")
	}
	const signs = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment
	if leaf.KeyUsage != 0 && leaf.KeyUsage&signs == 0 {
		return errors.New("is not for signatures (keyUsage lacks digitalSignature)")
	}
	return nil
}

// rootOf returns the id of the root that the certificates chain to.
func (k *Keyring) rootOf(certs []*x509.Certificate, now time.Time) (string, error) {
	root, _, reason := k.active.verify(certs, now)
	if reason == nil {
		return root, nil
	}

	always := make([]*x509.Certificate, len(certs))
	for i, cert := range certs {
		always[i] = timeless(cert)
	}
	leaf := SubjectOf(certs[0])
	if _, chain, err := k.activeTimeless.verify(always, now); err == nil {
		return "", expiredError(chain, now)
	}
	if _, _, err := k.revokedTimeless.verify(always, now); err == nil {
		return "", ledger.Errorf(ledger.CodeRevokedIdentity, "certificate of %s chains to a revoked root", leaf)
	}
	if _, chain, err := k.refusedTimeless.verify(always, now); err == nil {
		_, refused := publicKeyOf(chain[len(chain)-1].PublicKey)
		return "", ledger.Errorf(ledger.CodeUntrustedIdentity,
			"certificate of %s chains to a root that is not supported: %v", leaf, refused)
	}

	if last, ok := k.lackedIssuer(certs, reason); ok {
		return "", ledger.Errorf(ledger.CodeUntrustedIdentity,
			"certificate of %s was issued by %s, which is not registered (register it as a root)",
			SubjectOf(last), nameText(last.Issuer))
	}
	return "", ledger.Errorf(
		ledger.CodeUntrustedIdentity, "certificate of %s does not chain to a trusted root of the org: %v", leaf, reason)
}

// lackedIssuer returns the certificate at which a chain ends because its issuer is not
// registered. It reports false if verification failed for another reason.
func (k *Keyring) lackedIssuer(certs []*x509.Certificate, reason error) (last *x509.Certificate, ok bool) {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](reason); !ok && !errors.Is(reason, errNoRoots) {
		return nil, false
	}

	last = certs[0]
	for range certs { // at most as many steps, because names may form a cycle
		i := slices.IndexFunc(certs, func(c *x509.Certificate) bool {
			return bytes.Equal(c.RawSubject, last.RawIssuer) && !isSelfIssued(c)
		})
		if i < 0 {
			break
		}
		last = certs[i]
	}
	// If a root of this name is registered, the reason says why it does not fit.
	return last, !isSelfIssued(last) && !k.active.subjects[string(last.RawIssuer)]
}

func isSelfIssued(cert *x509.Certificate) bool { return bytes.Equal(cert.RawSubject, cert.RawIssuer) }

// expiredError returns an error that names the certificate of a timeless chain that is
// not valid now.
func expiredError(chain []*x509.Certificate, now time.Time) error {
	for _, always := range chain {
		cert, err := x509.ParseCertificate(always.Raw)
		if err == nil && !withinValidity(cert.NotBefore, cert.NotAfter, now) {
			return ledger.Errorf(ledger.CodeExpiredCertificate, "certificate of %s %s", SubjectOf(cert),
				describeValidity(cert.NotBefore, cert.NotAfter, now))
		}
	}
	return ledger.Errorf(ledger.CodeExpiredCertificate, "certificate chain is not valid now")
}

// SubjectOf returns a certificate's subject, for use in an error message.
func SubjectOf(cert *x509.Certificate) string { return nameText(cert.Subject) }

// nameText returns a name of a certificate, for use in an error message. It is a DN if
// it names a signer, or else quoted.
func nameText(name pkix.Name) string {
	if values, err := nameValues(name); err == nil {
		if dn := dnOf(values); dn != (DN{}) && dn.CheckVisible() == nil {
			return dn.String()
		}
	}
	var first pkix.RDNSequence
	for _, attribute := range name.Names[:min(len(name.Names), maxNameText)] {
		first = append(first, pkix.RelativeDistinguishedNameSET{attribute})
	}
	return text.Quote(first.String())
}

// maxNameText limits the attributes that nameText formats, because String takes time
// that grows with their square.
const maxNameText = 16
