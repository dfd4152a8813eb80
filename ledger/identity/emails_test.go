package identity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// E-mail addresses are those in the alternative names and in the subject. Those with a
// line break are skipped, because the store separates addresses by lines.
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
	for name, id := range map[string]identity.Identity{"chained": ledgertest.RootIdentity(root.Cert),
		"registered": ledgertest.CertIdentity(leaf.Cert)} {
		got, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}), ledgertest.Keyring(id), ledgertest.Now)
		if err != nil || !slices.Equal(got.Signer.Emails, want) {
			t.Errorf("%s: got %v, %v, want the addresses %q", name, got, err, want)
		}
	}
}

// Forges give accounts of programs addresses with brackets, which mail has not.
func TestCheckEmail(t *testing.T) {
	for email, want := range map[string]bool{
		"": true, "ci@acme.example": true, "ci+x@acme.example": true,
		"41898282+github-actions[bot]@users.noreply.github.com": true,
		"[]@acme.example": false, "CI <ci@acme.example>": false, "ci[@x]@acme.example": false, "ci@acme[bot].example": false,
		"[bot]": false,
	} {
		if err := identity.CheckEmail(email); (err == nil) != want {
			t.Errorf("%q: %v, want it to be valid: %t", email, err, want)
		}
	}
}

// A signer has at most MaxEmails addresses, however many a certificate has.
func TestVerifyManyEmails(t *testing.T) {
	const many = 1_000
	root := ledgertest.NewRoot()
	address := func(i int) string { return strconv.Itoa(i) + "@acme.example" }
	inNames := func(c *x509.Certificate) {
		ledgertest.AsSigner(c)
		c.EmailAddresses = []string{"a\x7f@acme.example"}
		for i := range many {
			c.EmailAddresses = append(c.EmailAddresses, address(i/2))
		}
	}
	subject := ledgertest.CIName()
	subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: ledgertest.OIDEmail, Value: "a\u200b@acme.example"}}
	for i := range many {
		subject.ExtraNames = append(subject.ExtraNames,
			pkix.AttributeTypeAndValue{Type: ledgertest.OIDEmail, Value: address(i / 2)})
	}
	inSubject := func(c *x509.Certificate) { ledgertest.AsSigner(c); c.EmailAddresses = nil }
	var want []string
	for i := range identity.MaxEmails {
		want = append(want, address(i))
	}

	for name, leaf := range map[string]*ledgertest.Party{
		"alternative names": ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), inNames),
		"subject":           ledgertest.NewCert(root, subject, ledgertest.NewP256(), inSubject),
	} {
		got, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}),
			ledgertest.Keyring(ledgertest.RootIdentity(root.Cert)), ledgertest.Now)
		if err != nil || !slices.Equal(got.Signer.Emails, want) {
			t.Errorf("%s: got %v, want the addresses %q", name, err, want)
		}
	}
}

// The registered address counts as one of the MaxEmails.
func TestVerifyManyEmailsOfRegistered(t *testing.T) {
	leaf := ledgertest.NewCert(nil, ledgertest.CIName(), ledgertest.NewP256(), func(c *x509.Certificate) {
		ledgertest.AsSigner(c)
		for i := range 100 {
			c.EmailAddresses = append(c.EmailAddresses, strconv.Itoa(i)+"@acme.example")
		}
	})
	id := ledgertest.Registered("idn_cert", identity.NewIdentity{Kind: identity.KeyIdentity,
		PEM: ledgertest.CertPEM(leaf.Cert), Email: "ann@acme.example"})
	got, err := attestation.Verify(bundleOf([]*ledgertest.Party{leaf}), ledgertest.Keyring(id), ledgertest.Now)
	if err != nil || len(got.Signer.Emails) != identity.MaxEmails || got.Signer.Emails[0] != "ann@acme.example" {
		t.Errorf("got %v, %v; want the registered address and %d others", got, err, identity.MaxEmails-1)
	}
}

// A subject with many attributes is clipped in an error before it is formatted.
func TestSubjectOfManyAttributes(t *testing.T) {
	subject := pkix.Name{}
	for range 100_000 {
		subject.Names = append(subject.Names, pkix.AttributeTypeAndValue{Type: ledgertest.OIDEmail, Value: "a@acme.example"})
	}
	got := identity.SubjectOf(&x509.Certificate{Subject: subject})
	if len(got) > 200 || !strings.HasPrefix(got, `"1.2.840.`) {
		t.Errorf("got %d bytes: %.100s", len(got), got)
	}
}

// A subject with an invisible character is quoted.
func TestSubjectOfInvisible(t *testing.T) {
	cert := ledgertest.NewCert(nil, pkix.Name{CommonName: "c\u00adi"}, ledgertest.NewP256(), ledgertest.AsCA).Cert
	if got := identity.SubjectOf(cert); got != `"CN=c\u00adi"` && got != `"2.5.4.3=c\u00adi"` {
		t.Errorf("got %s, want it quoted", got)
	}
}
