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

// hintedDSSE returns an envelope that key signed, with a keyid of our choice.
func hintedDSSE(key *ledgertest.Party, hint string) []byte {
	sig := ledgertest.Must(identity.Sign(key.Key, attestation.PAE(attestation.StatementType, ledgertest.Passed())))
	return []byte(strings.Replace(string(ledgertest.DSSE(ledgertest.Passed(), sig)), `{"sig"`, `{"keyid":`+
		strconv.Quote(hint)+`,"sig"`, 1))
}

// A keyid or hint is whatever the client's author had in mind.
func TestVerifyHints(t *testing.T) {
	key := &ledgertest.Party{Key: ledgertest.NewP256()}
	id := ledgertest.KeyIdentity(key.Key.Public())
	// As it may stand in a file: with another line width and end.
	id.PEM = strings.ReplaceAll(id.PEM, "\n", "\r\n")
	other := ledgertest.KeyIdentity(ledgertest.NewP256().Public())
	other.ID = "idn_other"
	org := ledgertest.Keyring(other, id)

	spki := ledgertest.Must(x509.MarshalPKIXPublicKey(key.Key.Public()))
	ofSPKI, ofText, ofPEM := sha256.Sum256(spki), sha256.Sum256([]byte(id.PEM)),
		sha256.Sum256([]byte(ledgertest.PublicPEM(key.Key.Public())))
	hints := map[string]string{
		"none":                          "",
		"the SPKI, hex":                 hex.EncodeToString(ofSPKI[:]),
		"the SPKI, upper-case hex":      strings.ToUpper(hex.EncodeToString(ofSPKI[:])),
		"the SPKI, base64, as cosign":   base64.StdEncoding.EncodeToString(ofSPKI[:]),
		"the SPKI, URL base64":          base64.RawURLEncoding.EncodeToString(ofSPKI[:]),
		"the PEM, hex, as witness":      hex.EncodeToString(ofPEM[:]),
		"the PEM as registered, base64": base64.StdEncoding.EncodeToString(ofText[:]),
		"nothing that is known":         strings.Repeat("0", 64),
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
				t.Errorf("signed by %s", got.Signer.Identity)
			}
			known := hint != "" && name != "a name" && name != "nothing that is known"
			if found := org.Names(hint); found != known {
				t.Errorf("found by the hint: %v, want %v", found, known)
			}
		})
	}
	t.Run("another's", func(t *testing.T) {
		_, err := attestation.Verify(hintedDSSE(key, other.Fingerprint), org, ledgertest.Now)
		ledgertest.WantCode(t, err, ledger.CodeInvalidSignature)
	})
}

// A signature that names no key is tried with all, unless that takes too long.
func TestVerifyTriesSoMuchOnly(t *testing.T) {
	key := ledgertest.NewP256()
	var ids []identity.Identity

	for range 99 {
		ids = append(ids, ledgertest.KeyIdentity(ledgertest.NewP256().Public()))
	}
	org := ledgertest.Keyring(append(ids, ledgertest.KeyIdentity(key.Public()))...)
	large := append(ledgertest.Passed(), make([]byte, identity.MaxTried/100)...)
	_, err := attestation.Verify(
		ledgertest.DSSE(large, ledgertest.Must(identity.Sign(key, attestation.PAE(attestation.StatementType, large)))), org,
		ledgertest.Now)
	ledgertest.WantCode(t, err, ledger.CodeUntrustedIdentity)
	if err == nil || !strings.Contains(err.Error(), "keyid") {
		t.Errorf("%v does not say to name the key", err)
	}
	_, err = attestation.Verify(ledgertest.Must(attestation.SignDSSE(key, large)), org, ledgertest.Now)
	ledgertest.WantCode(t, err, ledger.CodeInvalidStatement) // the signature is good
	if _, err := attestation.Verify(
		ledgertest.DSSE(ledgertest.Passed(),
			ledgertest.Must(identity.Sign(key, attestation.PAE(attestation.StatementType, ledgertest.Passed())))), org,
		ledgertest.Now); err != nil {
		t.Errorf("a small one: %v", err)
	}
}

// E-mail addresses are those of the alternative names and of the subject; one
// with a line end would be two to the store.
func TestVerifyEmails(t *testing.T) {
	root := ledgertest.NewRoot()
	name := ledgertest.CIName()
	for _, email := range []string{"ann@acme.example", "ci@acme.example", "b@acme.example\nc@acme.example"} {
		name.ExtraNames = append(name.ExtraNames, pkix.AttributeTypeAndValue{Type: ledgertest.OIDEmail, Value: email})
	}
	key := ledgertest.NewP256()
	leaf := ledgertest.NewCert(root, name, key, func(c *x509.Certificate) {
		ledgertest.AsSigner(c)
		c.EmailAddresses = []string{"ci@acme.example", "d@acme.example\n", "bob@acme.example"}
	})
	want := []string{"ci@acme.example", "bob@acme.example", "ann@acme.example"}
	for how, id := range map[string]identity.Identity{"chained": ledgertest.RootIdentity(root.Cert),
		"registered": ledgertest.CertIdentity(leaf.Cert)} {
		got, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}), ledgertest.Keyring(id), ledgertest.Now)
		if err != nil || !slices.Equal(got.Signer.Emails, want) {
			t.Errorf("%s: got %v, %v, want the addresses %q", how, got, err, want)
		}
	}
}

// What an org holds of one key, and what a signature by it then is.
func TestVerifyHolders(t *testing.T) {
	key := ledgertest.NewP256()
	ci := ledgertest.NewCert(nil, ledgertest.CIName(), key, ledgertest.AsSigner)
	old := ledgertest.NewCert(nil, ledgertest.CIName(), key, func(c *x509.Certificate) {
		ledgertest.AsSigner(c)
		c.NotAfter = ledgertest.Now.Std().Add(-time.Hour)
	})
	coming := ledgertest.NewCert(nil, ledgertest.CIName(), key, func(c *x509.Certificate) {
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
		want string // the identity that signed, or the code
	}{
		{"a bare key", []identity.Identity{bare}, "idn_bare"},
		{"a certificate", []identity.Identity{ledgertest.CertIdentity(ci.Cert)}, "idn_cert"},
		{"revoked", []identity.Identity{ledgertest.Revoked(bare)}, string(ledger.CodeRevokedIdentity)},
		{"expired", []identity.Identity{expired}, string(ledger.CodeExpiredCertificate)},
		{"not yet valid", []identity.Identity{ledgertest.CertIdentity(coming.Cert)}, string(ledger.CodeExpiredCertificate)},
		{"revoked, then registered again", []identity.Identity{ledgertest.Revoked(bare), ledgertest.CertIdentity(ci.Cert)},
			"idn_cert"},
		{"expired, then renewed", []identity.Identity{expired, ledgertest.CertIdentity(ci.Cert)}, "idn_cert"},
		{"expired and revoked", []identity.Identity{ledgertest.Revoked(bare), expired}, string(ledger.CodeRevokedIdentity)},
		{"revoked and expired", []identity.Identity{expired, ledgertest.Revoked(bare)}, string(ledger.CodeRevokedIdentity)},
		{"registered twice", []identity.Identity{bare, ledgertest.CertIdentity(ci.Cert)}, "idn_bare"},
		{"among others", []identity.Identity{ledgertest.KeyIdentity(ledgertest.NewP256().Public()),
			ledgertest.Revoked(ledgertest.KeyIdentity(ledgertest.NewP256().Public())), bare}, "idn_bare"},
	}
	for _, test := range tests {
		org := ledgertest.Keyring(test.ids...)
		for name, body := range map[string][]byte{
			"found by trying": ledgertest.DSSE(ledgertest.Passed(),
				ledgertest.Must(identity.Sign(key, attestation.PAE(attestation.StatementType, ledgertest.Passed())))),
			"by the keyid":     ledgertest.Must(attestation.SignDSSE(key, ledgertest.Passed())),
			"by a certificate": ledgertest.Must(attestation.SignBundle(key, []*x509.Certificate{ci.Cert}, ledgertest.Passed())),
		} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				got, err := attestation.Verify(body, org, ledgertest.Now)
				if !strings.HasPrefix(test.want, "idn_") {
					ledgertest.WantCode(t, err, ledger.Code(test.want))
				} else if err != nil || got.Signer.Identity != test.want {
					t.Errorf("got %v, %v; want it signed by %s", got, err, test.want)
				}
			})
		}
	}
}

// The registered DN and addresses are the signer's, whatever a certificate
// that comes with the signature says.
func TestVerifyRegisteredName(t *testing.T) {
	key := ledgertest.NewP256()
	posing := ledgertest.NewCert(nil, pkix.Name{CommonName: "release manager"}, key, ledgertest.AsSigner)
	org := ledgertest.Keyring(ledgertest.KeyIdentity(key.Public()))
	got, err := attestation.Verify(
		ledgertest.Must(attestation.SignBundle(key, []*x509.Certificate{posing.Cert}, ledgertest.Passed())), org,
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

// A posingKey claims to be of another public key than it is.
type posingKey struct {
	crypto.Signer
	public crypto.PublicKey
}

func (k posingKey) Public() crypto.PublicKey { return k.public }

// Chains: who a root vouches for, and who not.
func TestVerifyChains(t *testing.T) {
	root := ledgertest.NewRoot()
	middle := ledgertest.NewCert(root, pkix.Name{CommonName: "acme build CA"}, ledgertest.NewP256(), ledgertest.AsCA)
	day := 24 * time.Hour
	leafOf := func(issuer *ledgertest.Party, change func(*x509.Certificate)) []*ledgertest.Party {
		return []*ledgertest.Party{ledgertest.NewCert(issuer, ledgertest.CIName(), ledgertest.NewP256(),
			func(c *x509.Certificate) { ledgertest.AsSigner(c); change(c) })}
	}
	as := func(*x509.Certificate) {}
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
	hugeCA := ledgertest.NewCert(root, notCA.Cert.Subject, posingKey{ledgertest.NewP256(), huge}, ledgertest.AsCA)
	posing := ledgertest.NewCert(nil, root.Cert.Subject, ledgertest.NewP256(), ledgertest.AsCA)
	twice := pkix.Name{CommonName: "ci", ExtraNames: []pkix.AttributeTypeAndValue{
		{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "build"},
		{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "release"}}}

	tests := []struct {
		name   string
		chain  []*ledgertest.Party
		want   ledger.Code
		detail string
	}{
		{"issued by the root", leafOf(root, as), "", ""},
		{"by way of an intermediate", append(leafOf(middle, as), middle), "", ""},
		{"with the root among the certificates", append(leafOf(middle, as), root, middle), "", ""},
		{"an intermediate is missing", leafOf(middle, as), ledger.CodeUntrustedIdentity, "does not chain to a trusted root"},
		{"self-signed", []*ledgertest.Party{ledgertest.NewCert(nil, ledgertest.CIName(), ledgertest.NewP256(),
			ledgertest.AsSigner)}, ledger.CodeUntrustedIdentity, "does not chain to a trusted root"},
		{"under a root of the same name", append(leafOf(posing, as), posing), ledger.CodeUntrustedIdentity,
			"does not chain to a trusted root"},
		{"issued by one who is no CA", append(leafOf(notCA, as), notCA), ledger.CodeUntrustedIdentity, "does not chain to a trusted root"},
		{"by a CA whose key takes ages", append(leafOf(notCA, as), hugeCA), ledger.CodeUntrustedIdentity,
			"RSA keys of 65537 bits are not supported"},
		{"beside a CA whose key takes ages", append(leafOf(root, as), hugeCA), ledger.CodeUntrustedIdentity,
			"RSA keys of 65537 bits are not supported"},
		{"by a CA that is for TLS", append(leafOf(tlsMiddle, as), tlsMiddle), ledger.CodeUntrustedIdentity, "usage"},
		{"for TLS", leafOf(root, usage(x509.ExtKeyUsageClientAuth)), ledger.CodeUntrustedIdentity, "not for code signing"},
		{"for TLS and code", leafOf(root, usage(x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageCodeSigning)), "", ""},
		{"for anything", leafOf(root, usage(x509.ExtKeyUsageAny)), ledger.CodeUntrustedIdentity, "not for code signing"},
		{"for nothing named", leafOf(root, usage()), ledger.CodeUntrustedIdentity, "not for code signing"},
		{"for encryption", leafOf(root, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }),
			ledger.CodeUntrustedIdentity, "digitalSignature"},
		{"without key usage", leafOf(root, func(c *x509.Certificate) { c.KeyUsage = 0 }), "", ""},
		{"expired", leafOf(root, notAfter(-time.Hour)), ledger.CodeExpiredCertificate, "expired at 2026-11-29T23:53:20.000Z"},
		{"ends now", leafOf(root, notAfter(0)), "", ""},
		{"not yet valid", leafOf(root, func(c *x509.Certificate) { c.NotBefore = ledgertest.Now.Std().Add(time.Hour) }),
			ledger.CodeExpiredCertificate, "not valid before"},
		{"an intermediate expired", append(leafOf(oldMiddle, as), oldMiddle), ledger.CodeExpiredCertificate,
			"cn=acme build CA expired"},
		{"expired, and under no root", append(leafOf(posing, notAfter(-time.Hour)), posing), ledger.CodeUntrustedIdentity,
			""},
		{"without a name", leafOf(root, func(c *x509.Certificate) { c.Subject = pkix.Name{Organization: []string{"acme"}} }),
			ledger.CodeUntrustedIdentity, "no CN"},
		{"in two units", leafOf(root, func(c *x509.Certificate) { c.Subject = twice }), ledger.CodeUntrustedIdentity,
			"more than one OU"},
		{"for another host only", leafOf(root, func(c *x509.Certificate) { c.DNSNames = []string{"ci.acme.example"} }), "",
			""},
		{"with an extension that must be understood", leafOf(root, func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
		}), ledger.CodeUntrustedIdentity, "critical"},
	}
	org := ledgertest.Keyring(ledgertest.RootIdentity(root.Cert))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := attestation.Verify(bundleOf(test.chain), org, ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
			if err != nil && !strings.Contains(err.Error(), test.detail) {
				t.Errorf("got %q, want it to say %q", err, test.detail)
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

// The same chain, in orgs that think otherwise of its root.
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
		{"among others", []identity.Identity{ledgertest.RootIdentity(other.Cert),
			ledgertest.Revoked(ledgertest.RootIdentity(old.Cert)), ledgertest.RootIdentity(root.Cert)}, ""},
		{"revoked", []identity.Identity{ledgertest.Revoked(ledgertest.RootIdentity(root.Cert))}, ledger.CodeRevokedIdentity},
		{"revoked, then registered again", []identity.Identity{ledgertest.Revoked(ledgertest.RootIdentity(root.Cert)),
			ledgertest.RootIdentity(root.Cert)}, ""},
		{"expired", []identity.Identity{ledgertest.RootIdentity(old.Cert)}, ledger.CodeExpiredCertificate},
		{"another", []identity.Identity{ledgertest.RootIdentity(other.Cert)}, ledger.CodeUntrustedIdentity},
		{"none", nil, ledger.CodeUntrustedIdentity},
		{"trusted, but the signer itself revoked", []identity.Identity{ledgertest.RootIdentity(root.Cert),
			ledgertest.Revoked(ledgertest.CertIdentity(leaf.Cert))}, ledger.CodeRevokedIdentity},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}), ledgertest.Keyring(test.ids...), ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
		})
	}

	t.Run("registered certificate expired, and a new one from the root", func(t *testing.T) {
		expired := ledgertest.NewCert(root, ledgertest.CIName(), leaf.Key, func(c *x509.Certificate) {
			ledgertest.AsSigner(c)
			c.NotAfter = ledgertest.Now.Std().Add(-time.Hour)
		})
		got, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}),
			ledgertest.Keyring(ledgertest.CertIdentity(expired.Cert), ledgertest.RootIdentity(root.Cert)), ledgertest.Now)
		if err != nil || got.Signer.Identity != "idn_root" {
			t.Errorf("got %v, %v", got, err)
		}
		// But expiry does not undo that the key was revoked.
		for _, order := range [][]identity.Identity{
			{ledgertest.CertIdentity(expired.Cert), ledgertest.Revoked(ledgertest.KeyIdentity(leaf.Key.Public()))},
			{ledgertest.Revoked(ledgertest.KeyIdentity(leaf.Key.Public())), ledgertest.CertIdentity(expired.Cert)}} {
			_, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}),
				ledgertest.Keyring(append(order, ledgertest.RootIdentity(root.Cert))...), ledgertest.Now)
			ledgertest.WantCode(t, err, ledger.CodeRevokedIdentity)
		}
	})
}

// A certificate is not a signature: under a good chain, the payload must still
// be what its key signed.
func TestVerifyCertificateOfAnother(t *testing.T) {
	root := ledgertest.NewRoot()
	mine, hers := ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner),
		ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	rawBytes := func(c *ledgertest.Party) string { return base64.StdEncoding.EncodeToString(c.Cert.Raw) }
	forged := strings.Replace(string(bundleOf([]*ledgertest.Party{mine})), rawBytes(mine), rawBytes(hers), 1)
	_, err := attestation.Verify([]byte(forged), ledgertest.Keyring(ledgertest.RootIdentity(root.Cert)), ledgertest.Now)
	ledgertest.WantCode(t, err, ledger.CodeInvalidSignature)
}

func TestNewKeyringErrors(t *testing.T) {
	good := ledgertest.KeyIdentity(ledgertest.NewP256().Public())
	for name, spoil := range map[string]func(*identity.Identity){
		"no PEM":         func(id *identity.Identity) { id.PEM = "" },
		"no DN":          func(id *identity.Identity) { id.DN = "" },
		"no kind":        func(id *identity.Identity) { id.Kind = "" },
		"a root's key":   func(id *identity.Identity) { id.Kind = identity.RootIdentity },
		"a private key":  func(id *identity.Identity) { id.PEM = string(ledgertest.CosignFile("leaf.key")) },
		"something else": func(id *identity.Identity) { id.PEM = ledgertest.PEM("PGP MESSAGE", []byte{0}) },
	} {
		id := good
		spoil(&id)
		if _, err := identity.NewKeyring([]identity.Identity{id}); err == nil || !strings.Contains(err.Error(), "idn_key") {
			t.Errorf("%s: got %v, want an error that names the identity", name, err)
		}
	}
}
