package server

import (
	"crypto/ed25519"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func TestIdentities(t *testing.T) {
	b := newBackend(t)
	certificate := string(cosignFile(t, "leaf.crt"))
	key := newSigner(t, "").publicPEM(t)
	cert := b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: certificate})
	if cert.DN != "cn=ci-bot,ou=build,o=acme" || cert.Email != "ci-bot@acme.example" || cert.NotAfter == 0 ||
		cert.PEM != certificate {
		t.Errorf("certificate: %+v", cert)
	}
	bare := b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: key, DN: "O=acme, OU=build, CN=ci",
		Email: "ci@acme.example"})
	if bare.DN != "cn=ci,ou=build,o=acme" || bare.NotAfter != 0 || bare.RevokedAt != 0 {
		t.Errorf("key: %+v", bare)
	}
	b.post("/v1/orgs/acme/identities",
		toJSON(t, identity.NewIdentity{Kind: identity.KeyIdentity, PEM: key, DN: "cn=x,ou=build,o=acme"})).wantProblem(409,
		ledger.CodeAlreadyExists)

	at := "/v1/orgs/acme/identities/" + bare.ID
	b.delete(at).want(204)
	b.delete(at).want(204)
	if got := decode[identity.Identity](b.get(at).want(200)); got.RevokedAt != b.clock.time() {
		t.Errorf("revoked: %+v", got)
	}
	if list := decode[ledger.Page[identity.Identity]](b.get("/v1/orgs/acme/identities").want(200)); len(list.Data) != 2 {
		t.Errorf("listed: %+v", list)
	}
	b.delete("/v1/orgs/acme/identities/idn_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantProblem(404, ledger.CodeNotFound)

	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	for name, test := range map[string]struct {
		n     identity.NewIdentity
		field string
	}{
		"no kind":        {identity.NewIdentity{PEM: key, DN: "cn=x,ou=build,o=acme"}, "kind"},
		"not PEM":        {identity.NewIdentity{Kind: "key", PEM: "ssh-ed25519 AAAA"}, "pem"},
		"private key":    {identity.NewIdentity{Kind: "key", PEM: private}, "pem"},
		"key without DN": {identity.NewIdentity{Kind: "key", PEM: key}, "dn"},
		"DN without o":   {identity.NewIdentity{Kind: "key", PEM: key, DN: "cn=x,ou=build"}, "dn"},
		"invalid DN":     {identity.NewIdentity{Kind: "key", PEM: key, DN: "x"}, "dn"},
		"key as root":    {identity.NewIdentity{Kind: "root", PEM: key}, "pem"},
		"leaf as root":   {identity.NewIdentity{Kind: "root", PEM: certificate}, "pem"},
		"invalid e-mail": {identity.NewIdentity{Kind: "key", PEM: key, DN: "cn=x,ou=build,o=acme", Email: "x"}, "email"},
		"wrong DN":       {identity.NewIdentity{Kind: "key", PEM: certificate, DN: "cn=x,ou=build,o=acme"}, "dn"},
		"a key of small order": {identity.NewIdentity{Kind: "key", DN: "cn=x,ou=build,o=acme",
			PEM: must.PublicPEM(t, append(make(ed25519.PublicKey, 31), 0x80))}, "pem"},
		"a key that is not canonical": {identity.NewIdentity{Kind: "key", DN: "cn=x,ou=build,o=acme",
			PEM: must.PublicPEM(t, ed25519.PublicKey("\xf0"+strings.Repeat("\xff", 30)+"\x7f"))}, "pem"},
		"an invisible character": {identity.NewIdentity{Kind: "key", PEM: key, DN: "cn=c\u200bi,ou=build,o=acme"}, "dn"},
		"an invisible character in hex": {
			identity.NewIdentity{Kind: "key", PEM: key, DN: `cn=c\e2\80\8bi,ou=build,o=acme`}, "dn"},
		"an invisible character in an e-mail": {identity.NewIdentity{Kind: "key", PEM: key, DN: "cn=x,ou=build,o=acme",
			Email: "c\u00adi@acme.example"}, "email"},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.post("/v1/orgs/acme/identities", toJSON(t, test.n)).wantFields(422, ledger.CodeInvalidField, test.field)
		})
	}
}

// An intermediate CA can be a root. Without it, the error names it.
func TestIntermediateRoot(t *testing.T) {
	b := newBackend(t)
	file := func(name string) string { return toolsFile(t, name) }
	bundle := file("v2-leaf-new.bundle")
	b.trust(identity.NewIdentity{Kind: identity.RootIdentity, PEM: file("ca.crt")})
	refused := b.post(attestationsPath, bundle)
	refused.wantProblem(422, ledger.CodeUntrustedIdentity)
	if want := "was issued by cn=acme int,o=acme, which is not registered"; !strings.Contains(string(refused.body), want) {
		t.Errorf("got %s, want %q in it", refused.body, want)
	}

	root := b.trust(identity.NewIdentity{Kind: identity.RootIdentity, PEM: file("int.crt")})
	if root.DN != "cn=acme int,o=acme" {
		t.Errorf("registered as %s", root.DN)
	}
	b.post(attestationsPath, bundle).want(201)
}

// A raw ECDSA signature, as WebCrypto writes it, is accepted.
func TestRawSignature(t *testing.T) {
	b := newBackend(t)
	b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: toolsFile(t, "ec-P-256.pub"),
		DN: "cn=web,ou=build,o=acme"})
	b.post(attestationsPath, toolsFile(t, "webcrypto-p1363-nokeyid.json")).want(201)
}

func toolsFile(t *testing.T, name string) string {
	t.Helper()
	text := must.Read(t, filepath.Join("..", "ledger", "testdata", "tools", name))
	return string(text)
}
