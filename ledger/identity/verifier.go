package identity

import (
	"errors"
	"time"
)

// A RootParser parses a trusted root, the JSON file trusted_root.json of a Sigstore instance. Errors
// name the field. Package ledger/identity/sigstore has the one that programs use.
type RootParser func(document []byte) (BundleVerifier, error)

// A BundleVerifier verifies Sigstore bundles against a trusted root. It is safe for concurrent use.
type BundleVerifier interface {
	// Verify verifies a bundle with a certificate: that an authority of the trusted root issued the
	// certificate, that its key signed the bundle, and that logs and timestamp authorities of the
	// root show that it did while the certificate was valid. It does not ask who the signer is.
	// Errors may wrap ErrMalformedBundle or ErrExpiredCertificate.
	Verify(bundle []byte) (*VerifiedBundle, error)
}

var (
	// ErrMalformedBundle is the error of a bundle that cannot be read.
	ErrMalformedBundle = errors.New("the bundle is not valid")
	// ErrExpiredCertificate is the error of a bundle that was signed while its certificate was not valid.
	ErrExpiredCertificate = errors.New("the certificate was not valid when it signed")
)

// A VerifiedBundle is what a bundle proves.
type VerifiedBundle struct {
	// Leaf is the DER of the certificate of the key that signed.
	Leaf []byte
	// Message is what the key signed: the pre-authentication encoding of the DSSE envelope.
	Message, Signature []byte
	// Time is the earliest time for which a log or a timestamp authority vouches. The certificate was
	// valid then.
	Time time.Time
}

var errNoParser = errors.New("this program does not verify bundles with keyless certificates")

// parse refuses every trusted root if there is no parser.
func (p RootParser) parse(document string) (BundleVerifier, error) {
	if p == nil {
		return nil, errNoParser
	}
	return p([]byte(document))
}
