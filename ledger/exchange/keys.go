package exchange

import (
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger/internal/publickey"
)

// The limits of keys.
const (
	MaxKeySet = 64 << 10 // bytes of a set
	maxKeys   = 50       // in a set
	maxKeyID  = 256      // bytes
)

// algorithms lists the algorithms of signatures that are accepted. Those with a shared secret are
// not: an issuer's keys are public.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}
}

// Keys are the public keys of an issuer.
type Keys struct{ list []jose.JSONWebKey }

// ParseKeys parses a JSON Web Key Set. It omits weak keys, and those of kinds and uses that are not known.
// It is an error if no key is left, or if the set has a private key.
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
	return key.Valid() && len(key.KeyID) <= maxKeyID && publickey.Check(key.Key) == nil
}

// Len returns the number of keys.
func (k *Keys) Len() int { return len(k.list) }

// Verify verifies the signature of a JSON Web Token, whose algorithm must be one of those that are
// accepted, and returns its payload.
func (k *Keys) Verify(raw string) (payload []byte, err error) {
	signed, err := jose.ParseSignedCompact(raw, algorithms())
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errors.New("it is not a signed token in the compact form")
	}
	return k.verify(signed)
}

// verify returns the payload of a token that one of the keys has signed.
func (k *Keys) verify(signed *jose.JSONWebSignature) (payload []byte, err error) {
	header := signed.Signatures[0].Protected
	for _, key := range k.candidates(header.KeyID, header.Algorithm) {
		if payload, err := signed.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, errors.New("no key of the issuer has signed it")
}

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
