package ca_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// now is half a second after a whole one: certificates have no smaller unit.
var now = ledger.TimeOf(time.Date(2026, 11, 26, 9, 0, 0, 500e6, time.UTC))

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

// A fixture is the CA of acme.
type fixture struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	key := newKey(t)
	cert := must.Get(ca.NewRoot(ca.Jobs, "acme", ca.NewSerial(), key, now))(t)
	return fixture{t, cert, key}
}

// leaf returns a leaf that the CA issues.
func leaf(t testing.TB, dn string, key *ecdsa.PrivateKey) ca.Leaf {
	t.Helper()
	parsed := must.Get(identity.ParseDN(dn))(t)
	return ca.Leaf{Purpose: ca.Jobs, DN: parsed, Key: &key.PublicKey, Claims: claims}
}

func (f fixture) issue(dn string, key *ecdsa.PrivateKey) *x509.Certificate {
	f.t.Helper()
	cert, err := leaf(f.t, dn, key).Issue(f.cert, f.key, now)
	must.OK(f.t, err)
	return cert
}

// keyring returns a keyring that trusts the CA for a pattern.
func (f fixture) keyring(pattern string) *identity.Keyring {
	f.t.Helper()
	i, err := identity.NewIdentity{Kind: identity.RootIdentity, PEM: ca.PEM(f.cert), DNPattern: pattern}.Identity()
	must.OK(f.t, err)
	i.ID = "idn_ca"
	ring, err := identity.NewKeyring([]identity.Identity{i}, nil)
	must.OK(f.t, err)
	return ring
}

var claims = ca.Claims{Issuer: "https://ci.example", Digest: "sha256:2cf2"}

const job = "cn=api,ou=ci-build,o=acme"

func TestCertificateOfAJobSaysWhoAndForHowLong(t *testing.T) {
	f := newFixture(t)
	key := newKey(t)
	cert := f.issue(job, key)

	wantName := pkix.Name{CommonName: "api", OrganizationalUnit: []string{"ci-build"}, Organization: []string{"acme"}}
	if got := cert.Subject.String(); got != wantName.String() {
		t.Errorf("subject is %s, want %s", got, wantName)
	}
	if from := time.Date(2026, 11, 26, 8, 59, 0, 0, time.UTC); !cert.NotBefore.Equal(from) {
		t.Errorf("valid from %v, want a minute before it was issued: %v", cert.NotBefore, from)
	}
	if until := time.Date(2026, 11, 26, 9, 10, 0, 0, time.UTC); !cert.NotAfter.Equal(until) {
		t.Errorf("valid until %v, want ten minutes after it was issued: %v", cert.NotAfter, until)
	}
	if !cert.BasicConstraintsValid || cert.IsCA {
		t.Errorf("basic constraints: present %t, CA %t, want CA:FALSE", cert.BasicConstraintsValid, cert.IsCA)
	}
	if cert.KeyUsage != x509.KeyUsageDigitalSignature || !isCritical(cert, asn1.ObjectIdentifier{2, 5, 29, 15}) {
		t.Errorf("key usage is %b, want only digitalSignature, critical", cert.KeyUsage)
	}
	if !slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}) || cert.UnknownExtKeyUsage != nil {
		t.Errorf("extended key usage is %v %v, want only codeSigning", cert.ExtKeyUsage, cert.UnknownExtKeyUsage)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		t.Error("certified another key")
	}
	if cert.SerialNumber.BitLen() != 128 {
		t.Errorf("the serial number has %d bits, want 128", cert.SerialNumber.BitLen())
	}
	if again := f.issue(job, key); again.SerialNumber.Cmp(cert.SerialNumber) == 0 {
		t.Error("two certificates have one serial number")
	}
	if cert.DNSNames != nil || cert.EmailAddresses != nil || cert.URIs != nil || cert.IPAddresses != nil {
		t.Error("the certificate has alternative names")
	}
}

// isCritical reports whether a certificate has a critical extension.
func isCritical(cert *x509.Certificate, id asn1.ObjectIdentifier) bool {
	return slices.ContainsFunc(cert.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(id) && e.Critical })
}

func TestCertificateHasTheDigestOfTheClaims(t *testing.T) {
	f := newFixture(t)
	got, ok, err := ca.ClaimsOf(f.issue(job, newKey(t)))
	must.OK(t, err)
	if !ok || got != claims {
		t.Errorf("claims are %q (%t), want %q", got, ok, claims)
	}
	if _, ok, err := ca.ClaimsOf(f.cert); ok || err != nil {
		t.Errorf("the CA has claims: %t, %v", ok, err)
	}
}

func TestDamagedClaimsAreAnError(t *testing.T) {
	good, err := asn1.Marshal(claims)
	must.OK(t, err)
	for name, value := range map[string][]byte{
		"no DER": []byte("x"), "more bytes": append(good, 0),
	} {
		id := asn1.ObjectIdentifier{2, 25, 1515595488, 1}
		cert := &x509.Certificate{Extensions: []pkix.Extension{{Id: id, Value: value}}}
		if _, ok, err := ca.ClaimsOf(cert); !ok || err == nil {
			t.Errorf("%s: present %t, error %v", name, ok, err)
		}
	}
}

// The keyring of an org is what decides whether a signature counts.
func TestOrgTrustsCertificatesOfItsCA(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	key := newKey(t)
	issued := now.Std().Truncate(time.Second)
	for _, tc := range []struct {
		name    string
		cert    *x509.Certificate
		pattern string
		signer  *ecdsa.PrivateKey
		at      time.Time
		want    ledger.Code // empty: trusted
	}{
		{"when it was issued", f.issue(job, key), ca.Jobs.Pattern("acme"), key, issued, ""},
		{"in its last second", f.issue(job, key), ca.Jobs.Pattern("acme"), key, issued.Add(10 * time.Minute), ""},
		{"a second after it", f.issue(job, key), ca.Jobs.Pattern("acme"), key, issued.Add(10*time.Minute + time.Second),
			ledger.CodeExpiredCertificate},
		{"by a clock that is a minute behind", f.issue(job, key), ca.Jobs.Pattern("acme"), key, issued.Add(-time.Minute), ""},
		{"before that", f.issue(job, key), ca.Jobs.Pattern("acme"), key, issued.Add(-time.Minute - time.Second),
			ledger.CodeExpiredCertificate},
		{"for another key", f.issue(job, key), ca.Jobs.Pattern("acme"), newKey(t), issued, ledger.CodeInvalidSignature},
		{"outside the pattern, by its o", f.issue("cn=api,ou=ci-build,o=globex", key), ca.Jobs.Pattern("acme"), key, issued,
			ledger.CodeUntrustedIdentity},
		{"outside the pattern, by its ou", f.issue(job, key), "ou=ci-deploy,o=acme", key, issued,
			ledger.CodeUntrustedIdentity},
		{"of another CA", other.issue(job, key), ca.Jobs.Pattern("acme"), key, issued, ledger.CodeUntrustedIdentity},
	} {
		signature := must.Get(identity.Sign(tc.signer, []byte("text")))(t)
		signed := &identity.Signed{Message: []byte("text"), Signature: signature,
			Certificates: []*x509.Certificate{tc.cert}}
		vouchers, err := f.keyring(tc.pattern).Verify(signed, tc.at)
		if got := codeOf(err); got != tc.want {
			t.Errorf("%s: %q (%v), want %q", tc.name, got, err, tc.want)
		}
		if tc.want != "" {
			continue
		}
		signer, err := vouchers.Signer("test:go", "")
		if err != nil || signer.DN.String() != job || signer.Identity != "idn_ca" {
			t.Errorf("%s: signed by %s through %s: %v", tc.name, signer.DN, signer.Identity, err)
		}
	}
}

// The name in a certificate is exactly that of the rule, also with special characters.
func TestSignerHasTheCertifiedName(t *testing.T) {
	f := newFixture(t)
	key := newKey(t)
	signature := must.Get(identity.Sign(key, []byte("text")))(t)
	for _, dn := range []string{
		`cn=a\,ou\=dev\+b\"\\,ou=ci-\<x\>,o=acme\; inc`, `cn=\2a,ou=ci-\2a,o=acme & co`, `cn=\ a\ ,ou=ci-\ ,o=\#acme`,
		`cn=é漢,ou=ci-é,o=acme`, `cn=a@b,ou=ci-_,o=acme`,
	} {
		cert := f.issue(dn, key)
		signed := &identity.Signed{Message: []byte("text"), Signature: signature, Certificates: []*x509.Certificate{cert}}
		vouchers, err := f.keyring("ou=ci-*").Verify(signed, now.Std())
		must.OK(t, err)
		signer, err := vouchers.Signer("test:go", "")
		if want := leaf(t, dn, key).DN; err != nil || signer.DN != want {
			t.Errorf("signed by %s: %v, want %s", signer.DN, err, want)
		}
	}
}

func codeOf(err error) ledger.Code {
	if err == nil {
		return ""
	}
	if e, ok := err.(*ledger.Error); ok {
		return e.Code
	}
	return "not a *ledger.Error"
}

func TestOnlyNamesOfJobsAreCertified(t *testing.T) {
	f := newFixture(t)
	for _, dn := range []identity.DN{
		{CN: "api", OU: "ci-build", O: "acme"},
		{CN: "alice", OU: "ci-x", O: "acme"},
	} {
		if err := ca.Jobs.CheckDN(dn); err != nil {
			t.Errorf("refused %s: %v", dn, err)
		}
	}
	for _, dn := range []identity.DN{
		{CN: "alice", OU: "dev", O: "acme"},
		{CN: "alice", OU: "ci-", O: "acme"},
		{CN: "alice", OU: "CI-build", O: "acme"},
		{CN: "alice", OU: "dev ci-build", O: "acme"},
		{CN: "alice", O: "acme"},
		{CN: "ci-build", OU: "dev", O: "acme"},
		{OU: "ci-build", O: "acme"},
		{CN: "api", OU: "ci-build"},
		{CN: "api\u200b", OU: "ci-build", O: "acme"},
	} {
		if ca.Jobs.CheckDN(dn) == nil {
			t.Errorf("accepted %s", dn)
		}
		l := ca.Leaf{Purpose: ca.Jobs, DN: dn, Key: &newKey(t).PublicKey, Claims: claims}
		if _, err := l.Issue(f.cert, f.key, now); err == nil {
			t.Errorf("certified %s", dn)
		}
	}
}

func TestCAsCertifyOnlyJobs(t *testing.T) {
	f := newFixture(t)
	c := f.cert
	if !c.BasicConstraintsValid || !c.IsCA || c.MaxPathLen != 0 || !c.MaxPathLenZero {
		t.Errorf("basic constraints are %t %t %d, want a CA of no other CA", c.BasicConstraintsValid, c.IsCA, c.MaxPathLen)
	}
	if c.KeyUsage != x509.KeyUsageCertSign {
		t.Errorf("key usage is %b, want only keyCertSign", c.KeyUsage)
	}
	if !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}) {
		t.Errorf("extended key usage is %v, want only codeSigning", c.ExtKeyUsage)
	}
	if !strings.HasPrefix(c.Subject.CommonName, "acme CI CA "+ca.SerialText(c.SerialNumber)[:8]) {
		t.Errorf("subject is %s", c.Subject)
	}
	if ca.SerialText(big.NewInt(10)) != strings.Repeat("0", 31)+"a" {
		t.Errorf("the serial number 10 is %s", ca.SerialText(big.NewInt(10)))
	}
}

// A certificate that outlives its CA would not be trusted to its end.
func TestNoCertificateOutlivesItsCA(t *testing.T) {
	f := newFixture(t)
	last := ledger.TimeOf(f.cert.NotAfter.Add(-ca.Lifetime))
	l := leaf(t, job, newKey(t))
	if _, err := l.Issue(f.cert, f.key, last); err != nil {
		t.Errorf("ten minutes before the end of the CA: %v", err)
	}
	if _, err := l.Issue(f.cert, f.key, last.Add(time.Second)); err == nil {
		t.Error("issued a second later")
	}
}
