package ledger

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"
)

func TestNewIdentity(t *testing.T) {
	key := newP256()
	bare := publicPEM(key.Public())
	ci := newCert(nil, ciName(), key, asSigner)
	root := newRoot()
	const dn = "cn=ci,ou=build,o=acme"
	subject := func(name pkix.Name) string {
		return certPEM(newCert(nil, name, newP256(), asCA).cert)
	}
	tests := []struct {
		name      string
		in        NewIdentity
		dn, email string
	}{
		{"a bare key", NewIdentity{Kind: KeyIdentity, PEM: bare, DN: dn}, dn, ""},
		{"a bare key, its DN in another order", NewIdentity{Kind: KeyIdentity, PEM: bare, DN: "o=acme, ou=build, cn=ci", Email: "ci@acme.example"}, dn, "ci@acme.example"},
		{"a bare key behind a comment", NewIdentity{Kind: KeyIdentity, PEM: "our build key\n" + bare + "\n\n", DN: dn}, dn, ""},
		{"a certificate", NewIdentity{Kind: KeyIdentity, PEM: certPEM(ci.cert)}, dn, "ci@acme.example"},
		{"a certificate with its own subject given", NewIdentity{Kind: KeyIdentity, PEM: certPEM(ci.cert), DN: "o=acme,ou=build,cn=ci", Email: "build@acme.example"}, dn, "build@acme.example"},
		{"a certificate without ou and o", NewIdentity{Kind: KeyIdentity, PEM: subject(pkix.Name{CommonName: "ci"})}, "cn=ci", ""},
		{"a root", NewIdentity{Kind: RootIdentity, PEM: certPEM(root.cert)}, "cn=acme root,o=acme", ""},
		{"a root with its subject given", NewIdentity{Kind: RootIdentity, PEM: certPEM(root.cert), DN: "cn=acme root,o=acme"}, "cn=acme root,o=acme", ""},
		{"a certificate with its e-mail in the subject", NewIdentity{Kind: KeyIdentity, PEM: subject(pkix.Name{CommonName: "ann", ExtraNames: []pkix.AttributeTypeAndValue{{Type: oidEmailAddress, Value: "ann@acme.example"}}})}, "cn=ann", "ann@acme.example"},
		{"a root without a CN", NewIdentity{Kind: RootIdentity, PEM: subject(pkix.Name{Organization: []string{"acme"}}), DN: "o=acme"}, "o=acme", ""},
		{"a root with neither", NewIdentity{Kind: RootIdentity, PEM: subject(pkix.Name{Country: []string{"CH"}})}, "C=CH", ""},
		{"a root of two units", NewIdentity{Kind: RootIdentity, PEM: subject(pkix.Name{CommonName: "r", OrganizationalUnit: []string{"a", "b"}})}, "CN=r,OU=a+OU=b", ""},
		{"cosign's", NewIdentity{Kind: KeyIdentity, PEM: string(cosignFile("leaf.crt"))}, "cn=ci-bot,ou=build,o=acme", "ci-bot@acme.example"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.in.Identity()
			if err != nil {
				t.Fatal(err)
			}
			if got.DN != test.dn || got.Email != test.email || got.Kind != test.in.Kind || got.PEM != test.in.PEM {
				t.Errorf("got %+v", got)
			}
			pub, cert := publicKeyIn(got.PEM)
			if want := must(Fingerprint(pub)); got.Fingerprint != want {
				t.Errorf("got fingerprint %s, want %s", got.Fingerprint, want)
			}
			if isCert := cert != nil; isCert != (got.NotAfter != 0) || isCert && got.NotAfter != TimeOf(cert.NotAfter) {
				t.Errorf("got not_after %v", got.NotAfter)
			}
			if _, err := NewKeyring([]Identity{got}); err != nil {
				t.Errorf("a keyring does not take it: %v", err)
			}
		})
	}
}

// What cannot be registered, which field is to blame, and why.
func TestNewIdentityRefused(t *testing.T) {
	key := newP256()
	bare := publicPEM(key.Public())
	ci, root := certPEM(newCert(nil, ciName(), key, asSigner).cert), certPEM(newRoot().cert)
	const dn = "cn=ci,ou=build,o=acme"
	asKey := func(text, dn, email string) NewIdentity { return NewIdentity{KeyIdentity, text, dn, email} }
	asRoot := func(text, dn, email string) NewIdentity { return NewIdentity{RootIdentity, text, dn, email} }
	named := func(name pkix.Name, change func(*x509.Certificate)) string {
		return certPEM(newCert(nil, name, newP256(), change).cert)
	}
	tests := []struct {
		name          string
		in            NewIdentity
		field, reason string
	}{
		{"no PEM", asKey("", dn, ""), "pem", "no PEM block"},
		{"an SSH key", asKey("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA ci", dn, ""), "pem", "no PEM block"},
		{"two keys", asKey(bare+bare, dn, ""), "pem", "something follows"},
		{"a chain", asKey(ci+root, "", ""), "pem", "something follows"},
		{"a private key", asKey(string(cosignFile("leaf.key")), dn, ""), "pem", "should never have been sent"},
		{"a private key beside", asKey(bare+string(cosignFile("leaf.key")), dn, ""), "pem", "should never have been sent"},
		{"an encrypted private key", asKey(pemOf("ENCRYPTED PRIVATE KEY", []byte{0}), dn, ""), "pem", "should never have been sent"},
		{"another block", asKey(pemOf("CERTIFICATE REQUEST", []byte{0}), dn, ""), "pem", "CERTIFICATE REQUEST"},
		{"a broken key", asKey(pemOf("PUBLIC KEY", []byte{0x30}), dn, ""), "pem", "public key cannot be read"},
		{"a broken certificate", asKey(pemOf("CERTIFICATE", []byte{0x30}), dn, ""), "pem", "certificate cannot be read"},
		{"a small key", asKey(publicPEM(&must(rsa.GenerateKey(rand.Reader, 1024)).PublicKey), dn, ""), "pem", "1024 bits"},
		{"a key that signs nothing", asKey(publicPEM(must(ecdh.X25519().GenerateKey(rand.Reader)).PublicKey()), dn, ""), "pem", "use Ed25519"},
		{"a certificate of long ago", asKey(named(ciName(), func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Unix(-2, 0), time.Unix(0, 0) }), "", ""), "pem", "before 1970"},
		{"endless", asKey(strings.Repeat("x", MaxPEM+1)+bare, dn, ""), "pem", "longer than"},

		{"no DN", asKey(bare, "", ""), "dn", "missing"},
		{"a DN that is none", asKey(bare, "ci", ""), "dn", "no ="},
		{"no ou", asKey(bare, "cn=ci,o=acme", ""), "dn", "lacks ou or o"},
		{"no o", asKey(bare, "cn=ci,ou=build", ""), "dn", "lacks ou or o"},
		{"a DN other than the certificate's", asKey(ci, "cn=cd,ou=build,o=acme", ""), "dn", "leave dn out"},
		{"a bad DN with a certificate", asKey(ci, "ci", ""), "dn", "no ="},
		{"a certificate without CN", asKey(named(pkix.Name{Organization: []string{"acme"}}, asSigner), "", ""), "pem", "no CN"},
		{"a certificate of two units", asKey(named(pkix.Name{CommonName: "ci", OrganizationalUnit: []string{"a", "b"}}, asSigner), "", ""), "pem", "several values of OU"},

		{"an e-mail that is none", asKey(bare, dn, "ci"), "email", "not an e-mail address"},
		{"an e-mail with a name", asKey(bare, dn, "CI <ci@acme.example>"), "email", "not an e-mail address"},
		{"two e-mails", asKey(bare, dn, "a@acme.example,b@acme.example"), "email", "not an e-mail address"},
		{"an endless e-mail", asKey(bare, dn, strings.Repeat("x", 250)+"@acme.example"), "email", "not an e-mail address"},

		{"no kind", NewIdentity{"", bare, dn, ""}, "kind", "use key or root"},
		{"an unknown kind", NewIdentity{"cert", ci, "", ""}, "kind", "use key or root"},

		{"a bare root", asRoot(bare, dn, ""), "pem", "must be a CA certificate"},
		{"a root that is a signer's", asRoot(ci, "", ""), "pem", "not of a CA"},
		{"a CA that may not sign", asRoot(named(ciName(), func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageDigitalSignature }), "", ""), "pem", "may not sign others"},
		{"a root of a small key", asRoot(certPEM(newCert(nil, ciName(), must(rsa.GenerateKey(rand.Reader, 1024)), asCA).cert), "", ""), "pem", "1024 bits"},
		{"a root with an e-mail", asRoot(root, "", "ca@acme.example"), "email", "a root has none"},
		{"a root with another DN", asRoot(root, "cn=other", ""), "dn", "leave dn out"},
		{"a root without a subject", asRoot(named(pkix.Name{}, asCA), "", ""), "pem", "no subject"},
		{"a root of the country with a DN", asRoot(named(pkix.Name{Country: []string{"CH"}}, asCA), "cn=x", ""), "dn", "leave dn out"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.in.Identity()
			wantCode(t, err, CodeInvalidField)
			wantField(t, err, test.field)
			if err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("got %v, want it to say %q", err, test.reason)
			}
			if got != (Identity{}) {
				t.Errorf("got %+v beside the error", got)
			}
		})
	}
}

// FuzzIdentity looks for PEM that a registration takes, but a keyring does not.
func FuzzIdentity(f *testing.F) {
	for _, file := range []string{"p256.pub", "leaf.crt", "ca.crt", "ca.key"} {
		f.Add(string(cosignFile(file)), "cn=ci,ou=build,o=acme", true)
		f.Add(string(cosignFile(file)), "", false)
	}
	f.Add(pemOf("CERTIFICATE", newCert(nil, ciName(), newP256(), func(*x509.Certificate) {}).cert.Raw), "", true)
	f.Fuzz(func(t *testing.T, text, dn string, root bool) {
		n := NewIdentity{Kind: KeyIdentity, PEM: text, DN: dn}
		if root {
			n.Kind = RootIdentity
		}
		id, err := n.Identity()
		if err != nil {
			wantCode(t, err, CodeInvalidField)
			return
		}
		if _, err := NewKeyring([]Identity{id}); err != nil {
			t.Fatal(err)
		}
	})
}
