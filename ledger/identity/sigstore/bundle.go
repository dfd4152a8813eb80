package sigstore

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/ledgerd/ledgerd/ledger/identity"
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

// Verify verifies a bundle, as identity.BundleVerifier says.
func (r *trustedRoot) Verify(document []byte) (signed *identity.VerifiedBundle, err error) {
	if len(document) > MaxBundle {
		return nil, fmt.Errorf("%w: it has %d bytes, and a bundle with a keyless certificate may have %d",
			identity.ErrMalformedBundle, len(document), MaxBundle)
	}
	err = guard(func() error {
		signed, err = r.verify(document)
		return err
	})
	return signed, err
}

func (r *trustedRoot) verify(document []byte) (*identity.VerifiedBundle, error) {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(document); err != nil {
		return nil, fmt.Errorf("%w: %s", identity.ErrMalformedBundle, clip(err))
	}
	if err := checkMaterial(&b); err != nil {
		return nil, err
	}
	content, err := b.VerificationContent()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", identity.ErrMalformedBundle, clip(err))
	}
	leaf := content.Certificate()
	if leaf == nil {
		return nil, fmt.Errorf("%w: it has no certificate", identity.ErrMalformedBundle)
	}

	result, err := r.verifier.Verify(&b, verify.NewPolicy(verify.WithoutArtifactUnsafe(),
		verify.WithoutIdentitiesUnsafe()))
	if err != nil {
		return nil, explain(r.material, &b, leaf, err)
	}
	envelope, err := b.Envelope()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", identity.ErrMalformedBundle, clip(err))
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", identity.ErrMalformedBundle, clip(err))
	}
	signed := &identity.VerifiedBundle{
		Leaf: leaf.Raw, Message: dsse.PAE(envelope.PayloadType, payload), Signature: envelope.Signature(),
	}
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
		return fmt.Errorf("%w: it has %d log entries: at most %d", identity.ErrMalformedBundle, n, maxEntries)
	}
	timestamps := material.GetTimestampVerificationData().GetRfc3161Timestamps()
	if len(timestamps) > maxTimestamps {
		return fmt.Errorf("%w: it has %d timestamps: at most %d", identity.ErrMalformedBundle, len(timestamps),
			maxTimestamps)
	}
	for _, timestamp := range timestamps {
		if n := len(timestamp.GetSignedTimestamp()); n > maxTimestamp {
			return fmt.Errorf("%w: it has a timestamp of %d bytes: at most %d", identity.ErrMalformedBundle, n, maxTimestamp)
		}
	}
	return nil
}
