package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/identity/sshkey"
	"github.com/ledgerd/ledgerd/ledger/internal/publickey"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A publicKey is a key of a supported type.
type publicKey interface {
	// verify reports whether sig is a signature of m by this key, with any of the
	// algorithms for its type.
	verify(m *message, sig []byte) bool
}

// publicKeyOf returns pub as a publicKey, or an error if its type is not supported or
// the key is too weak.
func publicKeyOf(pub crypto.PublicKey) (publicKey, error) {
	if err := publickey.Check(pub); err != nil {
		return nil, err
	}
	switch pub := pub.(type) {
	case ed25519.PublicKey:
		return ed25519Key(pub), nil
	case *ecdsa.PublicKey:
		return ecdsaKeyOf(pub), nil
	default:
		return rsaKey{pub.(*rsa.PublicKey)}, nil
	}
}

// An ed25519Key signs the message (Ed25519) or its SHA-512 (Ed25519ph).
type ed25519Key ed25519.PublicKey

func (k ed25519Key) verify(m *message, sig []byte) bool {
	if len(sig) != ed25519.SignatureSize {
		return false
	}
	if ed25519.Verify(ed25519.PublicKey(k), m.text, sig) {
		return true
	}
	prehashed := &ed25519.Options{Hash: crypto.SHA512}
	return ed25519.VerifyWithOptions(ed25519.PublicKey(k), m.digest(crypto.SHA512), sig, prehashed) == nil
}

// An ecdsaKey signs the hash that matches its curve, or SHA-256, which some clients use
// for every curve.
type ecdsaKey struct {
	pub  *ecdsa.PublicKey
	hash crypto.Hash
}

func ecdsaKeyOf(pub *ecdsa.PublicKey) ecdsaKey {
	switch pub.Curve {
	case elliptic.P256():
		return ecdsaKey{pub, crypto.SHA256}
	case elliptic.P384():
		return ecdsaKey{pub, crypto.SHA384}
	default:
		return ecdsaKey{pub, crypto.SHA512}
	}
}

func (k ecdsaKey) verify(m *message, sig []byte) bool {
	// The two encodings overlap: either may be as long as, and begin like, the other.
	isASN1 := len(sig) > 0 && sig[0] == 0x30 // a sequence of two integers
	r, s, isRaw := k.splitRaw(sig)
	matches := func(digest []byte) bool {
		return isASN1 && ecdsa.VerifyASN1(k.pub, digest, sig) || isRaw && ecdsa.Verify(k.pub, digest, r, s)
	}

	if matches(m.digest(k.hash)) {
		return true
	}
	return k.hash != crypto.SHA256 && matches(m.digest(crypto.SHA256))
}

// splitRaw returns the two integers of a raw signature, which are as long as the curve's
// order (IEEE P1363). WebCrypto and key management services write this encoding.
func (k ecdsaKey) splitRaw(sig []byte) (r, s *big.Int, ok bool) {
	size := (k.pub.Curve.Params().BitSize + 7) / 8
	if len(sig) != 2*size {
		return nil, nil, false
	}
	return new(big.Int).SetBytes(sig[:size]), new(big.Int).SetBytes(sig[size:]), true
}

// An rsaKey signs the SHA-256, with PKCS #1 v1.5 or PSS.
type rsaKey struct{ pub *rsa.PublicKey }

func (k rsaKey) verify(m *message, sig []byte) bool {
	if len(sig) != k.pub.Size() {
		return false
	}
	digest := m.digest(crypto.SHA256)
	return rsa.VerifyPKCS1v15(k.pub, crypto.SHA256, digest, sig) == nil ||
		rsa.VerifyPSS(k.pub, crypto.SHA256, digest, sig, nil) == nil
}

// A message is the signed data. It caches its digests, so that trying many keys hashes
// it once. Ed25519 still hashes it for each key, because its hash includes the key.
type message struct {
	text                   []byte
	sha256, sha384, sha512 []byte
}

func (m *message) digest(h crypto.Hash) []byte {
	switch h {
	case crypto.SHA256:
		if m.sha256 == nil {
			sum := sha256.Sum256(m.text)
			m.sha256 = sum[:]
		}
		return m.sha256
	case crypto.SHA384:
		if m.sha384 == nil {
			sum := sha512.Sum384(m.text)
			m.sha384 = sum[:]
		}
		return m.sha384
	default:
		if m.sha512 == nil {
			sum := sha512.Sum512(m.text)
			m.sha512 = sum[:]
		}
		return m.sha512
	}
}

// PublicPEM returns a public key in PEM.
func PublicPEM(pub crypto.PublicKey) (string, error) {
	_, spki, err := DigestKey(pub)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})), nil
}

// Fingerprint returns the hex SHA-256 of the key's DER SubjectPublicKeyInfo. Identities
// and the keyids of DSSE envelopes identify a key by it.
func Fingerprint(pub crypto.PublicKey) (string, error) {
	digest, _, err := DigestKey(pub)
	if err != nil {
		return "", fmt.Errorf("fingerprint: %w", err)
	}
	return hex.EncodeToString(digest[:]), nil
}

// DigestKey returns the DER SubjectPublicKeyInfo of a key and its SHA-256. It re-encodes
// the key, because a certificate may use another encoding of the same key.
func DigestKey(pub crypto.PublicKey) (digest [sha256.Size]byte, spki []byte, err error) {
	spki, err = x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return digest, nil, fmt.Errorf("public key: %w", err)
	}
	return sha256.Sum256(spki), spki, nil
}

// ParsePrivateKey parses a private key in PEM: PKCS #8, SEC 1, PKCS #1, or the format of OpenSSH. Its
// type must be one that Sign supports. Only a key of OpenSSH may be encrypted: then passphrase is called
// for its passphrase, unless it is nil.
func ParsePrivateKey(text []byte, passphrase func() ([]byte, error)) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	for block != nil && block.Type == "EC PARAMETERS" { // openssl writes them first
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("no private key found: expected PEM")
	}
	key, err := parsePrivateBlock(block, passphrase)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("unsupported private key type: it cannot sign")
	}
	if _, err := publicKeyOf(signer.Public()); err != nil {
		return nil, err
	}
	return signer, nil
}

func parsePrivateBlock(block *pem.Block, passphrase func() ([]byte, error)) (key any, err error) {
	switch {
	case block.Type == sshkey.PrivateType:
		return sshkey.ParsePrivate(block, passphrase)
	case block.Type == "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case strings.HasPrefix(block.Type, "ENCRYPTED ") || block.Headers["DEK-Info"] != "":
		return nil, errors.New("the private key is encrypted (decrypt it, e.g. to plain PKCS #8)")
	case block.Type == "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case block.Type == "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("PEM block of type %q is not a private key", text.Clip(block.Type))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse private key: %w", err)
	}
	return key, nil
}

// MaxChain is the maximum number of certificates in an envelope.
const MaxChain = 10

// ParseCertificates parses one or more certificates in PEM, leaf first.
func ParseCertificates(pemText []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(pemText); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block of type %q is not a certificate", text.Clip(block.Type))
		}
		if len(certs) == MaxChain {
			return nil, fmt.Errorf("too many certificates: at most %d", MaxChain)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("cannot parse certificate %d: %w", len(certs)+1, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate found: expected PEM")
	}
	return certs, nil
}
