package identity

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// Verify returns the identities that vouch for a signature. It uses the certificate if
// there is one, else the registered key that the hint identifies, else it tries all keys.
// Every error is a *ledger.Error.
func (k *Keyring) Verify(s *Signed, now time.Time) (Vouchers, error) {
	m := &message{text: s.Message}
	if len(s.Certificates) > 0 {
		key, vouchers, err := k.certVouchers(s, now)
		if err != nil {
			return nil, err
		}
		return verifySignature(key, vouchers, m, s.Signature)
	}
	if key := k.keyForHint(s.Hint); key != nil {
		vouchers, err := key.vouchers(now)
		if err != nil {
			return nil, err
		}
		return verifySignature(key, vouchers, m, s.Signature)
	}
	return k.tryAllKeys(m, s.Signature, now)
}

// Holders returns the identities that vouch for a key of which another package has verified
// a signature: those of kind key that are registered with it. Every error is a
// *ledger.Error.
func (k *Keyring) Holders(pub crypto.PublicKey, now time.Time) (Vouchers, error) {
	digest, _, err := DigestKey(pub)
	if err != nil {
		return nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "%v", err)
	}
	registered := k.bySPKI[digest]
	if registered == nil {
		return nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "the key %x is not a trusted key of the org", digest)
	}
	return registered.vouchers(now)
}

func verifySignature(key publicKey, vouchers Vouchers, m *message, sig []byte) (Vouchers, error) {
	if !key.verify(m, sig) {
		return nil, ledger.Errorf(ledger.CodeInvalidSignature,
			"the signature does not match this payload and the key of %s", vouchers[0].signer.DN)
	}
	return vouchers, nil
}

// maxTryBytes limits the bytes that are hashed when all keys are tried: the message, times
// the number of keys.
const maxTryBytes = 256 << 20

// tryAllKeys tries all keys and returns the vouchers of the one that fits. Keys without an
// active holder are last; they are tried to report that the identity was revoked.
func (k *Keyring) tryAllKeys(m *message, sig []byte, now time.Time) (Vouchers, error) {
	if len(k.keys)*len(m.text) > maxTryBytes {
		return nil, ledger.Errorf(
			ledger.CodeUntrustedIdentity, "the payload is too large to try all %d keys of the org "+
				"(set keyid to the SHA-256 of the key's SubjectPublicKeyInfo)", len(k.keys))
	}
	for _, key := range k.keys {
		if key.refused != nil || !key.verify(m, sig) {
			continue
		}
		return key.vouchers(now)
	}
	return nil, ledger.Errorf(ledger.CodeUntrustedIdentity,
		"the signature matches no trusted key of the org, and the envelope has no certificate: "+
			"the signer is not registered, or the payload or signature was changed")
}

// certVouchers returns the key of the first certificate, and who vouches for it: the
// registered identities with the same key, or the roots that trust its subject.
func (k *Keyring) certVouchers(s *Signed, now time.Time) (publicKey, Vouchers, error) {
	certs := s.Certificates
	// Check all keys before one verifies another: anybody can send a certificate with a
	// key that is very slow to verify.
	for _, cert := range certs {
		if _, err := publicKeyOf(cert.PublicKey); err != nil {
			return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate of %s: %v", SubjectOf(cert), err)
		}
	}

	leaf := certs[0]
	if err := checkPayload(leaf, s.Payload); err != nil {
		return nil, nil, ledger.Errorf(ledger.CodeInvalidSignature, "certificate of %s %v", SubjectOf(leaf), err)
	}
	digest, _, err := DigestKey(leaf.PublicKey)
	if err != nil {
		return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate of %s: %v", SubjectOf(leaf), err)
	}

	registered := k.bySPKI[digest]
	if registered == nil && IsKeyless(leaf) && (!s.IsRecorded || len(k.keyless.entries) > 0) {
		return k.keyless.vouchers(s, digest)
	}
	if registered == nil {
		return k.chainVouchers(certs, digest, now)
	}
	vouchers, err := registered.vouchers(now)
	if err == nil {
		return registered, vouchers, nil
	}
	// The registered certificate has expired, but this one may be its successor.
	if fault, ok := errors.AsType[*ledger.Error](err); ok && fault.Code == ledger.CodeExpiredCertificate {
		if key, vouchers, chainErr := k.chainVouchers(certs, digest, now); chainErr == nil {
			return key, vouchers, nil
		}
	}
	return nil, nil, err
}

// chainVouchers returns the key of a certificate chain that ends at a trusted root, and the
// roots that vouch for it. The digest is that of the first certificate's key.
func (k *Keyring) chainVouchers(
	certs []*x509.Certificate, digest [sha256.Size]byte, now time.Time,
) (publicKey, Vouchers, error) {
	leaf := certs[0]
	subject, err := signerDN(leaf.Subject)
	if err != nil {
		return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate does not name a signer: %v", err)
	}
	key, err := publicKeyOf(leaf.PublicKey)
	if err != nil {
		return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate of %s: %v", subject, err)
	}
	if err := checkUsage(leaf); err != nil {
		return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "certificate of %s %v", subject, err)
	}
	roots, err := k.rootsOf(certs, subject, now)
	if err != nil {
		return nil, nil, err
	}

	var vouchers Vouchers
	emails := emailsOf(leaf)
	for _, root := range roots {
		signer := Signer{DN: subject, Emails: emails, Identity: root.id, Key: digest}
		vouchers = append(vouchers, voucher{signer: signer, may: root.may})
	}
	return key, vouchers, nil
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

// rootsOf returns the roots that the certificates chain to and that may certify the
// subject: at least one. There are several if the chain passes one on its way to another.
func (k *Keyring) rootsOf(certs []*x509.Certificate, subject DN, now time.Time) ([]*anchor, error) {
	chains, reason := k.active.verify(certs, now)
	if reason != nil {
		return nil, k.chainError(certs, now, reason)
	}

	var roots []*anchor
	for _, chain := range chains {
		for _, root := range k.active.roots[string(endOf(chain).Raw)] {
			if root.names.Match(subject) && !slices.Contains(roots, root) {
				roots = append(roots, root)
			}
		}
	}
	if roots == nil {
		end := endOf(chains[0])
		root := k.active.roots[string(end.Raw)][0]
		return nil, ledger.Errorf(ledger.CodeUntrustedIdentity,
			"certificate of %s chains to %s (%s), whose dn_pattern %s does not match it (use another certificate, or an admin "+
				"changes the pattern)", subject, SubjectOf(end), root.id, root.names)
	}
	return roots, nil
}

// chainError returns why the certificates do not chain to a trusted root now. The reason
// is what x509 says.
func (k *Keyring) chainError(certs []*x509.Certificate, now time.Time, reason error) error {
	always := make([]*x509.Certificate, len(certs))
	for i, cert := range certs {
		always[i] = timeless(cert)
	}
	leaf := SubjectOf(certs[0])
	if chains, err := k.activeTimeless.verify(always, now); err == nil {
		return expiredError(chains[0], now)
	}
	if _, err := k.revokedTimeless.verify(always, now); err == nil {
		return ledger.Errorf(ledger.CodeRevokedIdentity, "certificate of %s chains to a revoked root", leaf)
	}
	if chains, err := k.refusedTimeless.verify(always, now); err == nil {
		_, refused := publicKeyOf(endOf(chains[0]).PublicKey)
		return ledger.Errorf(ledger.CodeUntrustedIdentity,
			"certificate of %s chains to a root that is not supported: %v", leaf, refused)
	}

	if last, ok := k.lackedIssuer(certs, reason); ok {
		return ledger.Errorf(ledger.CodeUntrustedIdentity,
			"certificate of %s was issued by %s, which is not registered (register it as a root)",
			SubjectOf(last), nameText(last.Issuer))
	}
	return ledger.Errorf(
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
