package identity

import (
	"crypto/sha256"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

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

// A voucher is an identity that vouches for a signature, as the signature's signer.
type voucher struct {
	signer Signer
	may    Predicates
}

// Vouchers are the identities that vouch for a verified signature: at least one. They are
// the active and valid identities registered with its key or, without such an identity, the
// active roots that its certificate chains to and whose DN patterns match it. So the
// registration of a key cannot be widened by a certificate for it.
type Vouchers []voucher

// Signer returns the signer of a statement with the given predicate: that of the first
// identity that may attest it. If none may, it returns CodePredicateNotAllowed.
func (v Vouchers) Signer(predicate string) (Signer, error) {
	for i := range v {
		if v[i].may.Match(predicate) {
			return v[i].signer, nil
		}
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
