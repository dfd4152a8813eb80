package identity_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

func TestNewIdentity(t *testing.T) {
	key := ledgertest.NewP256()
	bare := ledgertest.PublicPEM(key.Public())
	ci := ledgertest.NewCert(nil, ledgertest.CIName(), key, ledgertest.AsSigner)
	root := ledgertest.NewRoot()
	const dn = "cn=ci,ou=build,o=acme"
	subject := func(name pkix.Name) string {
		return ledgertest.CertPEM(ledgertest.NewCert(nil, name, ledgertest.NewP256(), ledgertest.AsCA).Cert)
	}

	tests := []struct {
		name      string
		in        identity.NewIdentity
		dn, email string
	}{
		{"a bare key", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: bare, DN: dn}, dn, ""},
		{"a bare key, DN in another order", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: bare,
			DN: "o=acme, ou=build, cn=ci", Email: "ci@acme.example"}, dn, "ci@acme.example"},
		{"a bare key after a comment",
			identity.NewIdentity{Kind: identity.KeyIdentity, PEM: "our build key\n" + bare + "\n\n", DN: dn}, dn, ""},
		{"a certificate", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ledgertest.CertPEM(ci.Cert)}, dn,
			"ci@acme.example"},
		{"a certificate with its subject as dn",
			identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ledgertest.CertPEM(ci.Cert), DN: "o=acme,ou=build,cn=ci",
				Email: "build@acme.example"}, dn, "build@acme.example"},
		{"a certificate without ou and o",
			identity.NewIdentity{Kind: identity.KeyIdentity, PEM: subject(pkix.Name{CommonName: "ci"})}, "cn=ci", ""},
		{"a root", identity.NewIdentity{Kind: identity.RootIdentity, PEM: ledgertest.CertPEM(root.Cert)},
			"cn=acme root,o=acme", ""},
		{"a root with its subject as dn", identity.NewIdentity{Kind: identity.RootIdentity,
			PEM: ledgertest.CertPEM(root.Cert), DN: "cn=acme root,o=acme"}, "cn=acme root,o=acme", ""},
		{"a certificate with an e-mail address in the subject",
			identity.NewIdentity{
				Kind: identity.KeyIdentity,
				PEM: subject(pkix.Name{CommonName: "ann", ExtraNames: []pkix.AttributeTypeAndValue{
					{Type: ledgertest.OIDEmail, Value: "ann@acme.example"}}})}, "cn=ann", "ann@acme.example"},
		{"a root without a CN", identity.NewIdentity{
			Kind: identity.RootIdentity, PEM: subject(pkix.Name{Organization: []string{"acme"}}), DN: "o=acme"}, "o=acme", ""},
		{"a root with neither CN, OU nor O",
			identity.NewIdentity{Kind: identity.RootIdentity, PEM: subject(pkix.Name{Country: []string{"CH"}})}, "C=CH", ""},
		{"a root with two units", identity.NewIdentity{Kind: identity.RootIdentity,
			PEM: subject(pkix.Name{CommonName: "r", OrganizationalUnit: []string{"a", "b"}})}, "CN=r,OU=a+OU=b", ""},
		{"leaf.crt", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(ledgertest.CosignFile("leaf.crt"))},
			"cn=ci-bot,ou=build,o=acme", "ci-bot@acme.example"},
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
			pub, cert := ledgertest.PublicKeyIn(got.PEM)
			if want := ledgertest.Must(identity.Fingerprint(pub)); got.Fingerprint != want {
				t.Errorf("got fingerprint %s, want %s", got.Fingerprint, want)
			}
			if isCert := cert != nil; isCert != (got.NotAfter != 0) || isCert && got.NotAfter != ledger.TimeOf(cert.NotAfter) {
				t.Errorf("got not_after %v", got.NotAfter)
			}
			if _, err := identity.NewKeyring([]identity.Identity{got}, nil); err != nil {
				t.Errorf("NewKeyring: %v", err)
			}
		})
	}
}

// An invalid identity is refused with the field and the reason.
func TestNewIdentityRefused(t *testing.T) {
	key := ledgertest.NewP256()
	bare := ledgertest.PublicPEM(key.Public())
	ci, root := ledgertest.CertPEM(ledgertest.NewCert(nil, ledgertest.CIName(), key, ledgertest.AsSigner).Cert),
		ledgertest.CertPEM(ledgertest.NewRoot().Cert)
	const dn = "cn=ci,ou=build,o=acme"
	asKey := func(text, dn, email string) identity.NewIdentity {
		return identity.NewIdentity{Kind: identity.KeyIdentity, PEM: text, DN: dn, Email: email}
	}
	asRoot := func(text, dn, email string) identity.NewIdentity {
		return identity.NewIdentity{Kind: identity.RootIdentity, PEM: text, DN: dn, Email: email}
	}
	named := func(name pkix.Name, change func(*x509.Certificate)) string {
		return ledgertest.CertPEM(ledgertest.NewCert(nil, name, ledgertest.NewP256(), change).Cert)
	}
	tests := []struct {
		name          string
		in            identity.NewIdentity
		field, reason string
	}{
		{"no PEM", asKey("", dn, ""), "pem", "no PEM block"},
		{"two keys", asKey(bare+bare, dn, ""), "pem", "more text follows"},
		{"a chain", asKey(ci+root, "", ""), "pem", "more text follows"},
		{"a private key", asKey(string(ledgertest.CosignFile("leaf.key")), dn, ""), "pem", "is compromised now"},
		{"a key and a private key", asKey(bare+string(ledgertest.CosignFile("leaf.key")), dn, ""), "pem",
			"is compromised now"},
		{"an encrypted private key", asKey(ledgertest.PEM("ENCRYPTED PRIVATE KEY", []byte{0}), dn, ""), "pem",
			"is compromised now"},
		{"another block", asKey(ledgertest.PEM("CERTIFICATE REQUEST", []byte{0}), dn, ""), "pem", "CERTIFICATE REQUEST"},
		{"a broken key", asKey(ledgertest.PEM("PUBLIC KEY", []byte{0x30}), dn, ""), "pem", "cannot parse the public key"},
		{"a broken certificate", asKey(ledgertest.PEM("CERTIFICATE", []byte{0x30}), dn, ""), "pem",
			"cannot parse the certificate"},
		{"a small key", asKey(ledgertest.PublicPEM(&ledgertest.Must(rsa.GenerateKey(rand.Reader, 1024)).PublicKey), dn, ""),
			"pem", "1024 bits"},
		{"a key that cannot sign",
			asKey(ledgertest.PublicPEM(ledgertest.Must(ecdh.X25519().GenerateKey(rand.Reader)).PublicKey()), dn, ""), "pem",
			"use Ed25519"},
		{"a certificate from before 1970",
			asKey(named(ledgertest.CIName(), func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Unix(-2, 0), time.Unix(0, 0)
			}), "", ""), "pem", "before 1970"},
		{"a long PEM", asKey(strings.Repeat("x", identity.MaxPEM+1)+bare, dn, ""), "pem", "too long"},

		{"no DN", asKey(bare, "", ""), "dn", "required"},
		{"an invalid DN", asKey(bare, "ci", ""), "dn", "no ="},
		{"no ou", asKey(bare, "cn=ci,o=acme", ""), "dn", "needs cn, ou and o"},
		{"no o", asKey(bare, "cn=ci,ou=build", ""), "dn", "needs cn, ou and o"},
		{"a DN that differs from the certificate's", asKey(ci, "cn=cd,ou=build,o=acme", ""), "dn", "(omit dn)"},
		{"an invalid DN with a certificate", asKey(ci, "ci", ""), "dn", "no ="},
		{"a certificate without CN", asKey(named(pkix.Name{Organization: []string{"acme"}}, ledgertest.AsSigner), "", ""),
			"pem", "no CN"},
		{"a certificate with two units",
			asKey(named(pkix.Name{CommonName: "ci", OrganizationalUnit: []string{"a", "b"}}, ledgertest.AsSigner), "", ""),
			"pem", "more than one OU"},

		{"an invalid e-mail address", asKey(bare, dn, "ci"), "email", "not an e-mail address"},
		{"an e-mail address with a name", asKey(bare, dn, "CI <ci@acme.example>"), "email", "not an e-mail address"},
		{"two e-mail addresses", asKey(bare, dn, "a@acme.example,b@acme.example"), "email", "not an e-mail address"},
		{"a long e-mail", asKey(bare, dn, strings.Repeat("x", 250)+"@acme.example"), "email", "not an e-mail address"},

		{"no kind", identity.NewIdentity{Kind: "", PEM: bare, DN: dn, Email: ""}, "kind", "use key, root or sigstore"},
		{"an unknown kind", identity.NewIdentity{Kind: "cert", PEM: ci, DN: "", Email: ""}, "kind",
			"use key, root or sigstore"},

		{"a bare root", asRoot(bare, dn, ""), "pem", "must be a CA certificate"},
		{"an SSH key as a root", asRoot(sshLine(key.Public()), dn, ""), "pem", "must be a CA certificate"},
		{"a leaf as a root", asRoot(ci, "", ""), "pem", "not a CA certificate"},
		{"a CA that may not sign",
			asRoot(named(ledgertest.CIName(), func(c *x509.Certificate) {
				c.IsCA, c.KeyUsage = true, x509.KeyUsageDigitalSignature
			}), "", ""), "pem", "may not issue certificates"},
		{"a root with a small key",
			asRoot(ledgertest.CertPEM(
				ledgertest.NewCert(nil, ledgertest.CIName(), ledgertest.Must(rsa.GenerateKey(rand.Reader, 1024)),
					ledgertest.AsCA).Cert), "", ""), "pem", "1024 bits"},
		{"a root with an e-mail address", asRoot(root, "", "ca@acme.example"), "email", "not allowed for a root"},
		{"a root with another DN", asRoot(root, "cn=other", ""), "dn", "(omit dn)"},
		{"a root without a subject", asRoot(named(pkix.Name{}, ledgertest.AsCA), "", ""), "pem", "no subject"},
		{"a root of a country, and a DN", asRoot(named(pkix.Name{Country: []string{"CH"}}, ledgertest.AsCA), "cn=x", ""),
			"dn", "(omit dn)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.in.Identity()
			ledgertest.WantCode(t, err, ledger.CodeInvalidField)
			ledgertest.WantField(t, err, test.field)
			if err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("got error %v, want %q in it", err, test.reason)
			}
			if !reflect.DeepEqual(got, identity.Identity{}) {
				t.Errorf("got %+v and an error", got)
			}
		})
	}
}

// FuzzIdentity looks for PEM that Identity accepts but NewKeyring refuses.
func FuzzIdentity(f *testing.F) {
	for _, file := range []string{"p256.pub", "leaf.crt", "ca.crt", "ca.key"} {
		f.Add(string(ledgertest.CosignFile(file)), "cn=ci,ou=build,o=acme", true)
		f.Add(string(ledgertest.CosignFile(file)), "", false)
	}
	f.Add(ledgertest.PEM("CERTIFICATE",
		ledgertest.NewCert(nil, ledgertest.CIName(), ledgertest.NewP256(), func(*x509.Certificate) {}).Cert.Raw), "", true)
	f.Fuzz(func(t *testing.T, text, dn string, root bool) {
		n := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: text, DN: dn}
		if root {
			n.Kind = identity.RootIdentity
		}
		id, err := n.Identity()
		if err != nil {
			ledgertest.WantCode(t, err, ledger.CodeInvalidField)
			return
		}
		if _, err := identity.NewKeyring([]identity.Identity{id}, nil); err != nil {
			t.Fatal(err)
		}
	})
}
