package exchange

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The limits of keys.
const (
	MaxKeySet  = 64 << 10 // bytes of a set
	maxKeys    = 50       // in a set
	maxKeyID   = 256      // bytes
	minRSABits = 2048
	maxRSABits = 8192
)

// algorithms lists the algorithms of signatures that are accepted. Those with a shared secret are
// not: an issuer's keys are public.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}
}

// Keys are the public keys of an issuer.
type Keys struct{ list []jose.JSONWebKey }

// ParseKeys parses a JSON Web Key Set. It omits keys of kinds and uses that are not known. It is an
// error if no key is left, or if the set has a private key.
func ParseKeys(jwks []byte) (*Keys, error) {
	if len(jwks) > MaxKeySet {
		return nil, fmt.Errorf("the key set is too large: at most %d bytes", MaxKeySet)
	}
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(jwks, &set); err != nil {
		return nil, errors.New(`not a JSON Web Key Set (use {"keys": […]})`)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys, at most %d", len(set.Keys), maxKeys)
	}

	keys := &Keys{}
	for i, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) != nil || key.Use != "" && key.Use != "sig" {
			continue
		}
		if !key.IsPublic() {
			return nil, fmt.Errorf("keys[%d] is not a public key (remove it, and replace it if it is in use)", i)
		}
		if isStrong(key) {
			keys.list = append(keys.list, key)
		}
	}
	if len(keys.list) == 0 {
		return nil, errors.New("the key set has no RSA key of 2048 to 8192 bits, no EC key and no Ed25519 key for signatures")
	}
	return keys, nil
}

// isStrong reports whether a key can verify tokens.
func isStrong(key jose.JSONWebKey) bool {
	if !key.Valid() || len(key.KeyID) > maxKeyID {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSABits && public.N.BitLen() <= maxRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// Len returns the number of keys.
func (k *Keys) Len() int { return len(k.list) }

// candidates returns the keys that may have signed with a key ID and an algorithm. Without a key
// ID, these are all keys for the algorithm.
func (k *Keys) candidates(id, algorithm string) (list []jose.JSONWebKey) {
	for _, key := range k.list {
		if (id == "" || key.KeyID == id) && (key.Algorithm == "" || key.Algorithm == algorithm) {
			list = append(list, key)
		}
	}
	return list
}
