// Command cosign-verify verifies the signature of a DSSE envelope with cosign's own package. It is a
// module of its own, because cosign has many dependencies.
//
// Usage: cosign-verify KEY.pem ENVELOPE.json
package main

import (
	"context"
	"crypto"
	"fmt"
	"log"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: cosign-verify KEY.pem ENVELOPE.json")
	}
	if err := verify(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
	fmt.Println("verified")
}

// verify verifies the envelope in a file with the public key in another.
func verify(ctx context.Context, keyFile, envelopeFile string) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return fmt.Errorf("parse the key: %w", err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return fmt.Errorf("load the key: %w", err)
	}
	envelope, err := os.ReadFile(envelopeFile)
	if err != nil {
		return err
	}

	attestation, err := static.NewAttestation(envelope)
	if err != nil {
		return fmt.Errorf("read the envelope: %w", err)
	}
	// The key is that of the certificate, and the log is ledgerd's.
	options := &cosign.CheckOpts{SigVerifier: verifier, IgnoreTlog: true, IgnoreSCT: true, Offline: true}
	if _, err := cosign.VerifyBlobAttestation(ctx, attestation, v1.Hash{}, options); err != nil {
		return fmt.Errorf("verify the envelope: %w", err)
	}
	return nil
}
