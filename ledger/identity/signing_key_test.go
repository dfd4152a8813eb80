package identity_test

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

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// spkiDigest returns the expected Signer.Key, computed without the package.
func spkiDigest(pub crypto.PublicKey) [sha256.Size]byte {
	return sha256.Sum256(ledgertest.Must(x509.MarshalPKIXPublicKey(pub)))
}

// Verify returns the signing key on every path. CertifiedKey returns the same key
// for envelopes that have a certificate.
func TestSigningKey(t *testing.T) {
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	root, other := ledgertest.NewRoot(), ledgertest.KeyIdentity(ledgertest.NewP256().Public())

	for kind, key := range map[string]crypto.Signer{
		"Ed25519":  edKey,
		"P-256":    ledgertest.NewP256(),
		"P-384":    ledgertest.Must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"P-521":    ledgertest.Must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
		"RSA 2048": ledgertest.Must(rsa.GenerateKey(rand.Reader, 2048)),
	} {
		want := spkiDigest(key.Public())
		leaf := ledgertest.NewCert(root, ledgertest.CIName(), key, ledgertest.AsSigner)
		expired := ledgertest.NewCert(root, ledgertest.CIName(), key, func(c *x509.Certificate) {
			ledgertest.AsSigner(c)
			c.NotAfter = ledgertest.Now.Std().Add(-time.Hour)
		})
		bare, cert := ledgertest.KeyIdentity(key.Public()), ledgertest.CertIdentity(leaf.Cert)
		hinted, unhinted := ledgertest.Must(attestation.SignDSSE(key, ledgertest.Passed())),
			ledgertest.DSSE(ledgertest.Passed(),
				ledgertest.Must(identity.Sign(key, attestation.PAE(attestation.StatementType, ledgertest.Passed()))))
		bundle := bundleOf([]*ledgertest.Party{leaf})
		for _, test := range []struct {
			name      string
			keys      *identity.Keyring
			body      []byte
			certified bool
		}{
			{"hinted", ledgertest.Keyring(other, bare), hinted, false},
			{"hinted, registered by certificate", ledgertest.Keyring(other, cert), hinted, false},
			{"tried", ledgertest.Keyring(other, bare), unhinted, false},
			{"tried, registered by certificate", ledgertest.Keyring(other, cert), unhinted, false},
			{"tried, revoked and registered again", ledgertest.Keyring(ledgertest.Revoked(bare), other, cert), unhinted, false},
			{"certificate of a bare key", ledgertest.Keyring(other, bare), bundle, true},
			{"certificate", ledgertest.Keyring(other, cert), bundle, true},
			{"chained", ledgertest.Keyring(other, ledgertest.RootIdentity(root.Cert)), bundle, true},
			{
				"chained after the registered one expired",
				ledgertest.Keyring(ledgertest.CertIdentity(expired.Cert), ledgertest.RootIdentity(root.Cert)), bundle, true,
			},
		} {
			t.Run(kind+", "+test.name, func(t *testing.T) {
				got, err := attestation.Verify(test.body, test.keys, ledgertest.Now)
				if err != nil {
					t.Fatal(err)
				}
				if got.Signer.Key != want {
					t.Errorf("got key %x, want %x", got.Signer.Key, want)
				}
				wantCertified(t, test.body, want, test.certified)
			})
		}
		for _, id := range []identity.Identity{bare, cert, ledgertest.Revoked(bare)} {
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
	if got, ok, err := attestation.CertifiedKey(body); err != nil || ok != certified || got != want {
		t.Errorf("CertifiedKey: got %x, %v, %v; want %x, %v", got, ok, err, want, certified)
	}
}

func TestSigningKeyCosign(t *testing.T) {
	ofFile, _ := ledgertest.PublicKeyIn(string(ledgertest.CosignFile("p256.pub")))
	p256 := spkiDigest(ofFile)
	leaf := spkiDigest(ledgertest.Must(identity.ParsePrivateKey(ledgertest.CosignFile("leaf.key"), nil)).Public())

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
			got, err := attestation.Verify(ledgertest.CosignFile(file), ledgertest.CosignOrg(), ledgertest.Now)
			if err != nil {
				t.Fatal(err)
			}
			if got.Signer.Key != test.want {
				t.Errorf("got key %x, want %x", got.Signer.Key, test.want)
			}
			wantCertified(t, ledgertest.CosignFile(file), test.want, test.certified)
		})
	}
}

func TestCertifiedKeyRefused(t *testing.T) {
	_, ok, err := attestation.CertifiedKey([]byte("{}"))
	if ok {
		t.Error("found a certificate in an invalid envelope")
	}
	ledgertest.WantCode(t, err, ledger.CodeInvalidEnvelope)
}

func TestKeyDigestRefused(t *testing.T) {
	for name, spoil := range map[string]func(*identity.Identity){
		"a root":             func(id *identity.Identity) { id.Kind = identity.RootIdentity },
		"no fingerprint":     func(id *identity.Identity) { id.Fingerprint = "" },
		"too short":          func(id *identity.Identity) { id.Fingerprint = id.Fingerprint[2:] },
		"too long":           func(id *identity.Identity) { id.Fingerprint += hex.EncodeToString([]byte("x")) },
		"not in hexadecimal": func(id *identity.Identity) { id.Fingerprint = "x" + id.Fingerprint[1:] },
	} {
		id := ledgertest.KeyIdentity(ledgertest.NewP256().Public())
		spoil(&id)
		if got, err := id.KeyDigest(); err == nil {
			t.Errorf("%s: got %x, want an error", name, got)
		}
	}
}
