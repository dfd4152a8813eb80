package ledger

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
)

// hintedDSSE returns an envelope that key signed, with a keyid of our choice.
func hintedDSSE(key *testCA, hint string) []byte {
	sig := must(Sign(key.key, PAE(StatementType, passed())))
	return []byte(strings.Replace(string(dsseOf(passed(), sig)), `{"sig"`, `{"keyid":`+strconv.Quote(hint)+`,"sig"`, 1))
}

// A keyid or hint is whatever the client's author had in mind.
func TestVerifyHints(t *testing.T) {
	key := &testCA{key: newP256()}
	id := keyIdentity(key.key.Public())
	// As it may stand in a file: with another line width and end.
	id.PEM = strings.ReplaceAll(id.PEM, "\n", "\r\n")
	other := keyIdentity(newP256().Public())
	other.ID = "idn_other"
	org := keyringOf(other, id)

	spki := must(x509.MarshalPKIXPublicKey(key.key.Public()))
	ofSPKI, ofText, ofPEM := sha256.Sum256(spki), sha256.Sum256([]byte(id.PEM)), sha256.Sum256([]byte(publicPEM(key.key.Public())))
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
			got, err := Verify(body, org, testNow)
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
		_, err := Verify(hintedDSSE(key, other.Fingerprint), org, testNow)
		wantCode(t, err, CodeInvalidSignature)
	})
}

// A signature that names no key is tried with all, unless that takes too long.
func TestVerifyTriesSoMuchOnly(t *testing.T) {
	key := newP256()
	var ids []Identity
	for range 99 {
		ids = append(ids, keyIdentity(newP256().Public()))
	}
	org := keyringOf(append(ids, keyIdentity(key.Public()))...)
	large := append(passed(), make([]byte, MaxTried/100)...)
	_, err := Verify(dsseOf(large, must(Sign(key, PAE(StatementType, large)))), org, testNow)
	wantCode(t, err, CodeUntrustedIdentity)
	if err == nil || !strings.Contains(err.Error(), "keyid") {
		t.Errorf("%v does not say to name the key", err)
	}
	_, err = Verify(must(SignDSSE(key, large)), org, testNow)
	wantCode(t, err, CodeInvalidStatement) // the signature is good
	if _, err := Verify(dsseOf(passed(), must(Sign(key, PAE(StatementType, passed())))), org, testNow); err != nil {
		t.Errorf("a small one: %v", err)
	}
}

// E-mail addresses are those of the alternative names and of the subject; one
// with a line end would be two to the store.
func TestVerifyEmails(t *testing.T) {
	root := newRoot()
	name := ciName()
	for _, email := range []string{"ann@acme.example", "ci@acme.example", "b@acme.example\nc@acme.example"} {
		name.ExtraNames = append(name.ExtraNames, pkix.AttributeTypeAndValue{Type: oidEmailAddress, Value: email})
	}
	key := newP256()
	leaf := newCert(root, name, key, func(c *x509.Certificate) {
		asSigner(c)
		c.EmailAddresses = []string{"ci@acme.example", "d@acme.example\n", "bob@acme.example"}
	})
	want := []string{"ci@acme.example", "bob@acme.example", "ann@acme.example"}
	for how, id := range map[string]Identity{"chained": rootIdentity(root.cert), "registered": certIdentity(leaf.cert)} {
		got, err := Verify(bundleOf([]*testCA{leaf}), keyringOf(id), testNow)
		if err != nil || !slices.Equal(got.Signer.Emails, want) {
			t.Errorf("%s: got %v, %v, want the addresses %q", how, got, err, want)
		}
	}
}

// What an org holds of one key, and what a signature by it then is.
func TestVerifyHolders(t *testing.T) {
	key := newP256()
	ci := newCert(nil, ciName(), key, asSigner)
	old := newCert(nil, ciName(), key, func(c *x509.Certificate) { asSigner(c); c.NotAfter = testNow.Std().Add(-time.Hour) })
	coming := newCert(nil, ciName(), key, func(c *x509.Certificate) { asSigner(c); c.NotBefore = testNow.Std().Add(time.Hour) })
	bare := keyIdentity(key.Public())
	bare.ID = "idn_bare"
	expired := certIdentity(old.cert)
	expired.ID = "idn_expired"

	tests := []struct {
		name string
		ids  []Identity
		want string // the identity that signed, or the code
	}{
		{"a bare key", []Identity{bare}, "idn_bare"},
		{"a certificate", []Identity{certIdentity(ci.cert)}, "idn_cert"},
		{"revoked", []Identity{revoked(bare)}, string(CodeRevokedIdentity)},
		{"expired", []Identity{expired}, string(CodeExpiredCertificate)},
		{"not yet valid", []Identity{certIdentity(coming.cert)}, string(CodeExpiredCertificate)},
		{"revoked, then registered again", []Identity{revoked(bare), certIdentity(ci.cert)}, "idn_cert"},
		{"expired, then renewed", []Identity{expired, certIdentity(ci.cert)}, "idn_cert"},
		{"expired and revoked", []Identity{revoked(bare), expired}, string(CodeRevokedIdentity)},
		{"revoked and expired", []Identity{expired, revoked(bare)}, string(CodeRevokedIdentity)},
		{"registered twice", []Identity{bare, certIdentity(ci.cert)}, "idn_bare"},
		{"among others", []Identity{keyIdentity(newP256().Public()), revoked(keyIdentity(newP256().Public())), bare}, "idn_bare"},
	}
	for _, test := range tests {
		org := keyringOf(test.ids...)
		for name, body := range map[string][]byte{
			"found by trying":  dsseOf(passed(), must(Sign(key, PAE(StatementType, passed())))),
			"by the keyid":     must(SignDSSE(key, passed())),
			"by a certificate": must(SignBundle(key, []*x509.Certificate{ci.cert}, passed())),
		} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				got, err := Verify(body, org, testNow)
				if !strings.HasPrefix(test.want, "idn_") {
					wantCode(t, err, Code(test.want))
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
	key := newP256()
	posing := newCert(nil, pkix.Name{CommonName: "release manager"}, key, asSigner)
	org := keyringOf(keyIdentity(key.Public()))
	got, err := Verify(must(SignBundle(key, []*x509.Certificate{posing.cert}, passed())), org, testNow)
	if err != nil {
		t.Fatal(err)
	}
	if got.Signer.DN != (DN{"ci", "build", "acme"}) || !slices.Equal(got.Signer.Emails, []string{"ci@acme.example"}) {
		t.Errorf("got %v", got.Signer)
	}

	both := newCert(nil, ciName(), key, func(c *x509.Certificate) {
		asSigner(c)
		c.EmailAddresses = []string{"one@acme.example", "two@acme.example"}
	})
	id := registered("idn_cert", NewIdentity{Kind: KeyIdentity, PEM: certPEM(both.cert), Email: "ci@acme.example"})
	got, err = Verify(must(SignDSSE(key, passed())), keyringOf(id), testNow)
	if err != nil || !slices.Equal(got.Signer.Emails, []string{"ci@acme.example", "one@acme.example", "two@acme.example"}) {
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
	root := newRoot()
	middle := newCert(root, pkix.Name{CommonName: "acme build CA"}, newP256(), asCA)
	day := 24 * time.Hour
	leafOf := func(issuer *testCA, change func(*x509.Certificate)) []*testCA {
		return []*testCA{newCert(issuer, ciName(), newP256(), func(c *x509.Certificate) { asSigner(c); change(c) })}
	}
	as := func(*x509.Certificate) {}
	notAfter := func(d time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = testNow.Std().Add(d) }
	}
	usage := func(usages ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = usages }
	}
	oldMiddle := newCert(root, pkix.Name{CommonName: "acme build CA"}, newP256(), func(c *x509.Certificate) { asCA(c); c.NotAfter = testNow.Std().Add(-day / 2) })
	tlsMiddle := newCert(root, pkix.Name{CommonName: "acme web CA"}, newP256(), func(c *x509.Certificate) { asCA(c); usage(x509.ExtKeyUsageServerAuth)(c) })
	notCA := newCert(root, pkix.Name{CommonName: "bob"}, newP256(), asSigner)
	huge := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 65536, 1), E: 1<<31 - 1}
	hugeCA := newCert(root, notCA.cert.Subject, posingKey{newP256(), huge}, asCA)
	posing := newCert(nil, root.cert.Subject, newP256(), asCA)
	twice := pkix.Name{CommonName: "ci", ExtraNames: []pkix.AttributeTypeAndValue{
		{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "build"}, {Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "release"}}}

	tests := []struct {
		name   string
		chain  []*testCA
		want   Code
		detail string
	}{
		{"issued by the root", leafOf(root, as), "", ""},
		{"by way of an intermediate", append(leafOf(middle, as), middle), "", ""},
		{"with the root among the certificates", append(leafOf(middle, as), root, middle), "", ""},
		{"an intermediate is missing", leafOf(middle, as), CodeUntrustedIdentity, "no trusted root"},
		{"self-signed", []*testCA{newCert(nil, ciName(), newP256(), asSigner)}, CodeUntrustedIdentity, "no trusted root"},
		{"under a root of the same name", append(leafOf(posing, as), posing), CodeUntrustedIdentity, "no trusted root"},
		{"issued by one who is no CA", append(leafOf(notCA, as), notCA), CodeUntrustedIdentity, "no trusted root"},
		{"by a CA whose key takes ages", append(leafOf(notCA, as), hugeCA), CodeUntrustedIdentity, "an RSA key of 65537 bits is not accepted"},
		{"beside a CA whose key takes ages", append(leafOf(root, as), hugeCA), CodeUntrustedIdentity, "an RSA key of 65537 bits is not accepted"},
		{"by a CA that is for TLS", append(leafOf(tlsMiddle, as), tlsMiddle), CodeUntrustedIdentity, "usage"},
		{"for TLS", leafOf(root, usage(x509.ExtKeyUsageClientAuth)), CodeUntrustedIdentity, "code-signing"},
		{"for TLS and code", leafOf(root, usage(x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageCodeSigning)), "", ""},
		{"for anything", leafOf(root, usage(x509.ExtKeyUsageAny)), CodeUntrustedIdentity, "code-signing"},
		{"for nothing named", leafOf(root, usage()), CodeUntrustedIdentity, "code-signing"},
		{"for encryption", leafOf(root, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }), CodeUntrustedIdentity, "digitalSignature"},
		{"without key usage", leafOf(root, func(c *x509.Certificate) { c.KeyUsage = 0 }), "", ""},
		{"expired", leafOf(root, notAfter(-time.Hour)), CodeExpiredCertificate, "expired at 2026-11-29T23:53:20.000Z"},
		{"ends now", leafOf(root, notAfter(0)), "", ""},
		{"not yet valid", leafOf(root, func(c *x509.Certificate) { c.NotBefore = testNow.Std().Add(time.Hour) }), CodeExpiredCertificate, "not valid before"},
		{"an intermediate expired", append(leafOf(oldMiddle, as), oldMiddle), CodeExpiredCertificate, "cn=acme build CA expired"},
		{"expired, and under no root", append(leafOf(posing, notAfter(-time.Hour)), posing), CodeUntrustedIdentity, ""},
		{"without a name", leafOf(root, func(c *x509.Certificate) { c.Subject = pkix.Name{Organization: []string{"acme"}} }), CodeUntrustedIdentity, "no CN"},
		{"in two units", leafOf(root, func(c *x509.Certificate) { c.Subject = twice }), CodeUntrustedIdentity, "several values of OU"},
		{"for another host only", leafOf(root, func(c *x509.Certificate) { c.DNSNames = []string{"ci.acme.example"} }), "", ""},
		{"with an extension that must be understood", leafOf(root, func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
		}), CodeUntrustedIdentity, "critical"},
	}
	org := keyringOf(rootIdentity(root.cert))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Verify(bundleOf(test.chain), org, testNow)
			wantCode(t, err, test.want)
			if err != nil && !strings.Contains(err.Error(), test.detail) {
				t.Errorf("got %q, want it to say %q", err, test.detail)
			}
			if err == nil && (got.Signer.DN != DN{"ci", "build", "acme"} || got.Signer.Identity != "idn_root" || got.Signer.Emails[0] != "ci@acme.example") {
				t.Errorf("got signer %v", got.Signer)
			}
		})
	}
}

func bundleOf(chain []*testCA) []byte {
	var certs []*x509.Certificate
	for _, c := range chain {
		certs = append(certs, c.cert)
	}
	return must(SignBundle(chain[0].key, certs, passed()))
}

// The same chain, in orgs that think otherwise of its root.
func TestVerifyRoots(t *testing.T) {
	root, other := newRoot(), newRoot()
	old := newCert(nil, root.cert.Subject, root.key, func(c *x509.Certificate) { asCA(c); c.NotAfter = testNow.Std().Add(-time.Hour) })
	leaf := newCert(root, ciName(), newP256(), asSigner)
	tests := []struct {
		name string
		ids  []Identity
		want Code
	}{
		{"trusted", []Identity{rootIdentity(root.cert)}, ""},
		{"among others", []Identity{rootIdentity(other.cert), revoked(rootIdentity(old.cert)), rootIdentity(root.cert)}, ""},
		{"revoked", []Identity{revoked(rootIdentity(root.cert))}, CodeRevokedIdentity},
		{"revoked, then registered again", []Identity{revoked(rootIdentity(root.cert)), rootIdentity(root.cert)}, ""},
		{"expired", []Identity{rootIdentity(old.cert)}, CodeExpiredCertificate},
		{"another", []Identity{rootIdentity(other.cert)}, CodeUntrustedIdentity},
		{"none", nil, CodeUntrustedIdentity},
		{"trusted, but the signer itself revoked", []Identity{rootIdentity(root.cert), revoked(certIdentity(leaf.cert))}, CodeRevokedIdentity},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Verify(bundleOf([]*testCA{leaf}), keyringOf(test.ids...), testNow)
			wantCode(t, err, test.want)
		})
	}
	t.Run("registered certificate expired, and a new one from the root", func(t *testing.T) {
		expired := newCert(root, ciName(), leaf.key, func(c *x509.Certificate) { asSigner(c); c.NotAfter = testNow.Std().Add(-time.Hour) })
		got, err := Verify(bundleOf([]*testCA{leaf}), keyringOf(certIdentity(expired.cert), rootIdentity(root.cert)), testNow)
		if err != nil || got.Signer.Identity != "idn_root" {
			t.Errorf("got %v, %v", got, err)
		}
		// But expiry does not undo that the key was revoked.
		for _, order := range [][]Identity{{certIdentity(expired.cert), revoked(keyIdentity(leaf.key.Public()))}, {revoked(keyIdentity(leaf.key.Public())), certIdentity(expired.cert)}} {
			_, err := Verify(bundleOf([]*testCA{leaf}), keyringOf(append(order, rootIdentity(root.cert))...), testNow)
			wantCode(t, err, CodeRevokedIdentity)
		}
	})
}

// A certificate is not a signature: under a good chain, the payload must still
// be what its key signed.
func TestVerifyCertificateOfAnother(t *testing.T) {
	root := newRoot()
	mine, hers := newCert(root, ciName(), newP256(), asSigner), newCert(root, ciName(), newP256(), asSigner)
	rawBytes := func(c *testCA) string { return base64.StdEncoding.EncodeToString(c.cert.Raw) }
	forged := strings.Replace(string(bundleOf([]*testCA{mine})), rawBytes(mine), rawBytes(hers), 1)
	_, err := Verify([]byte(forged), keyringOf(rootIdentity(root.cert)), testNow)
	wantCode(t, err, CodeInvalidSignature)
}

func TestNewKeyringErrors(t *testing.T) {
	good := keyIdentity(newP256().Public())
	for name, spoil := range map[string]func(*Identity){
		"no PEM":         func(id *Identity) { id.PEM = "" },
		"no DN":          func(id *Identity) { id.DN = "" },
		"no kind":        func(id *Identity) { id.Kind = "" },
		"a root's key":   func(id *Identity) { id.Kind = RootIdentity },
		"a private key":  func(id *Identity) { id.PEM = string(cosignFile("leaf.key")) },
		"something else": func(id *Identity) { id.PEM = pemOf("PGP MESSAGE", []byte{0}) },
	} {
		id := good
		spoil(&id)
		if _, err := NewKeyring([]Identity{id}); err == nil || !strings.Contains(err.Error(), "idn_key") {
			t.Errorf("%s: got %v, want an error that names the identity", name, err)
		}
	}
}
