package ledger

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
	"encoding/hex"
	"strings"
	"testing"
)

// signedBy returns an envelope with a signature that make returns of the PAE.
func signedBy(makeSig func(pae []byte) []byte) []byte {
	return dsseOf(passed(), makeSig(PAE(StatementType, passed())))
}

func hashed(h crypto.Hash, data []byte) []byte {
	w := h.New()
	w.Write(data)
	return w.Sum(nil)
}

// Every way of signing that the contract names, for keys that cosign, witness
// and openssl make.
func TestVerifyKeyKinds(t *testing.T) {
	edPublic, edKey, _ := ed25519.GenerateKey(rand.Reader)
	p256, p384, p521 := newP256(), must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))

	ed := func(o *ed25519.Options) func([]byte) []byte {
		return func(m []byte) []byte {
			if o.Hash != 0 {
				m = hashed(o.Hash, m)
			}
			return must(edKey.Sign(rand.Reader, m, o))
		}
	}
	ec := func(key *ecdsa.PrivateKey, h crypto.Hash) func([]byte) []byte {
		return func(m []byte) []byte { return must(ecdsa.SignASN1(rand.Reader, key, hashed(h, m))) }
	}
	pkcs1 := func(h crypto.Hash) func([]byte) []byte {
		return func(m []byte) []byte { return must(rsa.SignPKCS1v15(rand.Reader, rsaKey, h, hashed(h, m))) }
	}
	pss := func(salt int) func([]byte) []byte {
		return func(m []byte) []byte {
			return must(rsa.SignPSS(rand.Reader, rsaKey, crypto.SHA256, hashed(crypto.SHA256, m), &rsa.PSSOptions{SaltLength: salt}))
		}
	}
	tests := []struct {
		name string
		pub  crypto.PublicKey
		sign func(pae []byte) []byte
		want Code
	}{
		{"Ed25519", edPublic, ed(&ed25519.Options{}), ""},
		{"Ed25519ph, as cosign signs", edPublic, ed(&ed25519.Options{Hash: crypto.SHA512}), ""},
		{"Ed25519ctx", edPublic, ed(&ed25519.Options{Context: "other"}), CodeUntrustedIdentity},
		{"Ed25519ph with a context", edPublic, ed(&ed25519.Options{Hash: crypto.SHA512, Context: "other"}), CodeUntrustedIdentity},
		{"P-256 with SHA-256", &p256.PublicKey, ec(p256, crypto.SHA256), ""},
		{"P-256 with SHA-512", &p256.PublicKey, ec(p256, crypto.SHA512), CodeUntrustedIdentity},
		{"P-384 with SHA-384", &p384.PublicKey, ec(p384, crypto.SHA384), ""},
		{"P-384 with SHA-256", &p384.PublicKey, ec(p384, crypto.SHA256), ""},
		{"P-384 with SHA-512", &p384.PublicKey, ec(p384, crypto.SHA512), CodeUntrustedIdentity},
		{"P-521 with SHA-512", &p521.PublicKey, ec(p521, crypto.SHA512), ""},
		{"P-521 with SHA-256", &p521.PublicKey, ec(p521, crypto.SHA256), ""},
		{"RSA PKCS #1 v1.5", &rsaKey.PublicKey, pkcs1(crypto.SHA256), ""},
		{"RSA PKCS #1 v1.5 with SHA-512", &rsaKey.PublicKey, pkcs1(crypto.SHA512), CodeUntrustedIdentity},
		{"RSA PSS, salt as long as the hash", &rsaKey.PublicKey, pss(rsa.PSSSaltLengthEqualsHash), ""},
		{"RSA PSS, longest salt, as witness signs", &rsaKey.PublicKey, pss(rsa.PSSSaltLengthAuto), ""},
	}
	// All of them are registered, so each is also looked for among all others.
	var ids []Identity
	for _, test := range tests {
		id := keyIdentity(test.pub)
		id.ID = "idn_" + test.name
		ids = append(ids, id)
	}
	org := keyringOf(ids...)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Verify(signedBy(test.sign), keyringOf(keyIdentity(test.pub)), testNow)
			wantCode(t, err, test.want)
			_, err = Verify(signedBy(test.sign), org, testNow)
			wantCode(t, err, test.want)
		})
	}
}

// What signs nothing is no signature either.
func TestVerifyOddSignatures(t *testing.T) {
	edPublic, _, _ := ed25519.GenerateKey(rand.Reader)
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))
	org := keyringOf(keyIdentity(edPublic), keyIdentity(newP256().Public()), keyIdentity(rsaKey.Public()))
	for _, sig := range []string{"\x00", "0", "0\x06\x02\x01\x00\x02\x01\x00", strings.Repeat("\x00", 64), strings.Repeat("\x00", 256), strings.Repeat("\xff", 256), strings.Repeat("0", 100_000)} {
		_, err := Verify(dsseOf(passed(), []byte(sig)), org, testNow)
		wantCode(t, err, CodeUntrustedIdentity)
	}
}

func TestKeyKindsRefused(t *testing.T) {
	refused := map[string]struct {
		pub    crypto.PublicKey
		reason string
	}{
		"RSA 1024":  {&must(rsa.GenerateKey(rand.Reader, 1024)).PublicKey, "1024 bits"},
		"P-224":     {must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)).Public(), "P-256, P-384 or P-521"},
		"X25519":    {must(ecdh.X25519().GenerateKey(rand.Reader)).PublicKey(), "use Ed25519"},
		"no key":    {nil, "use Ed25519"},
		"ECDSA nil": {&ecdsa.PublicKey{}, "P-256, P-384 or P-521"},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			err := CheckKey(test.pub)
			if err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("got %v, want an error that says %q", err, test.reason)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	pub, _ := publicKeyIn(string(cosignFile("p256.pub")))
	sum := sha256.Sum256(must(x509.MarshalPKIXPublicKey(pub)))
	if got := must(Fingerprint(pub)); got != hex.EncodeToString(sum[:]) {
		t.Errorf("got %s, want the SHA-256 of the SPKI, %x", got, sum)
	}
	if _, err := Fingerprint("no key"); err == nil {
		t.Error("a string has a fingerprint")
	}
}

func TestParsePrivateKey(t *testing.T) {
	ecKey, rsaKey := newP256(), must(rsa.GenerateKey(rand.Reader, 2048))
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	sec1 := pemOf("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ecKey)))
	pkcs8 := func(key any) string { return pemOf("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))) }
	tests := []struct {
		name, text string
		want       crypto.Signer
		err        string
	}{
		{"cosign's test key", string(cosignFile("leaf.key")), must(ParsePrivateKey(cosignFile("leaf.key"))), ""},
		{"PKCS #8 of Ed25519", pkcs8(edKey), edKey, ""},
		{"PKCS #8 of ECDSA", pkcs8(ecKey), ecKey, ""},
		{"PKCS #8 of RSA", pkcs8(rsaKey), rsaKey, ""},
		{"SEC 1", sec1, ecKey, ""},
		{"SEC 1 as openssl writes it", pemOf("EC PARAMETERS", []byte{6, 1, 0}) + sec1, ecKey, ""},
		{"PKCS #1", pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), rsaKey, ""},
		{"too small", pkcs8(must(rsa.GenerateKey(rand.Reader, 1024))), nil, "1024 bits"},
		{"X25519", pkcs8(must(ecdh.X25519().GenerateKey(rand.Reader))), nil, "does not sign"},
		{"a public key", publicPEM(ecKey.Public()), nil, "PUBLIC KEY, not a private key"},
		{"encrypted", pemOf("ENCRYPTED PRIVATE KEY", []byte{0}), nil, "is encrypted"},
		{"cosign's own encryption", pemOf("ENCRYPTED SIGSTORE PRIVATE KEY", []byte{0}), nil, "is encrypted"},
		{"encrypted by openssl of old", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n", nil, "is encrypted"},
		{"broken", pemOf("PRIVATE KEY", []byte{0}), nil, "cannot be read"},
		{"nothing", "", nil, "no PEM block"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParsePrivateKey([]byte(test.text))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want an error that says %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !got.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(test.want.Public()) {
				t.Error("it is another key")
			}
		})
	}
}

func TestParseCertificates(t *testing.T) {
	leaf, ca := string(cosignFile("leaf.crt")), string(cosignFile("ca.crt"))
	certs, err := ParseCertificates([]byte(leaf + "\n" + ca))
	if err != nil || len(certs) != 2 || certs[0].Subject.CommonName != "ci-bot" || certs[1].Subject.CommonName != "acme root" {
		t.Errorf("got %d certificates, %v", len(certs), err)
	}
	for name, text := range map[string]string{
		"nothing":  "",
		"a key":    leaf + string(cosignFile("p256.pub")),
		"broken":   pemOf("CERTIFICATE", []byte{0x30}),
		"too many": strings.Repeat(ca, MaxChain+1),
	} {
		if certs, err := ParseCertificates([]byte(text)); err == nil {
			t.Errorf("%s: read %d certificates", name, len(certs))
		}
	}
}
