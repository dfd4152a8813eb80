package sigstore

import (
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// The limits of a bundle.
const (
	MaxBundle     = 4 << 20 // bytes
	maxEntries    = 8       // of transparency logs
	maxTimestamps = 4
	// maxTimestamp is the maximum size of a timestamp in bytes. A timestamp may contain certificates,
	// and a large key in one takes long to verify.
	maxTimestamp = 8 << 10
)

// A Signed is what a bundle proves.
type Signed struct {
	// Leaf is the DER of the certificate of the key that signed.
	Leaf []byte
	// Message is what the key signed: the pre-authentication encoding of the DSSE envelope.
	Message, Signature []byte
	// Time is the earliest time for which a log or a timestamp authority vouches. The certificate was
	// valid then.
	Time time.Time
}

// Verify verifies a bundle with a certificate: that an authority of the trusted root issued the
// certificate, that its key signed the bundle, and that logs and timestamp authorities of the root
// show that it did while the certificate was valid. It does not ask who the signer is.
func (r *Root) Verify(document []byte) (signed *Signed, err error) {
	if len(document) > MaxBundle {
		return nil, fmt.Errorf("%w: it has %d bytes, and a bundle with a keyless certificate may have %d", ErrMalformed,
			len(document), MaxBundle)
	}
	err = guard(func() error {
		signed, err = r.verify(document)
		return err
	})
	return signed, err
}

func (r *Root) verify(document []byte) (*Signed, error) {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(document); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrMalformed, clip(err))
	}
	if err := checkMaterial(&b); err != nil {
		return nil, err
	}
	content, err := b.VerificationContent()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrMalformed, clip(err))
	}
	leaf := content.Certificate()
	if leaf == nil {
		return nil, fmt.Errorf("%w: it has no certificate", ErrMalformed)
	}

	result, err := r.verifier.Verify(&b, verify.NewPolicy(verify.WithoutArtifactUnsafe(),
		verify.WithoutIdentitiesUnsafe()))
	if err != nil {
		return nil, explain(r.material, &b, leaf, err)
	}
	envelope, err := b.Envelope()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrMalformed, clip(err))
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrMalformed, clip(err))
	}
	signed := &Signed{Leaf: leaf.Raw, Message: dsse.PAE(envelope.PayloadType, payload), Signature: envelope.Signature()}
	signed.Time = slices.MinFunc(result.VerifiedTimestamps, func(a, b verify.TimestampVerificationResult) int {
		return a.Timestamp.Compare(b.Timestamp)
	}).Timestamp
	if err := checkTime(leaf, signed.Time); err != nil {
		return nil, err
	}
	return signed, nil
}

// checkMaterial limits what is verified of a bundle.
func checkMaterial(b *bundle.Bundle) error {
	material := b.GetVerificationMaterial()
	if n := len(material.GetTlogEntries()); n > maxEntries {
		return fmt.Errorf("%w: it has %d log entries: at most %d", ErrMalformed, n, maxEntries)
	}
	timestamps := material.GetTimestampVerificationData().GetRfc3161Timestamps()
	if len(timestamps) > maxTimestamps {
		return fmt.Errorf("%w: it has %d timestamps: at most %d", ErrMalformed, len(timestamps), maxTimestamps)
	}
	for _, timestamp := range timestamps {
		if n := len(timestamp.GetSignedTimestamp()); n > maxTimestamp {
			return fmt.Errorf("%w: it has a timestamp of %d bytes: at most %d", ErrMalformed, n, maxTimestamp)
		}
	}
	return nil
}
