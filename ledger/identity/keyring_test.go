package identity_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// hintedDSSE returns an envelope signed by key, with the given keyid.
func hintedDSSE(key *ledgertest.Party, hint string) []byte {
	sig := ledgertest.Must(identity.Sign(key.Key, attestation.PAE(attestation.StatementType, ledgertest.Passed())))
	return []byte(strings.Replace(string(ledgertest.DSSE(ledgertest.Passed(), sig)), `{"sig"`, `{"keyid":`+
		strconv.Quote(hint)+`,"sig"`, 1))
}

// Clients use different forms of keyids and hints.
func TestVerifyHints(t *testing.T) {
	key := &ledgertest.Party{Key: ledgertest.NewP256()}
	id := ledgertest.KeyIdentity(key.Key.Public())
	// As in a file with other line endings.
	id.PEM = strings.ReplaceAll(id.PEM, "\n", "\r\n")
	other := ledgertest.KeyIdentity(ledgertest.NewP256().Public())
	other.ID = "idn_other"
	org := ledgertest.Keyring(other, id)

	spki := ledgertest.Must(x509.MarshalPKIXPublicKey(key.Key.Public()))
	ofSPKI, ofText, ofPEM := sha256.Sum256(spki), sha256.Sum256([]byte(id.PEM)),
		sha256.Sum256([]byte(ledgertest.PublicPEM(key.Key.Public())))
	hints := map[string]string{
		"no hint":                       "",
		"the SPKI, hex":                 hex.EncodeToString(ofSPKI[:]),
		"the SPKI, upper-case hex":      strings.ToUpper(hex.EncodeToString(ofSPKI[:])),
		"the SPKI, base64, like cosign": base64.StdEncoding.EncodeToString(ofSPKI[:]),
		"the SPKI, URL base64":          base64.RawURLEncoding.EncodeToString(ofSPKI[:]),
		"the PEM, hex, like witness":    hex.EncodeToString(ofPEM[:]),
		"the PEM as registered, base64": base64.StdEncoding.EncodeToString(ofText[:]),
		"an unknown digest":             strings.Repeat("0", 64),
		"a name":                        "our build key",
	}
	for name, hint := range hints {
		t.Run(name, func(t *testing.T) {
			body := hintedDSSE(key, hint)
			got, err := attestation.Verify(body, org, ledgertest.Now)
			if err != nil {
				t.Fatal(err)
			}
			if got.Signer.Identity != "idn_key" {
				t.Errorf("got signer %s, want idn_key", got.Signer.Identity)
			}
			want := hint != "" && name != "a name" && name != "an unknown digest"
			if got := org.Names(hint); got != want {
				t.Errorf("Names = %v, want %v", got, want)
			}
		})
	}
	t.Run("the key of another identity", func(t *testing.T) {
		_, err := attestation.Verify(hintedDSSE(key, other.Fingerprint), org, ledgertest.Now)
		ledgertest.WantCode(t, err, ledger.CodeInvalidSignature)
	})
}

// A signature without a keyid is verified with all keys, unless that takes too long.
func TestVerifyLimitsTrying(t *testing.T) {
	key := ledgertest.NewP256()
	var ids []identity.Identity

	for range 99 {
		ids = append(ids, ledgertest.KeyIdentity(ledgertest.NewP256().Public()))
	}
	org := ledgertest.Keyring(append(ids, ledgertest.KeyIdentity(key.Public()))...)
	large := append(ledgertest.Passed(), make([]byte, identity.MaxTryBytes/100)...)
	_, err := attestation.Verify(
		ledgertest.DSSE(large, ledgertest.Must(identity.Sign(key, attestation.PAE(attestation.StatementType, large)))), org,
		ledgertest.Now)
	ledgertest.WantCode(t, err, ledger.CodeUntrustedIdentity)
	if err == nil || !strings.Contains(err.Error(), "keyid") {
		t.Errorf("got error %v, want keyid in it", err)
	}
	_, err = attestation.Verify(ledgertest.Must(attestation.SignDSSE(key, large)), org, ledgertest.Now)
	ledgertest.WantCode(t, err, ledger.CodeInvalidStatement) // the signature is valid
	if _, err := attestation.Verify(
		ledgertest.DSSE(ledgertest.Passed(),
			ledgertest.Must(identity.Sign(key, attestation.PAE(attestation.StatementType, ledgertest.Passed())))), org,
		ledgertest.Now); err != nil {
		t.Errorf("a small payload: %v", err)
	}
}

// The identities registered with a key decide the signer of its signatures.
func TestVerifyHolders(t *testing.T) {
	key := ledgertest.NewP256()
	ci := ledgertest.NewCert(nil, ledgertest.CIName(), key, ledgertest.AsSigner)
	old := ledgertest.NewCert(nil, ledgertest.CIName(), key, func(c *x509.Certificate) {
		ledgertest.AsSigner(c)
		c.NotAfter = ledgertest.Now.Std().Add(-time.Hour)
	})
	future := ledgertest.NewCert(nil, ledgertest.CIName(), key, func(c *x509.Certificate) {
		ledgertest.AsSigner(c)
		c.NotBefore = ledgertest.Now.Std().Add(time.Hour)
	})
	bare := ledgertest.KeyIdentity(key.Public())
	bare.ID = "idn_bare"
	expired := ledgertest.CertIdentity(old.Cert)
	expired.ID = "idn_expired"

	tests := []struct {
		name string
		ids  []identity.Identity
		want string // the signer's identity, or the error code
	}{
		{"a bare key", []identity.Identity{bare}, "idn_bare"},
		{"a certificate", []identity.Identity{ledgertest.CertIdentity(ci.Cert)}, "idn_cert"},
		{"revoked", []identity.Identity{ledgertest.Revoked(bare)}, string(ledger.CodeRevokedIdentity)},
		{"expired", []identity.Identity{expired}, string(ledger.CodeExpiredCertificate)},
		{"not yet valid", []identity.Identity{ledgertest.CertIdentity(future.Cert)}, string(ledger.CodeExpiredCertificate)},
		{"revoked, then registered again", []identity.Identity{ledgertest.Revoked(bare), ledgertest.CertIdentity(ci.Cert)},
			"idn_cert"},
		{"expired, then renewed", []identity.Identity{expired, ledgertest.CertIdentity(ci.Cert)}, "idn_cert"},
		{"expired and revoked", []identity.Identity{ledgertest.Revoked(bare), expired}, string(ledger.CodeRevokedIdentity)},
		{"revoked and expired", []identity.Identity{expired, ledgertest.Revoked(bare)}, string(ledger.CodeRevokedIdentity)},
		{"registered twice", []identity.Identity{bare, ledgertest.CertIdentity(ci.Cert)}, "idn_bare"},
		{"among other keys", []identity.Identity{ledgertest.KeyIdentity(ledgertest.NewP256().Public()),
			ledgertest.Revoked(ledgertest.KeyIdentity(ledgertest.NewP256().Public())), bare}, "idn_bare"},
	}
	for _, test := range tests {
		org := ledgertest.Keyring(test.ids...)
		for name, body := range map[string][]byte{
			"by trying all keys": ledgertest.DSSE(ledgertest.Passed(),
				ledgertest.Must(identity.Sign(key, attestation.PAE(attestation.StatementType, ledgertest.Passed())))),
			"by the keyid":     ledgertest.Must(attestation.SignDSSE(key, ledgertest.Passed())),
			"by a certificate": ledgertest.Must(attestation.SignBundle(key, []*x509.Certificate{ci.Cert}, ledgertest.Passed())),
		} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				got, err := attestation.Verify(body, org, ledgertest.Now)
				if !strings.HasPrefix(test.want, "idn_") {
					ledgertest.WantCode(t, err, ledger.Code(test.want))
				} else if err != nil || got.Signer.Identity != test.want {
					t.Errorf("got %v, %v; want signer %s", got, err, test.want)
				}
			})
		}
	}
}

// The signer has the registered DN and addresses, regardless of the certificate in the
// envelope.
func TestVerifyRegisteredName(t *testing.T) {
	key := ledgertest.NewP256()
	impostor := ledgertest.NewCert(nil, pkix.Name{CommonName: "release manager"}, key, ledgertest.AsSigner)
	org := ledgertest.Keyring(ledgertest.KeyIdentity(key.Public()))
	got, err := attestation.Verify(
		ledgertest.Must(attestation.SignBundle(key, []*x509.Certificate{impostor.Cert}, ledgertest.Passed())), org,
		ledgertest.Now)
	if err != nil {
		t.Fatal(err)
	}
	if got.Signer.DN != (identity.DN{CN: "ci", OU: "build", O: "acme"}) ||
		!slices.Equal(got.Signer.Emails, []string{"ci@acme.example"}) {
		t.Errorf("got %v", got.Signer)
	}

	both := ledgertest.NewCert(nil, ledgertest.CIName(), key, func(c *x509.Certificate) {
		ledgertest.AsSigner(c)
		c.EmailAddresses = []string{"one@acme.example", "two@acme.example"}
	})
	id := ledgertest.Registered("idn_cert",
		identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ledgertest.CertPEM(both.Cert), Email: "ci@acme.example"})
	got, err = attestation.Verify(ledgertest.Must(attestation.SignDSSE(key, ledgertest.Passed())), ledgertest.Keyring(id),
		ledgertest.Now)
	if err != nil || !slices.Equal(
		got.Signer.Emails, []string{"ci@acme.example", "one@acme.example", "two@acme.example"}) {
		t.Errorf("got %v, %v; want the registered address and those of the certificate", got, err)
	}
}

// A fakeKey returns another public key than its own.
type fakeKey struct {
	crypto.Signer
	public crypto.PublicKey
}

func (k fakeKey) Public() crypto.PublicKey { return k.public }

// A root trusts a certificate only if its chain and usage are valid.
func TestVerifyChains(t *testing.T) {
	root := ledgertest.NewRoot()
	middle := ledgertest.NewCert(root, pkix.Name{CommonName: "acme build CA"}, ledgertest.NewP256(), ledgertest.AsCA)
	strangeRoot := ledgertest.NewCert(nil, pkix.Name{CommonName: "strange root"}, ledgertest.NewP256(), ledgertest.AsCA)
	strange := ledgertest.NewCert(strangeRoot, pkix.Name{CommonName: "strange CA"}, ledgertest.NewP256(), ledgertest.AsCA)
	circle := []*ledgertest.Party{
		ledgertest.NewCert(strangeRoot, strange.Cert.Subject, ledgertest.NewP256(), ledgertest.AsCA),
		ledgertest.NewCert(strange, strangeRoot.Cert.Subject, ledgertest.NewP256(), ledgertest.AsCA)}
	day := 24 * time.Hour
	leafOf := func(issuer *ledgertest.Party, change func(*x509.Certificate)) []*ledgertest.Party {
		return []*ledgertest.Party{ledgertest.NewCert(issuer, ledgertest.CIName(), ledgertest.NewP256(),
			func(c *x509.Certificate) { ledgertest.AsSigner(c); change(c) })}
	}
	unchanged := func(*x509.Certificate) {}
	notAfter := func(d time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = ledgertest.Now.Std().Add(d) }
	}
	usage := func(usages ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = usages }
	}
	oldMiddle := ledgertest.NewCert(root, pkix.Name{CommonName: "acme build CA"}, ledgertest.NewP256(),
		func(c *x509.Certificate) { ledgertest.AsCA(c); c.NotAfter = ledgertest.Now.Std().Add(-day / 2) })
	tlsMiddle := ledgertest.NewCert(root, pkix.Name{CommonName: "acme web CA"}, ledgertest.NewP256(),
		func(c *x509.Certificate) { ledgertest.AsCA(c); usage(x509.ExtKeyUsageServerAuth)(c) })
	notCA := ledgertest.NewCert(root, pkix.Name{CommonName: "bob"}, ledgertest.NewP256(), ledgertest.AsSigner)
	huge := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 65536, 1), E: 1<<31 - 1}
	hugeCA := ledgertest.NewCert(root, notCA.Cert.Subject, fakeKey{ledgertest.NewP256(), huge}, ledgertest.AsCA)
	impostor := ledgertest.NewCert(nil, root.Cert.Subject, ledgertest.NewP256(), ledgertest.AsCA)
	twice := pkix.Name{CommonName: "ci", ExtraNames: []pkix.AttributeTypeAndValue{
		{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "build"},
		{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "release"}}}

	tests := []struct {
		name   string
		chain  []*ledgertest.Party
		want   ledger.Code
		detail string
	}{
		{"issued by the root", leafOf(root, unchanged), "", ""},
		{"with an intermediate", append(leafOf(middle, unchanged), middle), "", ""},
		{"with the root among the certificates", append(leafOf(middle, unchanged), root, middle), "", ""},
		{"without the intermediate", leafOf(middle, unchanged), ledger.CodeUntrustedIdentity,
			"cn=ci,ou=build,o=acme was issued by cn=acme build CA, which is not registered (register it as a root)"},
		{"with an intermediate of another root", append(leafOf(strange, unchanged), strange), ledger.CodeUntrustedIdentity,
			"cn=strange CA was issued by cn=strange root, which is not registered (register it as a root)"},
		{"with another root", append(leafOf(strange, unchanged), strangeRoot, strange), ledger.CodeUntrustedIdentity,
			"cn=strange CA was issued by cn=strange root, which is not registered"},
		{"with certificates in a circle", append(leafOf(circle[0], unchanged), circle...), ledger.CodeUntrustedIdentity,
			"which is not registered"},
		{"self-signed", []*ledgertest.Party{ledgertest.NewCert(nil, ledgertest.CIName(), ledgertest.NewP256(),
			ledgertest.AsSigner)}, ledger.CodeUntrustedIdentity, "does not chain to a trusted root"},
		{"under another root of the same name", append(leafOf(impostor, unchanged), impostor), ledger.CodeUntrustedIdentity,
			"does not chain to a trusted root"},
		{"a leaf alone under another root of the same name", leafOf(impostor, unchanged), ledger.CodeUntrustedIdentity,
			`candidate authority certificate "acme root"`},
		{"issued by a leaf", append(leafOf(notCA, unchanged), notCA), ledger.CodeUntrustedIdentity, "does not chain to"},
		{"issued by a CA with a huge key", append(leafOf(notCA, unchanged), hugeCA), ledger.CodeUntrustedIdentity,
			"RSA keys of 65537 bits are not supported"},
		{"with an unrelated CA with a huge key", append(leafOf(root, unchanged), hugeCA), ledger.CodeUntrustedIdentity,
			"RSA keys of 65537 bits are not supported"},
		{"issued by a CA for TLS", append(leafOf(tlsMiddle, unchanged), tlsMiddle), ledger.CodeUntrustedIdentity, "usage"},
		{"for TLS", leafOf(root, usage(x509.ExtKeyUsageClientAuth)), ledger.CodeUntrustedIdentity, "not for code signing"},
		{"for TLS and code", leafOf(root, usage(x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageCodeSigning)), "", ""},
		{"for any usage", leafOf(root, usage(x509.ExtKeyUsageAny)), ledger.CodeUntrustedIdentity, "not for code signing"},
		{"without extended key usage", leafOf(root, usage()), ledger.CodeUntrustedIdentity, "not for code signing"},
		{"for encryption", leafOf(root, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }),
			ledger.CodeUntrustedIdentity, "digitalSignature"},
		{"without key usage", leafOf(root, func(c *x509.Certificate) { c.KeyUsage = 0 }), "", ""},
		{"expired", leafOf(root, notAfter(-time.Hour)), ledger.CodeExpiredCertificate, "expired at 2026-11-29T23:53:20.000Z"},
		{"expires now", leafOf(root, notAfter(0)), "", ""},
		{"not yet valid", leafOf(root, func(c *x509.Certificate) { c.NotBefore = ledgertest.Now.Std().Add(time.Hour) }),
			ledger.CodeExpiredCertificate, "not valid before"},
		{"an intermediate expired", append(leafOf(oldMiddle, unchanged), oldMiddle), ledger.CodeExpiredCertificate,
			"cn=acme build CA expired"},
		{"expired, under no root", append(leafOf(impostor, notAfter(-time.Hour)), impostor), ledger.CodeUntrustedIdentity,
			""},
		{"with an invisible character", leafOf(root, func(c *x509.Certificate) {
			c.Subject = pkix.Name{CommonName: "c\u200bi", Organization: []string{"acme"}}
		}), ledger.CodeUntrustedIdentity, "subject's cn contains the invisible or unknown character U+200B"},
		{"without a CN", leafOf(root, func(c *x509.Certificate) { c.Subject = pkix.Name{Organization: []string{"acme"}} }),
			ledger.CodeUntrustedIdentity, "no CN"},
		{"with two units", leafOf(root, func(c *x509.Certificate) { c.Subject = twice }), ledger.CodeUntrustedIdentity,
			"more than one OU"},
		{"with a host name", leafOf(root, func(c *x509.Certificate) { c.DNSNames = []string{"ci.acme.example"} }), "",
			""},
		{"with an unknown critical extension", leafOf(root, func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
		}), ledger.CodeUntrustedIdentity, "critical"},
	}
	org := ledgertest.Keyring(ledgertest.RootIdentity(root.Cert))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := attestation.Verify(bundleOf(test.chain), org, ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
			if err != nil && !strings.Contains(err.Error(), test.detail) {
				t.Errorf("got error %q, want %q in it", err, test.detail)
			}
			if err == nil && (got.Signer.DN != identity.DN{CN: "ci", OU: "build", O: "acme"} ||
				got.Signer.Identity != "idn_root" || got.Signer.Emails[0] != "ci@acme.example") {
				t.Errorf("got signer %v", got.Signer)
			}
		})
	}
}

func bundleOf(chain []*ledgertest.Party) []byte {
	var certs []*x509.Certificate
	for _, c := range chain {
		certs = append(certs, c.Cert)
	}
	return ledgertest.Must(attestation.SignBundle(chain[0].Key, certs, ledgertest.Passed()))
}

// A root does not vouch for keyless certificates, even if their subject matches. A key that is
// registered may have one, and what was recorded stays.
func TestKeylessCertificates(t *testing.T) {
	root := ledgertest.NewRoot()
	leafWith := func(oid ...int) *ledgertest.Party {
		return ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), func(c *x509.Certificate) {
			ledgertest.AsSigner(c)
			c.ExtraExtensions = []pkix.Extension{{Id: oid, Value: []byte("https://accounts.example")}}
		})
	}
	keyless := leafWith(1, 3, 6, 1, 4, 1, 57264, 1, 8)
	trusted := ledgertest.Keyring(ledgertest.RootIdentity(root.Cert))
	registered := ledgertest.Keyring(ledgertest.RootIdentity(root.Cert), ledgertest.KeyIdentity(keyless.Key.Public()))

	for _, test := range []struct {
		name string
		leaf *ledgertest.Party
		org  *identity.Keyring
		want ledger.Code
	}{
		{"keyless", keyless, trusted, ledger.CodeUntrustedIdentity},
		{"the issuer in its old form", leafWith(1, 3, 6, 1, 4, 1, 57264, 1, 1), trusted, ledger.CodeUntrustedIdentity},
		{"with a registered key", keyless, registered, ""},
		{"another extension of Sigstore", leafWith(1, 3, 6, 1, 4, 1, 57264, 2, 1), trusted, ""},
		{"the arc itself", leafWith(1, 3, 6, 1, 4, 1, 57264, 1), trusted, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := attestation.Verify(bundleOf([]*ledgertest.Party{test.leaf}), test.org, ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
		})
	}

	recorded := bundleOf([]*ledgertest.Party{keyless})
	if _, err := attestation.VerifyRecorded(recorded, ledgertest.Commit, trusted, ledgertest.Now); err != nil {
		t.Errorf("what was recorded: %v", err)
	}
}

// The same chain is valid or not, depending on the org's roots.
func TestVerifyRoots(t *testing.T) {
	root, other := ledgertest.NewRoot(), ledgertest.NewRoot()
	old := ledgertest.NewCert(nil, root.Cert.Subject, root.Key, func(c *x509.Certificate) {
		ledgertest.AsCA(c)
		c.NotAfter = ledgertest.Now.Std().Add(-time.Hour)
	})
	leaf := ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)

	tests := []struct {
		name string
		ids  []identity.Identity
		want ledger.Code
	}{
		{"trusted", []identity.Identity{ledgertest.RootIdentity(root.Cert)}, ""},
		{"among other roots", []identity.Identity{ledgertest.RootIdentity(other.Cert),
			ledgertest.Revoked(ledgertest.RootIdentity(old.Cert)), ledgertest.RootIdentity(root.Cert)}, ""},
		{"revoked", []identity.Identity{ledgertest.Revoked(ledgertest.RootIdentity(root.Cert))}, ledger.CodeRevokedIdentity},
		{"revoked, then registered again", []identity.Identity{ledgertest.Revoked(ledgertest.RootIdentity(root.Cert)),
			ledgertest.RootIdentity(root.Cert)}, ""},
		{"expired", []identity.Identity{ledgertest.RootIdentity(old.Cert)}, ledger.CodeExpiredCertificate},
		{"another root", []identity.Identity{ledgertest.RootIdentity(other.Cert)}, ledger.CodeUntrustedIdentity},
		{"no root", nil, ledger.CodeUntrustedIdentity},
		{"trusted, but the signer's own identity revoked", []identity.Identity{ledgertest.RootIdentity(root.Cert),
			ledgertest.Revoked(ledgertest.CertIdentity(leaf.Cert))}, ledger.CodeRevokedIdentity},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}), ledgertest.Keyring(test.ids...), ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
		})
	}

	t.Run("registered certificate expired, renewed by the root", func(t *testing.T) {
		expired := ledgertest.NewCert(root, ledgertest.CIName(), leaf.Key, func(c *x509.Certificate) {
			ledgertest.AsSigner(c)
			c.NotAfter = ledgertest.Now.Std().Add(-time.Hour)
		})
		got, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}),
			ledgertest.Keyring(ledgertest.CertIdentity(expired.Cert), ledgertest.RootIdentity(root.Cert)), ledgertest.Now)
		if err != nil || got.Signer.Identity != "idn_root" {
			t.Errorf("got %v, %v", got, err)
		}
		// Expiry does not undo a revocation of the key.
		for _, order := range [][]identity.Identity{
			{ledgertest.CertIdentity(expired.Cert), ledgertest.Revoked(ledgertest.KeyIdentity(leaf.Key.Public()))},
			{ledgertest.Revoked(ledgertest.KeyIdentity(leaf.Key.Public())), ledgertest.CertIdentity(expired.Cert)}} {
			_, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}),
				ledgertest.Keyring(append(order, ledgertest.RootIdentity(root.Cert))...), ledgertest.Now)
			ledgertest.WantCode(t, err, ledger.CodeRevokedIdentity)
		}
	})
}

// An intermediate CA can be a root: the leaf alone is enough, and the CA above it is not
// trusted. What it issues is trusted as long as it is valid and not revoked itself.
func TestVerifyIntermediateRoot(t *testing.T) {
	top := ledgertest.NewRoot()
	middleOf := func(notAfter time.Duration) *ledgertest.Party {
		return ledgertest.NewCert(top, pkix.Name{CommonName: "acme build CA"}, ledgertest.NewP256(),
			func(c *x509.Certificate) { ledgertest.AsCA(c); c.NotAfter = ledgertest.Now.Std().Add(notAfter) })
	}
	middle, old := middleOf(time.Hour), middleOf(-time.Hour)
	signerOf := func(ca *ledgertest.Party) *ledgertest.Party {
		return ledgertest.NewCert(ca, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	}
	leaf, oldLeaf, topLeaf := signerOf(middle), signerOf(old), signerOf(top)
	registered := ledgertest.RootIdentity(middle.Cert)
	topAndRevoked := []identity.Identity{ledgertest.RootIdentity(top.Cert), ledgertest.Revoked(registered)}

	for _, test := range []struct {
		name  string
		ids   []identity.Identity
		chain []*ledgertest.Party
		want  ledger.Code
	}{
		{"a leaf alone", []identity.Identity{registered}, []*ledgertest.Party{leaf}, ""},
		{"with the intermediate", []identity.Identity{registered}, []*ledgertest.Party{leaf, middle}, ""},
		{"with both CAs", []identity.Identity{registered}, []*ledgertest.Party{leaf, middle, top}, ""},
		{"issued by the CA above", []identity.Identity{registered}, []*ledgertest.Party{topLeaf, top},
			ledger.CodeUntrustedIdentity},
		{"revoked", []identity.Identity{ledgertest.Revoked(registered)}, []*ledgertest.Party{leaf, middle},
			ledger.CodeRevokedIdentity},
		{"revoked, a leaf alone, the CA above trusted", topAndRevoked, []*ledgertest.Party{leaf},
			ledger.CodeRevokedIdentity},
		{"expired", []identity.Identity{ledgertest.RootIdentity(old.Cert)}, []*ledgertest.Party{oldLeaf},
			ledger.CodeExpiredCertificate},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := attestation.Verify(bundleOf(test.chain), ledgertest.Keyring(test.ids...), ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
		})
	}
}

// A valid chain is not enough: the payload must be signed by the key of the certificate.
func TestVerifyCertificateOfAnother(t *testing.T) {
	root := ledgertest.NewRoot()
	signer, other := ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner),
		ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	rawBytes := func(c *ledgertest.Party) string { return base64.StdEncoding.EncodeToString(c.Cert.Raw) }
	forged := strings.Replace(string(bundleOf([]*ledgertest.Party{signer})), rawBytes(signer), rawBytes(other), 1)
	_, err := attestation.Verify([]byte(forged), ledgertest.Keyring(ledgertest.RootIdentity(root.Cert)), ledgertest.Now)
	ledgertest.WantCode(t, err, ledger.CodeInvalidSignature)
}

func TestNewKeyringErrors(t *testing.T) {
	good := ledgertest.KeyIdentity(ledgertest.NewP256().Public())
	for name, spoil := range map[string]func(*identity.Identity){
		"no PEM":        func(id *identity.Identity) { id.PEM = "" },
		"no DN":         func(id *identity.Identity) { id.DN = "" },
		"no kind":       func(id *identity.Identity) { id.Kind = "" },
		"a root's key":  func(id *identity.Identity) { id.Kind = identity.RootIdentity },
		"a private key": func(id *identity.Identity) { id.PEM = string(ledgertest.CosignFile("leaf.key")) },
		"another block": func(id *identity.Identity) { id.PEM = ledgertest.PEM("PGP MESSAGE", []byte{0}) },
	} {
		id := good
		spoil(&id)
		_, err := identity.NewKeyring([]identity.Identity{id}, nil)
		if err == nil || !strings.Contains(err.Error(), "idn_key") {
			t.Errorf("%s: got %v, want an error with the identity's id", name, err)
		}
	}
}
