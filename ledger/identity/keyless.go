package identity

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// keylessSigners are the entries of an org's allow-list and its trusted roots.
type keylessSigners struct {
	entries []*keylessEntry
	roots   map[string][]*versionedRoot // by name, newest first
}

// A keylessEntry is an identity of kind sigstore.
type keylessEntry struct {
	id      string
	dn      DN
	may     Predicates
	entry   ledger.SigstoreEntry
	revoked bool
}

// A versionedRoot is a version of a trusted root.
type versionedRoot struct {
	version int
	root    BundleVerifier
	refused error // why there is no root, if an earlier release accepted it
}

// addRoots adds versions of trusted roots, except removals.
func (s *keylessSigners) addRoots(parse RootParser, versions []TrustedRoot) {
	if len(s.entries) == 0 {
		return // no entry uses them
	}
	s.roots = make(map[string][]*versionedRoot)
	for _, v := range versions {
		if v.Document == "" {
			continue
		}
		added := &versionedRoot{version: v.Version}
		added.root, added.refused = parse.parse(v.Document)
		s.roots[v.Name] = append(s.roots[v.Name], added)
	}
	for _, list := range s.roots {
		slices.SortFunc(list, func(a, b *versionedRoot) int { return cmp.Compare(b.version, a.version) })
	}
}

func (s *keylessSigners) add(id *Identity) error {
	if id.Sigstore == nil {
		return errors.New("it has no entry for keyless signers")
	}
	dn, err := ParseDN(id.DN)
	if err != nil {
		return err
	}
	s.entries = append(s.entries, &keylessEntry{id.ID, dn, id.May, *id.Sigstore, id.RevokedAt != 0})
	return nil
}

// vouchers returns the key of a keyless certificate, and the entries that admit it. digest is that of
// its key. The certificate must be valid at the time that the bundle proves, not now.
func (s *keylessSigners) vouchers(signed *Signed, digest [sha256.Size]byte) (publicKey, Vouchers, error) {
	if len(s.entries) == 0 {
		return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity,
			"the org admits no keyless Sigstore certificates, and roots do not vouch for them, because anyone can get one (an "+
				"admin adds an entry: ledgerd identity add --sigstore …, or sign with a registered key)")
	}
	leaf := signed.Certificates[0]
	if signed.Bundle == nil {
		return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity,
			"no log entry and no timestamp proves when the keyless certificate signed (send the Sigstore bundle, which has "+
				"them)")
	}
	certificate, err := CertificateOf(leaf)
	if err != nil {
		return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "%v", err)
	}
	entries, err := s.admitting(&certificate)
	if err != nil {
		return nil, nil, err
	}

	key, err := publicKeyOf(leaf.PublicKey)
	if err != nil {
		return nil, nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "the keyless certificate: %v", err)
	}
	if !key.verify(&message{text: signed.Message}, signed.Signature) {
		return nil, nil, ledger.Errorf(ledger.CodeInvalidSignature,
			"the signature does not match this payload and the key of the keyless certificate of %s",
			clipName(certificate.Subject))
	}
	vouchers, err := s.vouch(signed, entries, &certificate, digest)
	return key, vouchers, err
}

// admitting returns the active entries that match a certificate: at least one.
func (s *keylessSigners) admitting(c *Certificate) (entries []*keylessEntry, err error) {
	var nearest *keylessEntry
	most := -1
	for _, e := range s.entries {
		name, _, _, matched := mismatch(&e.entry, c)
		switch {
		case name == "" && !e.revoked:
			entries = append(entries, e)
		case name == "" && err == nil:
			err = ledger.Errorf(ledger.CodeRevokedIdentity, "identity %s (%s), which admits the certificate of %s, was revoked",
				e.id, e.dn, clipName(c.Subject))
		case !e.revoked && matched > most:
			nearest, most = e, matched
		}
	}
	switch {
	case len(entries) > 0:
		return entries, nil
	case err != nil:
		return nil, err
	case nearest == nil:
		return nil, ledger.Errorf(ledger.CodeRevokedIdentity, "all entries of the org for keyless certificates were revoked")
	}

	name, want, got, _ := mismatch(&nearest.entry, c)
	return nil, ledger.Errorf(ledger.CodeUntrustedIdentity,
		"no entry of the org admits the keyless certificate of %s: the nearest, %s (%s), wants the %s %s, and the "+
			"certificate has %s", clipName(c.Subject), nearest.id, nearest.dn, name, quoteName(want), quoteName(got))
}

// clipName clips a name in a certificate, such as the URL of a workflow, to a length that such names seldom have.
func clipName(name string) string { return text.ClipAt(name, 300) }

func quoteName(name string) string {
	if name == "" {
		return "none"
	}
	return strconv.Quote(clipName(name))
}

// vouch returns the vouchers of those entries whose trusted root verifies the bundle. Without one, the
// error is that of the first entry.
func (s *keylessSigners) vouch(
	signed *Signed, entries []*keylessEntry, c *Certificate, digest [sha256.Size]byte,
) (vouchers Vouchers, err error) {
	results := make(map[string]error, len(entries)) // by name of the trusted root
	for _, e := range entries {
		name := e.entry.TrustedRoot
		result, ok := results[name]
		if !ok {
			result = s.verify(signed, name)
			results[name] = result
		}
		if result != nil {
			err = cmp.Or(err, result)
			continue
		}

		v := voucher{signer: Signer{DN: e.dn, Emails: emailsOf(signed.Certificates[0]), Identity: e.id, Key: digest},
			may: e.may}
		if e.entry.Commit != ledger.CommitAny {
			v.source = &source{c.Commit}
		}
		vouchers = append(vouchers, v)
	}
	if vouchers != nil {
		return vouchers, nil
	}
	return nil, err
}

// verify verifies a bundle with a trusted root: with its version in effect or, if there are several,
// with any.
func (s *keylessSigners) verify(signed *Signed, name string) (err error) {
	for _, v := range s.roots[name] {
		if v.refused != nil {
			err = cmp.Or(err, bundleError(name, v.version, v.refused))
			continue
		}
		verified, verifyErr := v.root.Verify(signed.Bundle)
		if verifyErr == nil {
			return sameSigned(signed, verified)
		}
		err = cmp.Or(err, bundleError(name, v.version, verifyErr))
	}
	if err == nil {
		return ledger.Errorf(ledger.CodeUntrustedIdentity,
			"the org has no trusted root %s (an admin sets it: ledgerd trusted-root set %s --file trusted_root.json)", name,
			name)
	}
	return err
}

// bundleError returns the error of a bundle that a version of a trusted root does not verify.
func bundleError(name string, version int, err error) error {
	code := ledger.CodeUntrustedIdentity
	switch {
	case errors.Is(err, ErrMalformedBundle):
		return ledger.Errorf(ledger.CodeInvalidEnvelope, "%v", err)
	case errors.Is(err, ErrExpiredCertificate):
		code = ledger.CodeExpiredCertificate
	}
	return ledger.Errorf(code, "trusted root %s, version %d: %v", name, version, err)
}

// sameSigned returns an error unless a bundle was read in the same way here and by the library: parsers
// of JSON can differ.
func sameSigned(signed *Signed, verified *VerifiedBundle) error {
	if bytes.Equal(verified.Leaf, signed.Certificates[0].Raw) && bytes.Equal(verified.Signature, signed.Signature) &&
		bytes.Equal(verified.Message, signed.Message) {
		return nil
	}
	return ledger.Errorf(ledger.CodeInvalidEnvelope, "the bundle has several meanings: parsers read its parts differently")
}
