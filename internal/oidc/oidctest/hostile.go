package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/ledgerd/ledgerd/internal/must"
)

// TokenWithID signs claims with the current key under another key ID.
func (p *Provider) TokenWithID(id string, claims map[string]any) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return Sign(p.t, jose.ES256, p.key, id, claims)
}

// Raw signs a payload as it is.
func (p *Provider) Raw(payload string) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, nil)
	must.OK(p.t, err)
	signed, err := signer.Sign([]byte(payload))
	must.OK(p.t, err)
	token, err := signed.CompactSerialize()
	must.OK(p.t, err)
	return token
}

// WithHeader signs claims with the current key, ES256 and the given header. If isRaw, the claims are
// signed without their encoding (RFC 7797).
func (p *Provider) WithHeader(header string, claims map[string]any, isRaw bool) string {
	p.t.Helper()
	payload, err := json.Marshal(claims)
	must.OK(p.t, err)
	encoded := Encode(header) + "." + Encode(string(payload))
	signed := encoded
	if isRaw {
		signed = Encode(header) + "." + string(payload)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, digest[:])
	must.OK(p.t, err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return encoded + "." + Encode(string(signature))
}

// Encode encodes a part of a token.
func Encode(part string) string { return base64.RawURLEncoding.EncodeToString([]byte(part)) }

// Confused returns a token that is signed with HS256, with the text of a public key set as the
// secret.
func Confused(t testing.TB, secret string, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	must.OK(t, err)
	text := Encode(`{"alg":"HS256","kid":"key-1","typ":"JWT"}`) + "." + Encode(string(payload))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + Encode(string(mac.Sum(nil)))
}

// KeyOf returns the public key of a key as a JSON Web Key.
func KeyOf(t testing.TB, key crypto.Signer) string { return jsonKey(t, key.Public()) }

// PrivateKeyOf returns a private key as a JSON Web Key.
func PrivateKeyOf(t testing.TB, key crypto.Signer) string { return jsonKey(t, key) }

func jsonKey(t testing.TB, key any) string {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKey{Key: key})
	must.OK(t, err)
	return string(text)
}

// NewRSAKey returns a new RSA key, which may be too weak.
func NewRSAKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	must.OK(t, err)
	return key
}

// SigningKeys returns a key for each algorithm.
func SigningKeys(t testing.TB) map[jose.SignatureAlgorithm]crypto.Signer {
	t.Helper()
	rsaKey := NewRSAKey(t, 2048)
	keys := map[jose.SignatureAlgorithm]crypto.Signer{}
	for _, algorithm := range []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	} {
		keys[algorithm] = rsaKey
	}
	for algorithm, curve := range map[jose.SignatureAlgorithm]elliptic.Curve{
		jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521(),
	} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		must.OK(t, err)
		keys[algorithm] = key
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must.OK(t, err)
	keys[jose.EdDSA] = private
	return keys
}
