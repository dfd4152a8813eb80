package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Signed is a message with its signature and the data that identifies the signer.
type Signed struct {
	// Message is the signed data. For a DSSE envelope, it is the pre-authentication
	// encoding.
	Message []byte
	// Payload is the end of Message: what the message is about. A certificate can be limited to one.
	Payload   []byte
	Signature []byte
	// Hint identifies the key: a DSSE keyid or a bundle's hint.
	Hint string
	// Certificates are those in the envelope, leaf first.
	Certificates []*x509.Certificate
	// Bundle is the Sigstore bundle with the signature; nil if it is not in one.
	Bundle []byte
	// IsRecorded reports whether the signature was accepted before, perhaps by an earlier release.
	IsRecorded bool
}

// A Signer is the verified signer of an attestation.
type Signer struct {
	DN     DN
	Emails []string
	// Identity is the id of the key or root through which the signer is trusted.
	Identity string
	// May is what the identity may attest.
	May Predicates
	// Key is the SHA-256 of the signing key's DER SubjectPublicKeyInfo, as encoded by
	// x509.MarshalPKIXPublicKey.
	Key [sha256.Size]byte
}

// A voucher is an identity that vouches for a signature, as the signature's signer.
type voucher struct {
	signer Signer
	may    Predicates
	// source limits the commits of statements; nil for no limit.
	source *source
}

// A source is the commit in a keyless certificate: that of the run that signed. It is empty if the
// certificate names no commit.
type source struct{ commit string }

func (v *voucher) isFor(commit string) bool {
	return v.source == nil || v.source.commit == commit && commit != ""
}

// Vouchers are the identities that vouch for a verified signature: at least one. They are
// the active and valid identities registered with its key or, without such an identity, the
// active roots that its certificate chains to and whose DN patterns match it. So the
// registration of a key cannot be widened by a certificate for it. For a keyless certificate, they are
// the active entries of the allow-list that it matches.
type Vouchers []voucher

// Signer returns the signer of a statement about a commit with the given predicate: that of the first
// identity that may attest it, if possible one that names claims. If no identity may, it returns
// CodePredicateNotAllowed, or CodeCertificateCommit if the statement is about another commit than its keyless
// certificate.
func (v Vouchers) Signer(predicate, commit string) (Signer, error) {
	var other, allowed *voucher
	for i := range v {
		switch {
		case !v[i].may.Match(predicate):
		case !v[i].isFor(commit):
			other = &v[i]
		case allowed == nil, !allowed.may.NamesClaims(predicate) && v[i].may.NamesClaims(predicate):
			allowed = &v[i]
		}
	}
	switch {
	case allowed != nil:
		signer := allowed.signer
		signer.May = allowed.may
		return signer, nil
	case other != nil:
		return Signer{}, other.mismatch(commit)
	}

	const most = 3
	var limits []string
	for i := range v[:min(len(v), most)] {
		limits = append(limits, v[i].signer.Identity+" may attest only "+v[i].may.String())
	}
	return Signer{}, ledger.Errorf(ledger.CodePredicateNotAllowed,
		"%s may not attest %s: identity %s (to allow it, an admin adds the predicate to the identity's may: "+
			"ledgerd identity update %s --may …)",
		v[0].signer.DN, text.Clip(predicate), strings.Join(limits, ", "), v[0].signer.Identity)
}

// CheckClaims returns CodePredicateNotAllowed for a predicate of claims, unless the signer's identity names them:
// claims about several commits, and baselines.
func (s *Signer) CheckClaims(predicate string) error {
	if s.May.NamesClaims(predicate) {
		return nil
	}
	patterns := s.May.String()
	return ledger.Errorf(ledger.CodePredicateNotAllowed,
		"%s may not attest %s: no pattern of identity %s begins with %s, and %s does not include it (to allow it, an admin "+
			"adds the pattern: ledgerd identity update %s --may '%s*,%s')",
		s.DN, text.Clip(predicate), s.Identity, claimPrefix(predicate), patterns, s.Identity,
		claimPrefix(predicate), patterns)
}

// mismatch returns the error of a statement about another commit than the certificate.
func (v *voucher) mismatch(commit string) error {
	named := "names no source commit"
	if v.source.commit != "" {
		named = "is of a run on commit " + text.Clip(v.source.commit)
	}
	return ledger.Errorf(ledger.CodeCertificateCommit,
		"the statement is about commit %s, and its certificate %s (if identity %s may attest any commit, an admin adds it "+
			"again with commit: any)", text.Clip(commit), named, v.signer.Identity)
}
