package ledger

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"testing"
	"time"
)

// spkiDigest returns the expected Signer.Key, computed independently.
func spkiDigest(pub crypto.PublicKey) [sha256.Size]byte {
	return sha256.Sum256(must(x509.MarshalPKIXPublicKey(pub)))
}

// Verify returns the signing key on every path. CertifiedKey returns the same key
// for envelopes that have a certificate.
func TestSigningKey(t *testing.T) {
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	root, other := newRoot(), keyIdentity(newP256().Public())
	for kind, key := range map[string]crypto.Signer{
		"Ed25519":  edKey,
		"P-256":    newP256(),
		"P-384":    must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"P-521":    must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
		"RSA 2048": must(rsa.GenerateKey(rand.Reader, 2048)),
	} {
		want := spkiDigest(key.Public())
		leaf := newCert(root, ciName(), key, asSigner)
		expired := newCert(root, ciName(), key, func(c *x509.Certificate) {
			asSigner(c)
			c.NotAfter = testNow.Std().Add(-time.Hour)
		})
		bare, cert := keyIdentity(key.Public()), certIdentity(leaf.cert)
		hinted, unhinted := must(SignDSSE(key, passed())), dsseOf(passed(), must(Sign(key, PAE(StatementType, passed()))))
		bundle := bundleOf([]*testCA{leaf})
		for _, test := range []struct {
			name      string
			keys      *Keyring
			body      []byte
			certified bool
		}{
			{"hinted", keyringOf(other, bare), hinted, false},
			{"hinted, registered by certificate", keyringOf(other, cert), hinted, false},
			{"tried", keyringOf(other, bare), unhinted, false},
			{"tried, registered by certificate", keyringOf(other, cert), unhinted, false},
			{"tried, revoked and registered again", keyringOf(revoked(bare), other, cert), unhinted, false},
			{"certificate of a bare key", keyringOf(other, bare), bundle, true},
			{"certificate", keyringOf(other, cert), bundle, true},
			{"chained", keyringOf(other, rootIdentity(root.cert)), bundle, true},
			{
				"chained after the registered one expired",
				keyringOf(certIdentity(expired.cert), rootIdentity(root.cert)), bundle, true,
			},
		} {
			t.Run(kind+", "+test.name, func(t *testing.T) {
				got, err := Verify(test.body, test.keys, testNow)
				if err != nil {
					t.Fatal(err)
				}
				if got.Signer.Key != want {
					t.Errorf("got key %x, want %x", got.Signer.Key, want)
				}
				wantCertified(t, test.body, want, test.certified)
			})
		}
		for _, id := range []Identity{bare, cert, revoked(bare)} {
			if got, err := id.KeyDigest(); err != nil || got != want {
				t.Errorf("%s, identity %s: got key %x, %v; want %x", kind, id.ID, got, err, want)
			}
		}
	}
}

func wantCertified(t *testing.T, body []byte, want [sha256.Size]byte, certified bool) {
	t.Helper()
	if !certified {
		want = [sha256.Size]byte{}
	}
	if got, ok, err := CertifiedKey(body); err != nil || ok != certified || got != want {
		t.Errorf("CertifiedKey: got %x, %v, %v; want %x, %v", got, ok, err, want, certified)
	}
}

func TestSigningKeyCosign(t *testing.T) {
	ofFile, _ := publicKeyIn(string(cosignFile("p256.pub")))
	p256 := spkiDigest(ofFile)
	leaf := spkiDigest(must(ParsePrivateKey(cosignFile("leaf.key"))).Public())
	for file, test := range map[string]struct {
		want      [sha256.Size]byte
		certified bool
	}{
		"v3-p256.bundle.json":          {p256, false},
		"v3-p256-failed.dsse.json":     {p256, false},
		"v2-p256-provenance.dsse.json": {p256, false},
		"v3-x509.bundle.json":          {leaf, true},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := Verify(cosignFile(file), cosignOrg(), testNow)
			if err != nil {
				t.Fatal(err)
			}
			if got.Signer.Key != test.want {
				t.Errorf("got key %x, want %x", got.Signer.Key, test.want)
			}
			wantCertified(t, cosignFile(file), test.want, test.certified)
		})
	}
}

func TestCertifiedKeyRefused(t *testing.T) {
	_, ok, err := CertifiedKey([]byte("{}"))
	if ok {
		t.Error("no envelope has a certified key")
	}
	wantCode(t, err, CodeInvalidEnvelope)
}

func TestKeyDigestRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Identity){
		"of a root":          func(id *Identity) { id.Kind = RootIdentity },
		"without":            func(id *Identity) { id.Fingerprint = "" },
		"too short":          func(id *Identity) { id.Fingerprint = id.Fingerprint[2:] },
		"too long":           func(id *Identity) { id.Fingerprint += hex.EncodeToString([]byte("x")) },
		"not in hexadecimal": func(id *Identity) { id.Fingerprint = "x" + id.Fingerprint[1:] },
	} {
		id := keyIdentity(newP256().Public())
		spoil(&id)
		if got, err := id.KeyDigest(); err == nil {
			t.Errorf("%s: got %x, want an error", name, got)
		}
	}
}
