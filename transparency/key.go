package transparency

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/store"
)

// A Key is the key of a log.
type Key struct {
	note.Signer
	Verifier note.Verifier
	VKey     string // the verifier key as text
	derived  bool   // from the seed
}

// publicKey returns the key as a DER SubjectPublicKeyInfo.
func (k Key) publicKey() ([]byte, error) {
	_, encoded, _ := strings.Cut(strings.TrimPrefix(k.VKey, k.Name()+"+"), "+")
	public, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(public) != 1+ed25519.PublicKeySize {
		return nil, fmt.Errorf("%s is not an Ed25519 key", k.VKey)
	}
	return x509.MarshalPKIXPublicKey(ed25519.PublicKey(public[1:]))
}

// isOf returns an error if the key is not the one of a log.
func (k Key) isOf(l store.Log) error {
	switch {
	case k.Name() == l.Origin && k.VKey == l.VKey:
		return nil
	case k.derived:
		return fmt.Errorf("the seed in log.key_dir is not the one of the log (it gives the key %s, not %s): bring the "+
			"seed or the key of the log back, or run 'ledgerd log new-epoch %s --reason TEXT'", k.VKey, l.VKey, l.Org)
	}
	return fmt.Errorf("the key in log.key_dir is not the one of the log (%s, not %s): "+
		"bring it back, or run 'ledgerd log new-epoch %s --reason TEXT'", k.VKey, l.VKey, l.Org)
}

// parseKey parses a signer key of a note.
func parseKey(skey string) (key Key, err error) {
	if key.Signer, err = note.NewSigner(skey); err != nil {
		return key, err
	}
	if key.VKey, err = verifierKey(skey); err != nil {
		return key, err
	}
	key.Verifier, err = note.NewVerifier(key.VKey)
	return key, err
}

// verifierKey returns the verifier key of a signer key of a note, which is an Ed25519 key.
func verifierKey(skey string) (string, error) {
	parts := strings.SplitN(skey, "+", 5)
	if len(parts) != 5 {
		return "", errors.New("it is not a signer key of a note")
	}
	seed, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return "", errors.New("it is not an Ed25519 signer key of a note")
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(parts[2], public)
}
