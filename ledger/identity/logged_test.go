package identity_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

func TestLogged(t *testing.T) {
	hexOf := func(der []byte) string { sum := sha256.Sum256(der); return hex.EncodeToString(sum[:]) }
	root := ledgertest.NewRoot()
	leaf := ledgertest.NewCert(root, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	public := ledgertest.NewP256().Public()
	spki := ledgertest.Must(x509.MarshalPKIXPublicKey(public))

	bare := ledgertest.KeyIdentity(public)
	bare.May, bare.Email = identity.Predicates{"test:*"}, "ci@acme.example"
	bare.RevokedAt, bare.DistrustedSince = 7, 5
	certified, trusted := ledgertest.CertIdentity(leaf.Cert), ledgertest.RootIdentity(root.Cert)
	trusted.DNPattern = "o=acme"
	spoiled := bare
	spoiled.PEM = "x"

	for name, test := range map[string]struct {
		identity identity.Identity
		want     ledger.IdentityEvent
	}{
		"a key": {bare, ledger.IdentityEvent{
			Kind: "key", DN: bare.DN, Email: "ci@acme.example", May: []string{"test:*"}, Key: hexOf(spki),
			RevokedAt: 7, DistrustedSince: 5,
		}},
		"a certificate": {certified, ledger.IdentityEvent{
			Kind: "key", DN: certified.DN, Email: certified.Email, Key: hexOf(leaf.Cert.RawSubjectPublicKeyInfo),
			Certificate: hexOf(leaf.Cert.Raw), NotBefore: ledger.TimeOf(leaf.Cert.NotBefore),
			NotAfter: ledger.TimeOf(leaf.Cert.NotAfter),
		}},
		"a root": {trusted, ledger.IdentityEvent{
			Kind: "root", DN: trusted.DN, DNPattern: "o=acme", Key: hexOf(root.Cert.RawSubjectPublicKeyInfo),
			Certificate: hexOf(root.Cert.Raw), NotBefore: ledger.TimeOf(root.Cert.NotBefore),
			NotAfter: ledger.TimeOf(root.Cert.NotAfter),
		}},
	} {
		test.want.Action, test.want.IdentityID, test.want.Org = ledger.IdentityAdded, test.identity.ID, test.identity.Org
		if got, err := test.identity.Logged(ledger.IdentityAdded); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, test.want)
		}
	}
	if _, err := spoiled.Logged(ledger.IdentityAdded); err == nil {
		t.Error("an identity without a key was logged")
	}
}
