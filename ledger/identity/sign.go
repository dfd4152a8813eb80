package identity

import (
	"crypto"
	"crypto/rand"
	"fmt"
)

// Sign signs a message with the algorithm that [Keyring.Verify] expects for the type of
// the key.
func Sign(key crypto.Signer, signing []byte) ([]byte, error) {
	public, err := publicKeyOf(key.Public())
	if err != nil {
		return nil, err
	}
	hash := crypto.Hash(0) // Ed25519 does its own hashing
	switch public := public.(type) {
	case ecdsaKey:
		hash = public.hash
	case rsaKey:
		hash = crypto.SHA256
	}
	sig, err := crypto.SignMessage(key, rand.Reader, signing, hash)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return sig, nil
}
