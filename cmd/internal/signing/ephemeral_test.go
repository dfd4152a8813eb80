package signing

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func TestEphemeralKeySignsWithItsCertificateOnly(t *testing.T) {
	key, err := NewEphemeralKey()
	must.OK(t, err)
	other, err := NewEphemeralKey()
	must.OK(t, err)
	text, err := key.Request()
	must.OK(t, err)
	public := must.Get(ca.ParseRequest(text))(t)
	block, _ := pem.Decode([]byte(text))
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || len(request.Subject.Names) != 0 {
		t.Errorf("the request is for %s, %v, want no name", request.Subject, err)
	}

	now := ledger.TimeOf(time.Now())
	root := must.Get(ca.NewRoot(ca.Jobs, "acme", ca.NewSerial(), other.key, now))(t)
	leaf := ca.Leaf{Purpose: ca.Jobs, DN: identity.DN{CN: "api", OU: "ci-build", O: "acme"}, Key: public}
	cert, err := leaf.Issue(root, other.key, now)
	must.OK(t, err)
	signer, err := key.Signer(ca.PEM(cert))
	must.OK(t, err)
	if _, err := signer.Sign([]byte("{}")); err != nil {
		t.Errorf("sign: %v", err)
	}
	for certificate, want := range map[string]string{ca.PEM(root): "is for another key", "text": "read the certificate"} {
		if _, err := key.Signer(certificate); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %s", certificate, err, want)
		}
	}
}
