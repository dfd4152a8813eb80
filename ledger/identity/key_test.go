package identity_test

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// signedBy returns an envelope with the signature that sign returns for the PAE.
func signedBy(sign func(pae []byte) []byte) []byte {
	return ledgertest.DSSE(ledgertest.Passed(), sign(attestation.PAE(attestation.StatementType, ledgertest.Passed())))
}

func hashed(h crypto.Hash, data []byte) []byte {
	w := h.New()
	w.Write(data)
	return w.Sum(nil)
}

// Every supported algorithm is accepted, with keys as cosign, witness and openssl create
// them.
func TestVerifyKeyKinds(t *testing.T) {
	edPublic, edKey, _ := ed25519.GenerateKey(rand.Reader)
	p256, p384, p521 := ledgertest.NewP256(), ledgertest.Must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		ledgertest.Must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	rsaKey := ledgertest.Must(rsa.GenerateKey(rand.Reader, 2048))

	ed := func(o *ed25519.Options) func([]byte) []byte {
		return func(m []byte) []byte {
			if o.Hash != 0 {
				m = hashed(o.Hash, m)
			}
			return ledgertest.Must(edKey.Sign(rand.Reader, m, o))
		}
	}
	ec := func(key *ecdsa.PrivateKey, h crypto.Hash) func([]byte) []byte {
		return func(m []byte) []byte { return ledgertest.Must(ecdsa.SignASN1(rand.Reader, key, hashed(h, m))) }
	}
	raw := func(key *ecdsa.PrivateKey, h crypto.Hash) func([]byte) []byte {
		return func(m []byte) []byte { return rawOf(key, ec(key, h)(m)) }
	}
	pkcs1 := func(h crypto.Hash) func([]byte) []byte {
		return func(m []byte) []byte { return ledgertest.Must(rsa.SignPKCS1v15(rand.Reader, rsaKey, h, hashed(h, m))) }
	}
	pss := func(salt int) func([]byte) []byte {
		return func(m []byte) []byte {
			return ledgertest.Must(
				rsa.SignPSS(rand.Reader, rsaKey, crypto.SHA256, hashed(crypto.SHA256, m), &rsa.PSSOptions{SaltLength: salt}))
		}
	}
	tests := []struct {
		name string
		pub  crypto.PublicKey
		sign func(pae []byte) []byte
		want ledger.Code
	}{
		{"Ed25519", edPublic, ed(&ed25519.Options{}), ""},
		{"Ed25519ph, like cosign", edPublic, ed(&ed25519.Options{Hash: crypto.SHA512}), ""},
		{"Ed25519ctx", edPublic, ed(&ed25519.Options{Context: "other"}), ledger.CodeUntrustedIdentity},
		{"Ed25519ph with a context", edPublic, ed(&ed25519.Options{Hash: crypto.SHA512, Context: "other"}),
			ledger.CodeUntrustedIdentity},
		{"P-256 with SHA-256", &p256.PublicKey, ec(p256, crypto.SHA256), ""},
		{"P-256 with SHA-512", &p256.PublicKey, ec(p256, crypto.SHA512), ledger.CodeUntrustedIdentity},
		{"P-384 with SHA-384", &p384.PublicKey, ec(p384, crypto.SHA384), ""},
		{"P-384 with SHA-256", &p384.PublicKey, ec(p384, crypto.SHA256), ""},
		{"P-384 with SHA-512", &p384.PublicKey, ec(p384, crypto.SHA512), ledger.CodeUntrustedIdentity},
		{"P-521 with SHA-512", &p521.PublicKey, ec(p521, crypto.SHA512), ""},
		{"P-521 with SHA-256", &p521.PublicKey, ec(p521, crypto.SHA256), ""},
		{"P-256 with SHA-256, raw, like WebCrypto", &p256.PublicKey, raw(p256, crypto.SHA256), ""},
		{"P-256 with SHA-512, raw", &p256.PublicKey, raw(p256, crypto.SHA512), ledger.CodeUntrustedIdentity},
		{"P-384 with SHA-384, raw", &p384.PublicKey, raw(p384, crypto.SHA384), ""},
		{"P-384 with SHA-256, raw", &p384.PublicKey, raw(p384, crypto.SHA256), ""},
		{"P-384 with SHA-512, raw", &p384.PublicKey, raw(p384, crypto.SHA512), ledger.CodeUntrustedIdentity},
		{"P-521 with SHA-512, raw", &p521.PublicKey, raw(p521, crypto.SHA512), ""},
		{"P-521 with SHA-256, raw", &p521.PublicKey, raw(p521, crypto.SHA256), ""},
		{"RSA PKCS #1 v1.5", &rsaKey.PublicKey, pkcs1(crypto.SHA256), ""},
		{"RSA PKCS #1 v1.5 with SHA-512", &rsaKey.PublicKey, pkcs1(crypto.SHA512), ledger.CodeUntrustedIdentity},
		{"RSA PSS, salt of the hash's length", &rsaKey.PublicKey, pss(rsa.PSSSaltLengthEqualsHash), ""},
		{"RSA PSS, longest salt, like witness", &rsaKey.PublicKey, pss(rsa.PSSSaltLengthAuto), ""},
	}
	// Register all of them, so that each is also found among the others.
	var ids []identity.Identity
	for _, test := range tests {
		id := ledgertest.KeyIdentity(test.pub)
		id.ID = "idn_" + test.name
		ids = append(ids, id)
	}
	org := ledgertest.Keyring(ids...)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := attestation.Verify(signedBy(test.sign), ledgertest.Keyring(ledgertest.KeyIdentity(test.pub)),
				ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
			_, err = attestation.Verify(signedBy(test.sign), org, ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
		})
	}
}

// rawOf returns an ASN.1 signature as raw r‖s.
func rawOf(key *ecdsa.PrivateKey, sig []byte) []byte {
	var ints struct{ R, S *big.Int }
	ledgertest.Must(asn1.Unmarshal(sig, &ints))
	size := (key.Curve.Params().BitSize + 7) / 8
	return append(ints.R.FillBytes(make([]byte, size)), ints.S.FillBytes(make([]byte, size))...)
}

// A raw ECDSA signature is accepted, even if it begins like one in ASN.1.
func TestVerifyRawSignatures(t *testing.T) {
	key := ledgertest.NewP256()
	keys := ledgertest.Keyring(ledgertest.KeyIdentity(key.Public()))
	verify := func(sig []byte) error {
		_, err := attestation.Verify(signedBy(func([]byte) []byte { return sig }), keys, ledgertest.Now)
		return err
	}
	digest := hashed(crypto.SHA256, attestation.PAE(attestation.StatementType, ledgertest.Passed()))

	for {
		sig := ledgertest.Must(ecdsa.SignASN1(rand.Reader, key, digest))
		raw := rawOf(key, sig)
		if raw[0] != 0x30 {
			continue
		}
		if err := verify(raw); err != nil {
			t.Errorf("raw signature %x: %v", raw, err)
		}
		for name, odd := range map[string][]byte{
			"one byte short": raw[:63], "one byte more": append(slices.Clone(raw), 0), "half": raw[:32],
			"r and s swapped": append(slices.Clone(raw[32:]), raw[:32]...),
			"r only":          append(slices.Clone(raw[:32]), make([]byte, 32)...),
			"s only":          append(make([]byte, 32), raw[32:]...),
		} {
			ledgertest.WantCode(t, verify(odd), ledger.CodeUntrustedIdentity)
			if t.Failed() {
				t.Fatal(name)
			}
		}
		break
	}
}

// An ASN.1 signature of 64 bytes, as long as a raw one, is accepted. Its integers have 29
// bytes each, which does not happen by chance: the key was computed for the signature.
func TestVerifyShortSignature(t *testing.T) {
	pub := ledgertest.Must(ecdsa.ParseUncompressedPublicKey(elliptic.P256(), ledgertest.Must(hex.DecodeString(
		"0496de2646f5c9c4c05abdb66e577209c42af16d94417268384999377c7b571ff02e08b9187755918f"+
			"79d93484fed315d5d973ba6e534f59a8e7bbcef2a3affabc"))))
	sig := ledgertest.Must(hex.DecodeString("303e021d11000000000000000000000000000000000000000000000000000000" +
		"01021d2200000000000000000000000000000000000000000000000000000001"))
	keys := ledgertest.Keyring(ledgertest.KeyIdentity(pub))
	for message, want := range map[string]ledger.Code{"x": "", "y": ledger.CodeUntrustedIdentity} {
		_, err := keys.Verify(&identity.Signed{Message: []byte(message), Signature: sig}, ledgertest.Now.Std())
		ledgertest.WantCode(t, err, want)
	}
	if len(sig) != 64 {
		t.Errorf("the signature has %d bytes", len(sig))
	}
}

// Malformed signatures are refused without a panic.
func TestVerifyOddSignatures(t *testing.T) {
	edPublic, _, _ := ed25519.GenerateKey(rand.Reader)
	rsaKey := ledgertest.Must(rsa.GenerateKey(rand.Reader, 2048))
	org := ledgertest.Keyring(ledgertest.KeyIdentity(edPublic), ledgertest.KeyIdentity(ledgertest.NewP256().Public()),
		ledgertest.KeyIdentity(rsaKey.Public()))
	for _, sig := range []string{"\x00", "0", "0\x06\x02\x01\x00\x02\x01\x00", strings.Repeat("\x00", 64),
		strings.Repeat("\x00", 256), strings.Repeat("\xff", 256), strings.Repeat("0", 40_000)} {
		_, err := attestation.Verify(ledgertest.DSSE(ledgertest.Passed(), []byte(sig)), org, ledgertest.Now)
		ledgertest.WantCode(t, err, ledger.CodeUntrustedIdentity)
	}
}

func TestKeyKindsRefused(t *testing.T) {
	refused := map[string]struct {
		pub    crypto.PublicKey
		reason string
	}{
		"RSA 1024":  {&ledgertest.Must(rsa.GenerateKey(rand.Reader, 1024)).PublicKey, "1024 bits"},
		"RSA 8193":  {&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 8192, 1), E: 65537}, "8193 bits"},
		"P-224":     {ledgertest.Must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)).Public(), "P-256, P-384 or P-521"},
		"X25519":    {ledgertest.Must(ecdh.X25519().GenerateKey(rand.Reader)).PublicKey(), "use Ed25519"},
		"no key":    {nil, "use Ed25519"},
		"ECDSA nil": {&ecdsa.PublicKey{}, "P-256, P-384 or P-521"},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			err := identity.CheckKey(test.pub)
			if err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("got %v, want error with %q", err, test.reason)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	pub, _ := ledgertest.PublicKeyIn(string(ledgertest.CosignFile("p256.pub")))
	sum := sha256.Sum256(ledgertest.Must(x509.MarshalPKIXPublicKey(pub)))
	if got := ledgertest.Must(identity.Fingerprint(pub)); got != hex.EncodeToString(sum[:]) {
		t.Errorf("got %s, want the SHA-256 of the SPKI, %x", got, sum)
	}
	if _, err := identity.Fingerprint("no key"); err == nil {
		t.Error("got a fingerprint of a string")
	}
}

func TestParsePrivateKey(t *testing.T) {
	ecKey, rsaKey := ledgertest.NewP256(), ledgertest.Must(rsa.GenerateKey(rand.Reader, 2048))
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	sec1 := ledgertest.PEM("EC PRIVATE KEY", ledgertest.Must(x509.MarshalECPrivateKey(ecKey)))
	pkcs8 := func(key any) string {
		return ledgertest.PEM("PRIVATE KEY", ledgertest.Must(x509.MarshalPKCS8PrivateKey(key)))
	}

	tests := []struct {
		name, text string
		want       crypto.Signer
		err        string
	}{
		{"cosign's test key", string(ledgertest.CosignFile("leaf.key")),
			ledgertest.Must(identity.ParsePrivateKey(ledgertest.CosignFile("leaf.key"), nil)), ""},
		{"PKCS #8 of Ed25519", pkcs8(edKey), edKey, ""},
		{"PKCS #8 of ECDSA", pkcs8(ecKey), ecKey, ""},
		{"PKCS #8 of RSA", pkcs8(rsaKey), rsaKey, ""},
		{"SEC 1", sec1, ecKey, ""},
		{"SEC 1, like openssl", ledgertest.PEM("EC PARAMETERS", []byte{6, 1, 0}) + sec1, ecKey, ""},
		{"PKCS #1", ledgertest.PEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), rsaKey, ""},
		{"too small", pkcs8(ledgertest.Must(rsa.GenerateKey(rand.Reader, 1024))), nil, "1024 bits"},
		{"X25519", pkcs8(ledgertest.Must(ecdh.X25519().GenerateKey(rand.Reader))), nil, "cannot sign"},
		{"a public key", ledgertest.PublicPEM(ecKey.Public()), nil, `type "PUBLIC KEY" is not a private key`},
		{"encrypted", ledgertest.PEM("ENCRYPTED PRIVATE KEY", []byte{0}), nil, "is encrypted"},
		{"encrypted by cosign", ledgertest.PEM("ENCRYPTED SIGSTORE PRIVATE KEY", []byte{0}), nil, "is encrypted"},
		{"encrypted by old openssl", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: " +
			"AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n", nil, "is encrypted"},
		{"broken", ledgertest.PEM("PRIVATE KEY", []byte{0}), nil, "cannot parse private key"},
		{"nothing", "", nil, "no private key found"},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := identity.ParsePrivateKey([]byte(test.text), nil)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want error with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !got.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(test.want.Public()) {
				t.Error("got another key")
			}
		})
	}
}

func TestParseCertificates(t *testing.T) {
	leaf, ca := string(ledgertest.CosignFile("leaf.crt")), string(ledgertest.CosignFile("ca.crt"))
	certs, err := identity.ParseCertificates([]byte(leaf + "\n" + ca))
	if err != nil || len(certs) != 2 || certs[0].Subject.CommonName != "ci-bot" ||
		certs[1].Subject.CommonName != "acme root" {
		t.Errorf("got %d certificates, %v", len(certs), err)
	}
	for name, text := range map[string]string{
		"nothing":  "",
		"a key":    leaf + string(ledgertest.CosignFile("p256.pub")),
		"broken":   ledgertest.PEM("CERTIFICATE", []byte{0x30}),
		"too many": strings.Repeat(ca, identity.MaxChain+1),
	} {
		if certs, err := identity.ParseCertificates([]byte(text)); err == nil {
			t.Errorf("%s: got %d certificates, want an error", name, len(certs))
		}
	}
}
