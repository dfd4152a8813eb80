package sigstore_test

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// Certificates are read by ledger/identity as the library reads them, except that more are refused: tried
// are all kinds of names, each extension with each kind of value, and each two that have one meaning.
func TestCertificatesAreReadLikeTheLibrary(t *testing.T) {
	for _, name := range []string{"url", "email", "dns", "other", "empty other", "none", "url and email"} {
		t.Run(name, func(t *testing.T) {
			compareWithLibrary(t, name, nil)
			for n := 1; n <= 25; n++ {
				for _, value := range values() {
					compareWithLibrary(t, name, []pkix.Extension{fulcio(n, value)})
				}
			}
			for older, newer := range map[int]int{1: 8, 3: 13, 6: 14} {
				for _, first := range values() {
					for _, second := range values() {
						compareWithLibrary(t, name, []pkix.Extension{fulcio(older, first), fulcio(newer, second)})
						compareWithLibrary(t, name, []pkix.Extension{fulcio(newer, second), fulcio(older, first)})
					}
				}
			}
		})
	}
}

func fulcio(number int, value []byte) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, number}, Value: value}
}

// values returns values of extensions: strings in DER of two types, an empty one, text, nothing, and a string
// that more bytes follow.
func values() [][]byte {
	return [][]byte{
		ledgertest.Must(asn1.MarshalWithParams("a", "utf8")), ledgertest.Must(asn1.MarshalWithParams("b", "printable")),
		ledgertest.Must(asn1.MarshalWithParams("", "utf8")), []byte("a"), {}, []byte("\x0c\x01ab"),
	}
}

// compareWithLibrary compares how a certificate with a kind of names and extensions is read.
func compareWithLibrary(t *testing.T, name string, extensions []pkix.Extension) {
	t.Helper()
	leaf := certificateWith(t, name, extensions)
	got, err := identity.CertificateOf(leaf)
	want, refused := certificate.SummarizeCertificate(leaf)

	switch {
	case err != nil && refused == nil:
		for _, more := range []string{"subjects: want one", "names two issuers", "extension 1.3.6.1.4.1.57264.1.23"} {
			if strings.Contains(err.Error(), more) {
				return
			}
		}
		t.Errorf("%v: refused, and the library reads it: %v", extensions, err)
	case refused != nil && err == nil:
		t.Errorf("%v: read %+v, and the library refuses it: %v", extensions, got, refused)
	}
	if err != nil || refused != nil {
		return
	}
	got.Environment = "" // which the library does not read
	if want := (identity.Certificate{
		Issuer: want.Issuer, Subject: want.SubjectAlternativeName, RepositoryID: want.SourceRepositoryIdentifier,
		Ref:      cmp.Or(want.SourceRepositoryRef, want.GithubWorkflowRef),    //nolint:staticcheck // of old certificates
		Commit:   cmp.Or(want.SourceRepositoryDigest, want.GithubWorkflowSHA), //nolint:staticcheck // of old certificates
		Workflow: want.BuildConfigURI, RunURL: want.RunInvocationURI,
	}); got != want {
		t.Errorf("%v: read %+v, and the library %+v", extensions, got, want)
	}
}

// certificateWith returns a certificate whose signature is of no meaning.
func certificateWith(t *testing.T, name string, extensions []pkix.Extension) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), ExtraExtensions: slices.Clone(extensions)}
	if strings.Contains(name, "url") {
		template.URIs = []*url.URL{{Scheme: "https", Host: "forge.example", Path: "/acme/x"}}
	}
	if strings.Contains(name, "email") {
		template.EmailAddresses = []string{"ann@acme.example"}
	}
	switch name {
	case "dns":
		template.DNSNames = []string{"acme.example"}
	case "other":
		template.ExtraExtensions = append(template.ExtraExtensions, otherName("ann!acme.example"))
	case "empty other":
		template.ExtraExtensions = append(template.ExtraExtensions, otherName(""))
	}

	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	der := must.Get(x509.CreateCertificate(nil, template, template, key.Public(), key))(t)
	return must.Get(x509.ParseCertificate(der))(t)
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
