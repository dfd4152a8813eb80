package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// What the check in the browser fetches is what the API returns.
func TestEvidenceDownloads(t *testing.T) {
	e := newEnv(t)
	a := e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go", ledger.Pass)
	w := e.signIn(e.reader)
	path := apiPath + "/attestations/" + a.ID
	w.get(path + "/proof").want(409).has("no checkpoint")
	key := e.beginLog()
	e.signLog(key)

	event, err := e.host.Event(t.Context(), "acme", a.Event)
	must.OK(t, err)
	if p := w.get(path + "/event").want(200); p.body != string(event) ||
		p.header.Get("Content-Disposition") != "attachment; filename="+a.Event+".json" {
		t.Errorf("the event %s: %s", p.header.Get("Content-Disposition"), p.body)
	}
	inclusion := must.Get(proof.ParseInclusion([]byte(w.get(path + "/proof").want(200).body)))(t)
	opening := must.Get(proof.ParseOpening(inclusion.Extra))(t)
	must.OK(t, opening.Verify(event))

	p := w.get(path).want(200).has("ledgerd verify attestation acme/api "+a.ID, "Run the check")
	box := p.elements("section", "id", "corruption-check")[0]
	for name, want := range map[string]string{"data-at": path, "data-event": a.Event, "data-log-key": key.vkey,
		"data-identity": "cn=ci,ou=build,o=acme", "data-payload-digest": a.PayloadDigest, "data-commit-object": ""} {
		if got := attribute(box, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	script := p.elements("script", "type", "module")
	if len(script) != 1 || !strings.HasPrefix(attribute(script[0], "src"), "/static/check-") {
		t.Errorf("%d scripts", len(script))
	}
	w.get(attribute(box, "data-signature")).want(200)

	other := e.signIn(e.token(e.otherOrg(), ledger.Admin).Secret)
	for _, file := range []string{"/event", "/key", "/proof"} {
		w.get(apiPath + "/attestations/att_01ARZ3NDEKTSV4RRFFQ69G5FAV" + file).want(404)
		other.get(path + file).want(403)
	}
}

// wantKey checks that the key of an attestation is the one that was recorded.
func (e *env) wantKey(a ledger.AttestationRecord, public any) {
	e.t.Helper()
	p := e.signIn(e.reader).get(apiPath + "/attestations/" + a.ID + "/key").want(200)
	block, rest := pem.Decode([]byte(p.body))
	if block == nil || block.Type != "PUBLIC KEY" || len(rest) > 0 {
		e.t.Fatalf("the key of %s: %s", a.ID, p.body)
	}
	got := must.Get(x509.ParsePKIXPublicKey(block.Bytes))(e.t)
	if key, ok := public.(interface{ Equal(any) bool }); ok && !key.Equal(got) {
		e.t.Errorf("the key of %s is another one", a.ID)
	}
	digest, _, err := identity.DigestKey(public)
	must.OK(e.t, err)
	gotDigest, _, err := identity.DigestKey(got)
	must.OK(e.t, err)
	if digest != gotDigest {
		e.t.Errorf("the key of %s has the digest %x, want %x", a.ID, gotDigest, digest)
	}
}

// The key is that of the identity, or that of the certificate in the envelope. cosign is
// offered where it works.
func TestKeyDownload(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	command := func(a ledger.AttestationRecord) (cosign string) {
		for _, text := range w.get(apiPath+"/attestations/"+a.ID).want(200).texts("div", "class", "command") {
			if strings.HasPrefix(text, "cosign ") {
				cosign += text
			}
		}
		return cosign
	}

	ci := e.signer("cn=ci,ou=build,o=acme")
	a := e.attest(ci, commitID(1), "test:go", ledger.Pass)
	e.wantKey(a, ci.key.Public())
	if got, want := command(a), "cosign verify-blob-attestation --key "+a.ID+".pub --signature "+a.ID+".json "+
		"--new-bundle-format=false --type "+a.PredicateType+" --check-claims=false --insecure-ignore-tlog"; got != want {
		t.Errorf("cosign for an envelope: %s, want %s", got, want)
	}
	odd := e.sign(ci, strings.Replace(sbomStatement, "https://spdx.dev/Document", "https://x.example/a;(b)", 1))
	if got := command(odd); got != "" {
		t.Errorf("cosign for an odd type: %s", got)
	}

	a, leaf := e.certified()
	e.wantKey(a, leaf)
	if got := command(a); got != "" {
		t.Errorf("cosign for a certificate: %s", got)
	}

	bundle := must.Read(t, "../../ledger/testdata/cosign/v3-p256.bundle.json")
	key, err := os.ReadFile("../../ledger/testdata/cosign/p256.pub")
	must.OK(t, err)
	_, err = e.host.AddIdentity(t.Context(), "acme",
		identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(key), DN: "cn=cosign,ou=x,o=acme"})
	must.OK(t, err)
	a, _, err = e.host.Record(t.Context(), "acme", "api", bundle)
	must.OK(t, err)
	if p := w.get(apiPath + "/attestations/" + a.ID + "/key").want(200); p.body != string(key) {
		t.Errorf("cosign's key is %s, want %s", p.body, key)
	}
	if got := command(a); !strings.Contains(got, " --bundle "+a.ID+".json --type https://in-toto.io/") {
		t.Errorf("cosign for a bundle: %s", got)
	}
}

// certified records a bundle with a certificate of a root, and returns the certificate's key.
func (e *env) certified() (ledger.AttestationRecord, any) {
	e.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(e.t)
	now := e.clock.now()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
		Subject: pkix.Name{CommonName: "root", OrganizationalUnit: []string{"ca"}, Organization: []string{"acme"}}}
	rootKey := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(e.t)
	rootDER := must.Get(x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey))(e.t)

	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		Subject:     pkix.Name{CommonName: "leaf", OrganizationalUnit: []string{"ci"}, Organization: []string{"acme"}}}
	leafDER := must.Get(x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), rootKey))(e.t)
	cert, err := x509.ParseCertificate(leafDER)
	must.OK(e.t, err)

	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}))
	_, err = e.host.AddIdentity(e.t.Context(), "acme", identity.NewIdentity{Kind: identity.RootIdentity, PEM: text})
	must.OK(e.t, err)
	bundle := must.Get(attestation.SignBundle(key, []*x509.Certificate{cert}, []byte(sbomStatement)))(e.t)
	a, _, err := e.host.Record(e.t.Context(), "acme", "api", bundle)
	must.OK(e.t, err)
	return a, key.Public()
}
