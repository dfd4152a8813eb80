package ca_test

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

const person = "cn=ann,ou=people-dev,o=acme"

// newPeopleFixture returns the CA of acme for people.
func newPeopleFixture(t testing.TB) fixture {
	t.Helper()
	key := newKey(t)
	cert := must.Get(ca.NewRoot(ca.People, "acme", ca.NewSerial(), key, now))(t)
	return fixture{t, cert, key}
}

// issueFor issues a certificate with which a person signs a payload.
func (f fixture) issueFor(payload string, key *ecdsa.PrivateKey) *x509.Certificate {
	f.t.Helper()
	dn := must.Get(identity.ParseDN(person))(f.t)
	cert, err := ca.Leaf{Purpose: ca.People, DN: dn, Key: &key.PublicKey, Payload: sha256.Sum256([]byte(payload))}.
		Issue(f.cert, f.key, now)
	must.OK(f.t, err)
	return cert
}

func TestEachCACertifiesItsOwnNames(t *testing.T) {
	for _, tc := range []struct {
		dn   identity.DN
		want map[ca.Purpose]bool
	}{
		{identity.DN{CN: "ann", OU: "people-dev", O: "acme"}, map[ca.Purpose]bool{ca.People: true}},
		{identity.DN{CN: "api", OU: "ci-build", O: "acme"}, map[ca.Purpose]bool{ca.Jobs: true}},
		{identity.DN{CN: "ann", OU: "people-", O: "acme"}, nil},
		{identity.DN{CN: "ann", OU: "People-dev", O: "acme"}, nil},
		{identity.DN{CN: "ann", OU: "dev people-dev", O: "acme"}, nil},
		{identity.DN{CN: "ann", OU: "dev", O: "acme"}, nil},
		{identity.DN{CN: "ann", OU: "people-dev"}, nil},
		{identity.DN{OU: "people-dev", O: "acme"}, nil},
		{identity.DN{CN: "ann\u200b", OU: "people-dev", O: "acme"}, nil},
	} {
		for _, p := range []ca.Purpose{ca.Jobs, ca.People} {
			if err := p.CheckDN(tc.dn); (err == nil) != tc.want[p] {
				t.Errorf("the CA for %s: %s gives %v", p.Holders(), tc.dn, err)
			}
		}
	}
}

func TestCAsByPurpose(t *testing.T) {
	for _, tc := range []struct {
		purpose           ca.Purpose
		n                 ca.NewAuthority
		wantMay, wantName string
		wantPattern       string
		wantErr           string
	}{
		{ca.People, ca.NewAuthority{}, "review:*", "acme People CA ", "ou=people-*,o=acme", ""},
		{ca.People, ca.NewAuthority{May: identity.Predicates{"review:code"}, DNPattern: "ou=people-core,o=acme"},
			"review:code", "acme People CA ", "ou=people-core,o=acme", ""},
		{ca.People, ca.NewAuthority{DNPattern: "ou=ci-*,o=acme"}, "", "", "", "allows names of CI jobs: its ou must begin " +
			"with people- (use e.g. ou=people-*,o=acme)"},
		{ca.People, ca.NewAuthority{DNPattern: "o=acme"}, "", "", "", "must begin with people-"},
		{ca.People, ca.NewAuthority{May: identity.Predicates{"*"}}, "", "", "",
			"people may attest only reviews: use review:*"},
		{ca.People, ca.NewAuthority{May: identity.Predicates{"review:code", "test:*"}}, "", "", "",
			"people may attest only reviews"},
		{ca.People, ca.NewAuthority{May: identity.Predicates{"r*"}}, "", "", "", "people may attest only reviews"},
		{ca.Jobs, ca.NewAuthority{May: identity.Predicates{"test:*"}}, "test:*", "acme CI CA ", "ou=ci-*,o=acme", ""},
		{ca.Jobs, ca.NewAuthority{}, "", "", "", "the predicates that CI jobs may attest"},
		{ca.Jobs, ca.NewAuthority{May: identity.Predicates{"*"}, DNPattern: "ou=people-*"}, "", "", "",
			"allows names of people: its ou must begin with ci- (use e.g. ou=ci-*,o=acme)"},
	} {
		root := must.Get(ca.NewRoot(tc.purpose, "acme", ca.NewSerial(), newKey(t), now))(t)
		i, err := tc.n.Identity(tc.purpose, "acme", ca.PEM(root))
		if tc.wantErr != "" {
			if codeOf(err) != ledger.CodeInvalidField || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("%s, %+v: %v, want %q", tc.purpose, tc.n, err, tc.wantErr)
			}
			continue
		}
		if err != nil || i.May.String() != tc.wantMay || i.DNPattern != tc.wantPattern ||
			!strings.HasPrefix(root.Subject.CommonName, tc.wantName) {
			t.Errorf("%s, %+v: %+v, %v, named %s", tc.purpose, tc.n, i, err, root.Subject.CommonName)
		}
	}
}

// The certificate of a person has the profile of those of CI jobs, and what it is for instead of
// the claims of a token.
func TestCertificateOfAPersonIsForOnePayload(t *testing.T) {
	f, key := newPeopleFixture(t), newKey(t)
	cert := f.issueFor("statement", key)
	job := newFixture(t).issue(job, key)
	if cert.IsCA || cert.KeyUsage != job.KeyUsage || !slices.Equal(cert.ExtKeyUsage, job.ExtKeyUsage) ||
		!cert.NotBefore.Equal(job.NotBefore) || !cert.NotAfter.Equal(job.NotAfter) {
		t.Errorf("certificate: %+v", cert)
	}
	if _, ok, err := ca.ClaimsOf(cert); ok || err != nil {
		t.Errorf("it has claims: %t, %v", ok, err)
	}

	digest := sha256.Sum256([]byte("statement"))
	want := append([]byte{4, 32}, digest[:]...) // an OCTET STRING
	found := false
	for _, e := range cert.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{2, 25, 1515595488, 2}) {
			found = string(e.Value) == string(want) && !e.Critical
		}
	}
	if !found {
		t.Errorf("extensions: %+v", cert.Extensions)
	}
}

func TestPeopleGetNoOpenCertificate(t *testing.T) {
	f := newPeopleFixture(t)
	dn := must.Get(identity.ParseDN(person))(t)
	for name, l := range map[string]ca.Leaf{
		"without a payload": {Purpose: ca.People, DN: dn, Key: &newKey(t).PublicKey},
		"as a CI job":       {Purpose: ca.Jobs, DN: dn, Key: &newKey(t).PublicKey, Payload: [32]byte{1}},
		"of no purpose":     {DN: dn, Key: &newKey(t).PublicKey, Payload: [32]byte{1}},
	} {
		if _, err := l.Issue(f.cert, f.key, now); err == nil {
			t.Errorf("certified a person %s", name)
		}
	}
}

// A signature with the certificate counts for the payload that it names, and for nothing else.
func TestCertificateIsWorthlessForOtherPayloads(t *testing.T) {
	f, key := newPeopleFixture(t), newKey(t)
	cert := f.issueFor("statement", key)
	i, err := ca.NewAuthority{}.Identity(ca.People, "acme", ca.PEM(f.cert))
	must.OK(t, err)
	i.ID = "idn_ca"
	ring, err := identity.NewKeyring([]identity.Identity{i}, nil)
	must.OK(t, err)

	for _, tc := range []struct {
		name, message, payload string
		change                 func(*x509.Certificate)
		recorded               bool
		want                   ledger.Code // empty: trusted
	}{
		{name: "its payload", message: "pae statement", payload: "statement"},
		{name: "its payload, recorded before", message: "pae statement", payload: "statement", recorded: true},
		{name: "another payload", message: "pae other", payload: "other", want: ledger.CodeInvalidSignature},
		{name: "another payload, recorded before", message: "pae other", payload: "other", recorded: true,
			want: ledger.CodeInvalidSignature},
		{name: "a message without a payload", message: "statement", want: ledger.CodeInvalidSignature},
		{name: "another digest", message: "pae statement", payload: "statement",
			change: func(c *x509.Certificate) { setPayload(c, []byte{4, 0}) }, want: ledger.CodeInvalidSignature},
		{name: "a digest that is no DER", message: "pae statement", payload: "statement",
			change: func(c *x509.Certificate) { setPayload(c, []byte("x")) }, want: ledger.CodeInvalidSignature},
	} {
		used := must.Get(x509.ParseCertificate(cert.Raw))(t)
		if tc.change != nil {
			tc.change(used)
		}
		signature, err := identity.Sign(key, []byte(tc.message))
		must.OK(t, err)
		_, err = ring.Verify(&identity.Signed{Message: []byte(tc.message), Payload: []byte(tc.payload), Signature: signature,
			Certificates: []*x509.Certificate{used}, IsRecorded: tc.recorded}, now.Std().Truncate(time.Second))
		if got := codeOf(err); got != tc.want {
			t.Errorf("%s: %q (%v), want %q", tc.name, got, err, tc.want)
		}
	}
}

// setPayload replaces what the extension of a parsed certificate says.
func setPayload(c *x509.Certificate, value []byte) {
	c.Extensions = append([]pkix.Extension(nil), c.Extensions...)
	for i, e := range c.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{2, 25, 1515595488, 2}) {
			c.Extensions[i].Value = value
		}
	}
}
