package sigstore_test

import (
	"cmp"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net/url"
	"strings"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// Certificates are read by ledger/identity as the library reads them, except that more are refused.
func TestCertificatesAreReadLikeTheLibrary(t *testing.T) {
	own, key := ledgertest.NewSigstore(), ledgertest.NewP256()
	testenv.Check(t, func(t *rapid.T) {
		leaf := ledgertest.NewCert(own.CA, pkix.Name{}, key, func(c *x509.Certificate) { drawCertificate(t, c) }).Cert
		got, err := identity.CertificateOf(leaf)
		want, refused := certificate.SummarizeCertificate(leaf)

		switch {
		case err != nil && refused == nil:
			for _, more := range []string{"subjects: want one", "names two issuers", "extension 1.3.6.1.4.1.57264.1.23"} {
				if strings.Contains(err.Error(), more) {
					return
				}
			}
			t.Fatalf("refused, and the library reads it: %v", err)
		case refused != nil && err == nil:
			t.Fatalf("read %+v from a certificate that the library refuses: %v", got, refused)
		case err != nil:
			return
		}
		got.Environment = "" // which the library does not read
		if want := (identity.Certificate{
			Issuer: want.Issuer, Subject: want.SubjectAlternativeName, RepositoryID: want.SourceRepositoryIdentifier,
			Ref:      cmp.Or(want.SourceRepositoryRef, want.GithubWorkflowRef),    //nolint:staticcheck // of old certificates
			Commit:   cmp.Or(want.SourceRepositoryDigest, want.GithubWorkflowSHA), //nolint:staticcheck // of old certificates
			Workflow: want.BuildConfigURI, RunURL: want.RunInvocationURI,
		}); got != want {
			t.Fatalf("read %+v, and the library %+v", got, want)
		}
	})
}

// drawCertificate gives a template names of any kind, and extensions that are valid or not.
func drawCertificate(t *rapid.T, c *x509.Certificate) {
	ledgertest.AsSigner(c)
	c.EmailAddresses = nil
	for _, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"url", "email", "dns", "other", "none"}), 0, 2).
		Draw(t, "names") {
		switch kind {
		case "url":
			c.URIs = append(c.URIs, ledgertest.Must(url.Parse("https://forge.example/acme/x")))
		case "email":
			c.EmailAddresses = append(c.EmailAddresses, "ann@acme.example")
		case "dns":
			c.DNSNames = append(c.DNSNames, "acme.example")
		case "other":
			name := rapid.SampledFrom([]string{"ann!acme.example", ""}).Draw(t, "other name")
			c.URIs, c.EmailAddresses, c.DNSNames = nil, nil, nil
			c.ExtraExtensions = []pkix.Extension{otherName(name)}
		}
	}

	value := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"", "a", "https://ci.example"}), func(s string) []byte {
			return ledgertest.Must(asn1.MarshalWithParams(s, "utf8"))
		}),
		rapid.Just(ledgertest.Must(asn1.MarshalWithParams("a", "printable"))),
		rapid.Just([]byte("https://ci.example")), rapid.Just([]byte{}), rapid.Just([]byte("\x0c\x01ab")),
	)
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 25), 0, 6, rapid.ID[int]).Draw(t, "extensions") {
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{
			Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, n}, Value: value.Draw(t, "value")})
	}
}

// otherName returns the extension with an alternative name of Fulcio's own kind.
func otherName(name string) pkix.Extension {
	der := ledgertest.Must(asn1.MarshalWithParams(struct {
		ID    asn1.ObjectIdentifier
		Value string `asn1:"utf8,explicit,tag:0"`
	}{asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 7}, name}, "tag:0"))
	return pkix.Extension{
		Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true,
		Value: ledgertest.Must(asn1.Marshal([]asn1.RawValue{{FullBytes: der}})),
	}
}
