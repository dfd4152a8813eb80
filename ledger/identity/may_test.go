package identity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
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

func TestPredicatesMatch(t *testing.T) {
	for _, test := range []struct {
		patterns  identity.Predicates
		predicate string
		want      bool
	}{
		{nil, "test:go", true},
		{nil, "https://example.com/type", true},
		{identity.Predicates{"test:go"}, "test:go", true},
		{identity.Predicates{"test:go"}, "test:golang", false},
		{identity.Predicates{"test:go"}, "test:", false},
		{identity.Predicates{"test:*"}, "test:go", true},
		{identity.Predicates{"test:*"}, "test:", true},
		{identity.Predicates{"test:*"}, "test", false},
		{identity.Predicates{"test:*"}, "Test:go", false},
		{identity.Predicates{"test:*"}, "TEST:go", false},
		{identity.Predicates{"Test:*"}, "test:go", false},
		{identity.Predicates{"test:*"}, "xtest:go", false},
		{identity.Predicates{"test:*", "build:*"}, "build:docker", true},
		{identity.Predicates{"test:*", "build:*"}, "deploy:prod", false},
		{identity.Predicates{"https://example.com/*"}, "https://example.com/type", true},
		{identity.Predicates{"https://example.com/*"}, "https://example.org/type", false},
		// A type whose URI ends in a star is no pattern itself.
		{identity.Predicates{"https://example.com/type"}, "https://example.com/*", false},
		{identity.Predicates{"exception:*"}, "exception:review", true},
		{identity.Predicates{"test:*"}, "exception:review", false},
		// Those who may deploy to an environment may roll back there.
		{identity.Predicates{"deploy:prod"}, "rollback:prod", true},
		{identity.Predicates{"deploy:*"}, "rollback:prod", true},
		{identity.Predicates{"rollback:*"}, "rollback:prod", true},
		{identity.Predicates{"rollback:prod"}, "deploy:prod", false},
		{identity.Predicates{"deploy:pro"}, "rollback:prod", false},
		{identity.Predicates{"test:*"}, "rollback:prod", false},
		{identity.Predicates{"deploy:prod"}, "baseline:prod", false},
	} {
		if got := test.patterns.Match(test.predicate); got != test.want {
			t.Errorf("%q matches %q: %v, want %v", test.patterns, test.predicate, got, test.want)
		}
	}
}

// What an identity may attest is validated in the same way when it is added and changed.
func TestMayIsValidated(t *testing.T) {
	pem := ledgertest.PublicPEM(ledgertest.NewP256().Public())
	some := make(identity.Predicates, 101)
	for i := range some {
		some[i] = "test:" + strconv.Itoa(i)
	}

	for _, test := range []struct {
		name  string
		may   identity.Predicates
		want  identity.Predicates
		field string // of the error
	}{
		{"none", nil, nil, ""},
		{"an empty list", identity.Predicates{}, nil, ""},
		{"all", identity.Predicates{"*"}, nil, ""},
		{"all, and claims", identity.Predicates{"*", "merge:*"}, identity.Predicates{"*", "merge:*"}, ""},
		{"all, and baselines", identity.Predicates{"*", "baseline:*"}, identity.Predicates{"*", "baseline:*"}, ""},
		{"all, among others", identity.Predicates{"test:*", "*"}, nil, ""},
		{"two", identity.Predicates{"test:*", "build:docker"}, identity.Predicates{"test:*", "build:docker"}, ""},
		{"100", some[:100], some[:100], ""},
		{"101", some, nil, "may"},
		{"101 with one that matches all", append(slices.Clone(some[:100]), "*"), nil, "may"},
		{"512 bytes", identity.Predicates{strings.Repeat("x", 512)}, identity.Predicates{strings.Repeat("x", 512)}, ""},
		{"513 bytes", identity.Predicates{strings.Repeat("x", 513)}, nil, "may[0]"},
		{"an empty pattern", identity.Predicates{"test:*", ""}, nil, "may[1]"},
		{"an empty pattern next to all", identity.Predicates{"*", ""}, nil, "may[1]"},
		{"a star within", identity.Predicates{"te*t"}, nil, "may[0]"},
		{"two stars", identity.Predicates{"test:**"}, nil, "may[0]"},
		{"a line feed", identity.Predicates{"test:go\n*"}, nil, "may[0]"},
		{"a blank", identity.Predicates{"test:go, build:*"}, nil, "may[0]"},
		{"a letter that is not ASCII", identity.Predicates{"tést:*"}, nil, "may[0]"},
		{"DEL", identity.Predicates{"test:\x7f"}, nil, "may[0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			added, err := identity.NewIdentity{
				Kind: identity.KeyIdentity, PEM: pem, DN: "cn=ci,ou=build,o=acme", May: test.may,
			}.Identity()
			changed, changeErr := identity.Identity{Kind: identity.RootIdentity, May: identity.Predicates{"old"}}.Changed(
				identity.Change{May: &test.may})

			if test.field != "" {
				ledgertest.WantField(t, err, test.field)
				ledgertest.WantField(t, changeErr, test.field)
				return
			}
			if err != nil || changeErr != nil || !slices.Equal(added.May, test.want) || !slices.Equal(changed.May, test.want) {
				t.Errorf("added %q, %v; changed %q, %v; want %q", added.May, err, changed.May, changeErr, test.want)
			}
		})
	}
}

func TestDNPatternIsValidated(t *testing.T) {
	root, key := ledgertest.CertPEM(ledgertest.NewRoot().Cert), ledgertest.PublicPEM(ledgertest.NewP256().Public())
	for _, test := range []struct {
		name, pem, pattern string
		want               string // the stored pattern
		ok                 bool
	}{
		{"none", root, "", "", true},
		{"a unit", root, "O=acme, OU=build", "ou=build,o=acme", true},
		{"not a pattern", root, "build", "", false},
		{"an unknown attribute", root, "c=CH", "", false},
		{"of a key", key, "ou=build", "", false},
		{"none, of a key", key, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := identity.NewIdentity{Kind: identity.RootIdentity, PEM: test.pem, DNPattern: test.pattern}
			if test.pem == key {
				n.Kind, n.DN = identity.KeyIdentity, "cn=ci,ou=build,o=acme"
			}
			added, err := n.Identity()
			changed, changeErr := identity.Identity{Kind: n.Kind, DNPattern: "cn=old"}.Changed(
				identity.Change{DNPattern: &test.pattern})

			if !test.ok {
				ledgertest.WantField(t, err, "dn_pattern")
				ledgertest.WantField(t, changeErr, "dn_pattern")
				return
			}
			if err != nil || changeErr != nil || added.DNPattern != test.want || changed.DNPattern != test.want {
				t.Errorf("added %q, %v; changed %q, %v; want %q", added.DNPattern, err, changed.DNPattern, changeErr, test.want)
			}
		})
	}
}

// A change has the same rules for addresses as adding an identity, and leaves out what it
// does not name.
func TestChangeEmail(t *testing.T) {
	signer := ledgertest.NewCert(nil, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	cert, root := ledgertest.CertIdentity(signer.Cert), ledgertest.RootIdentity(ledgertest.NewRoot().Cert)
	cert.May = identity.Predicates{"test:*"}

	changed := ledgertest.Must(cert.Changed(identity.Change{Email: new("bot@acme.example")}))
	if changed.Email != "bot@acme.example" || !slices.Equal(changed.May, cert.May) {
		t.Errorf("changed: %+v", changed)
	}
	if changed = ledgertest.Must(changed.Changed(identity.Change{Email: new("")})); changed.Email != "ci@acme.example" {
		t.Errorf("without an address of its own: %q, want the certificate's", changed.Email)
	}
	ledgertest.Must(root.Changed(identity.Change{Email: new("")}))

	for name, change := range map[string]func() (identity.Identity, error){
		"of a root":      func() (identity.Identity, error) { return root.Changed(identity.Change{Email: new("a@b")}) },
		"not an address": func() (identity.Identity, error) { return cert.Changed(identity.Change{Email: new("nobody")}) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := change()
			ledgertest.WantField(t, err, "email")
		})
	}
	_, err := ledgertest.Revoked(cert).Changed(identity.Change{})
	ledgertest.WantCode(t, err, ledger.CodeRevokedIdentity)
}

// with returns an identity with another id, and with what it may attest.
func with(id identity.Identity, name string, may ...string) identity.Identity {
	id.ID, id.May = name, may
	return id
}

// The keys of a signature decide what it may attest: all active and valid ones together.
// A certificate for the key does not add to it.
func TestVouchersOfKeys(t *testing.T) {
	root := ledgertest.NewRoot()
	signer := ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	expiredCert := ledgertest.NewCert(root, ledgertest.CIName(), signer.Key, func(c *x509.Certificate) {
		ledgertest.AsSigner(c)
		c.NotAfter = ledgertest.Now.Std().Add(-time.Hour)
	})
	impostor := ledgertest.NewCert(nil, pkix.Name{CommonName: "release manager"}, signer.Key, ledgertest.AsSigner)
	key, anyRoot := ledgertest.KeyIdentity(signer.Key.Public()), ledgertest.RootIdentity(root.Cert)
	cert, expired := ledgertest.CertIdentity(signer.Cert), ledgertest.CertIdentity(expiredCert.Cert)

	passed := ledgertest.Passed() // of test:go
	withCert := func(certs ...*x509.Certificate) []byte {
		return ledgertest.Must(attestation.SignBundle(signer.Key, certs, passed))
	}
	hinted := ledgertest.Must(attestation.SignDSSE(signer.Key, passed))
	tried := ledgertest.DSSE(passed, ledgertest.Must(identity.Sign(signer.Key, attestation.PAE(attestation.StatementType,
		passed))))
	every := map[string][]byte{"hint": hinted, "tried": tried, "certificate": withCert(signer.Cert),
		"certificate of another name": withCert(impostor.Cert)}

	for _, test := range []struct {
		name   string
		ids    []identity.Identity
		bodies map[string][]byte
		want   string // the signer's identity, or the code
	}{
		{"allowed", []identity.Identity{with(key, "idn_key", "test:*")}, every, "idn_key"},
		{"not allowed", []identity.Identity{with(key, "idn_key", "build:*")}, every,
			string(ledger.CodePredicateNotAllowed)},
		{"another case", []identity.Identity{with(key, "idn_key", "Test:*")}, every, string(ledger.CodePredicateNotAllowed)},
		{"not allowed, by a root allowed", []identity.Identity{with(key, "idn_key", "build:*"), with(anyRoot, "idn_root")},
			every, string(ledger.CodePredicateNotAllowed)},
		{"allowed, by a root not", []identity.Identity{with(anyRoot, "idn_root", "build:*"), with(key, "idn_key", "test:*")},
			every, "idn_key"},
		{"one of two active ones allows it",
			[]identity.Identity{with(key, "idn_key", "build:*"), with(cert, "idn_cert", "test:go")}, every, "idn_cert"},
		{"both allow it", []identity.Identity{with(key, "idn_key", "test:*"), with(cert, "idn_cert")}, every, "idn_key"},
		{"none of two", []identity.Identity{with(key, "idn_key", "build:*"), with(cert, "idn_cert", "deploy:*")}, every,
			string(ledger.CodePredicateNotAllowed)},
		{"revoked, registered again with less",
			[]identity.Identity{ledgertest.Revoked(with(key, "idn_old")), with(key, "idn_new", "build:*")}, every,
			string(ledger.CodePredicateNotAllowed)},
		{"revoked, registered again with more",
			[]identity.Identity{ledgertest.Revoked(with(key, "idn_old", "build:*")), with(key, "idn_new")}, every, "idn_new"},
		{"revoked", []identity.Identity{ledgertest.Revoked(with(key, "idn_old"))}, every, string(ledger.CodeRevokedIdentity)},
		{"an expired one would allow it",
			[]identity.Identity{with(expired, "idn_expired"), with(key, "idn_key", "build:*")}, every,
			string(ledger.CodePredicateNotAllowed)},
		{"expired, renewed by a root", []identity.Identity{with(expired, "idn_expired", "build:*"),
			with(anyRoot, "idn_root", "test:*")}, map[string][]byte{"certificate": withCert(signer.Cert)}, "idn_root"},
		{"expired, renewed by a root that does not allow it", []identity.Identity{with(expired, "idn_expired"),
			with(anyRoot, "idn_root", "build:*")}, map[string][]byte{"certificate": withCert(signer.Cert)},
			string(ledger.CodePredicateNotAllowed)},
	} {
		for name, body := range test.bodies {
			t.Run(test.name+", by "+name, func(t *testing.T) { checkVoucher(t, body, test.ids, test.want) })
		}
	}
}

func checkVoucher(t *testing.T, body []byte, ids []identity.Identity, want string) {
	t.Helper()
	got, err := attestation.Verify(body, ledgertest.Keyring(ids...), ledgertest.Now)
	if !strings.HasPrefix(want, "idn_") {
		ledgertest.WantCode(t, err, ledger.Code(want))
	} else if err != nil || got.Signer.Identity != want {
		t.Errorf("got %v, %v; want signer %s", got, err, want)
	}
}

// All active roots that a chain reaches and whose DN patterns match its subject decide
// together.
func TestVouchersOfRoots(t *testing.T) {
	top := ledgertest.NewRoot()
	middle := ledgertest.NewCert(top, pkix.Name{CommonName: "acme build CA"}, ledgertest.NewP256(), ledgertest.AsCA)
	renewed := ledgertest.NewCert(nil, top.Cert.Subject, top.Key, func(c *x509.Certificate) {
		ledgertest.AsCA(c)
		c.NotAfter = ledgertest.Now.Std().Add(48 * time.Hour)
	})
	leaf := ledgertest.NewCert(middle, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	alone, whole := bundleOf([]*ledgertest.Party{leaf}), bundleOf([]*ledgertest.Party{leaf, middle, top})

	rootOf := func(p *ledgertest.Party, name, dns string, may ...string) identity.Identity {
		id := with(ledgertest.RootIdentity(p.Cert), name, may...)
		id.DNPattern = dns
		return id
	}
	const untrusted, refused = string(ledger.CodeUntrustedIdentity), string(ledger.CodePredicateNotAllowed)

	for _, test := range []struct {
		name string
		ids  []identity.Identity
		body []byte
		want string
	}{
		{"allowed", []identity.Identity{rootOf(top, "idn_top", "", "test:*")}, whole, "idn_top"},
		{"not allowed", []identity.Identity{rootOf(top, "idn_top", "", "build:*")}, whole, refused},
		{"the DN matches", []identity.Identity{rootOf(top, "idn_top", "ou=build")}, whole, "idn_top"},
		{"the DN does not match", []identity.Identity{rootOf(top, "idn_top", "ou=web")}, whole, untrusted},
		{"the DN does not match in case", []identity.Identity{rootOf(top, "idn_top", "cn=CI", "*")}, whole, untrusted},
		{"by the first of two", []identity.Identity{rootOf(middle, "idn_middle", "", "build:*"), rootOf(top, "idn_top", "")},
			whole, "idn_top"},
		{"by the second of two", []identity.Identity{rootOf(middle, "idn_middle", ""), rootOf(top, "idn_top", "", "build:*")},
			whole, "idn_middle"},
		{"by none of two", []identity.Identity{rootOf(middle, "idn_middle", "", "build:*"),
			rootOf(top, "idn_top", "", "deploy:*")}, whole, refused},
		{"the one that allows it is not reached", []identity.Identity{rootOf(middle, "idn_middle", "", "build:*"),
			rootOf(top, "idn_top", "")}, alone, refused},
		{"the one that allows it has another DN", []identity.Identity{rootOf(middle, "idn_middle", "", "build:*"),
			rootOf(top, "idn_top", "ou=web")}, whole, refused},
		{"one has another DN", []identity.Identity{rootOf(middle, "idn_middle", "ou=web"),
			rootOf(top, "idn_top", "ou=build")}, whole, "idn_top"},
		{"both have other DNs", []identity.Identity{rootOf(middle, "idn_middle", "ou=web"), rootOf(top, "idn_top", "cn=x")},
			whole, untrusted},
		{"revoked, registered again with less",
			[]identity.Identity{ledgertest.Revoked(rootOf(top, "idn_old", "")), rootOf(top, "idn_new", "", "build:*")}, whole,
			refused},
		{"the same certificate twice",
			[]identity.Identity{rootOf(top, "idn_one", "", "build:*"), rootOf(top, "idn_two", "", "test:*")}, whole, "idn_two"},
		{"the same certificate twice, the other way round",
			[]identity.Identity{rootOf(top, "idn_two", "", "test:*"), rootOf(top, "idn_one", "", "build:*")}, whole, "idn_two"},
		{"a renewed certificate with more",
			[]identity.Identity{rootOf(top, "idn_one", "", "build:*"), rootOf(renewed, "idn_two", "", "test:*")}, whole,
			"idn_two"},
	} {
		t.Run(test.name, func(t *testing.T) { checkVoucher(t, test.body, test.ids, test.want) })
	}

	for want, id := range map[string]identity.Identity{
		"certificate of cn=ci,ou=build,o=acme chains to cn=acme root,o=acme (idn_top), whose dn_pattern ou=web does not " +
			"match it": rootOf(top, "idn_top", "ou=web"),
		"cn=ci,ou=build,o=acme may not attest test:go: identity idn_top may attest only build:*,deploy:* (to allow it, " +
			"an admin adds the predicate to the identity's may: " +
			"ledgerd identity update idn_top --may …)": rootOf(top, "idn_top", "", "build:*", "deploy:*"),
	} {
		_, err := attestation.Verify(whole, ledgertest.Keyring(id), ledgertest.Now)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// An error stays short, however many patterns there are.
func TestRefusalIsShort(t *testing.T) {
	key := ledgertest.NewP256()
	long := make([]string, 100)
	for i := range long {
		long[i] = strings.Repeat("x", 500) + strconv.Itoa(i)
	}
	id := with(ledgertest.KeyIdentity(key.Public()), "idn_key", long...)
	_, err := attestation.Verify(ledgertest.Must(attestation.SignDSSE(key, ledgertest.Passed())), ledgertest.Keyring(id),
		ledgertest.Now)
	ledgertest.WantCode(t, err, ledger.CodePredicateNotAllowed)
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("got %v", err)
	}
}
