package identity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// The issuer is in two extensions. A certificate in which they differ is refused, in either order.
func TestCertificatesHaveOneIssuer(t *testing.T) {
	own := ledgertest.NewSigstore()
	const issuer, other = "https://ci.example", "https://evil.example"
	der := func(s string) []byte { return ledgertest.Must(asn1.MarshalWithParams(s, "utf8")) }
	extension := func(number int, value []byte) pkix.Extension {
		return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, number}, Value: value}
	}
	for name, test := range map[string]struct {
		extensions []pkix.Extension
		want       string // empty: refused
	}{
		"only the old":       {[]pkix.Extension{extension(1, []byte(issuer))}, issuer},
		"only the new":       {[]pkix.Extension{extension(8, der(issuer))}, issuer},
		"the same":           {[]pkix.Extension{extension(1, []byte(issuer)), extension(8, der(issuer))}, issuer},
		"another, new first": {[]pkix.Extension{extension(8, der(issuer)), extension(1, []byte(other))}, ""},
		"another, old first": {[]pkix.Extension{extension(1, []byte(other)), extension(8, der(issuer))}, ""},
	} {
		leaf := ledgertest.NewCert(own.CA, pkix.Name{}, ledgertest.NewP256(), func(c *x509.Certificate) {
			ledgertest.Fulcio("https://forge.example/acme/x", nil)(c)
			c.ExtraExtensions = append(c.ExtraExtensions, test.extensions...)
		})
		c, err := identity.CertificateOf(leaf.Cert)
		if c.Issuer != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: got the issuer %q, %v; want %q", name, c.Issuer, err, test.want)
		}
	}
}
