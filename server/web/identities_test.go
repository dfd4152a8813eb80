package web_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

const identitiesPath = "/orgs/acme/settings/identities"

func (e *env) identities() []identity.Identity {
	e.t.Helper()
	return must.Get(client.Collect(e.host.Identities(e.t.Context(), "acme"), 0))(e.t)
}

// pasted returns text as a browser submits it in a form.
func pasted(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// rootPEM creates a CA certificate that is valid for a year.
func (e *env) rootPEM() string {
	e.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(e.t)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "acme root", Organization: []string{"acme"}},
		NotBefore: e.clock.now().Add(-time.Hour), NotAfter: e.clock.now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, root, root, key.Public(), key))(e.t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestAddIdentities(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	w.get(identitiesPath).want(200).has("No identities yet", "ledgerd keygen --dn 'cn=ci,ou=build,o=acme' --out ci")
	w.get(identitiesPath + "/new").want(200).has("Never paste a private key")

	_, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	text := must.PublicPEM(t, key.Public())
	w.post(identitiesPath+"/new", url.Values{"kind": {"key"}, "pem": {pasted(text)},
		"dn": {` cn=\<b\>ci\</b\>,ou=build,o=acme `}, "emails": {"ci@example.com"}}).redirectsTo(identitiesPath)
	w.post(identitiesPath+"/new",
		url.Values{"kind": {"root"}, "pem": {pasted(e.rootPEM())}, "dn": {""}, "emails": {""}}).redirectsTo(identitiesPath)
	added := e.identities()
	if len(added) != 2 || added[0].Kind != identity.KeyIdentity || added[0].DN != `cn=\<b\>ci\</b\>,ou=build,o=acme` ||
		added[0].Email != "ci@example.com" || added[0].PEM != text {
		t.Fatalf("identities: %+v", added)
	}
	if added[1].Kind != identity.RootIdentity || added[1].DN != "cn=acme root,o=acme" {
		t.Errorf("root: %+v", added[1])
	}
	p := w.get(identitiesPath).want(200).has("<b>ci</b> key", `cn=\<b\>ci\</b\>,ou=build,o=acme`, "ci@example.com",
		"never expires", added[0].Fingerprint,
		"acme root root", "expires 30 Nov 2031 09:00 UTC", "BEGIN PUBLIC KEY", "BEGIN CERTIFICATE")
	if len(p.elements("b")) > 0 {
		t.Error("a name became an element")
	}
	checkHTML(t, "an admin", p)

	// Readers see all identities, and no forms.
	r := e.signIn(e.reader).get(identitiesPath).want(200).has("acme root", "Only admins can add, edit or revoke them")
	if forms := r.elements("form", "method", "post"); len(forms) != 1 { // the sign-out
		t.Errorf("a reader sees %d forms, want only the sign-out", len(forms))
	}
}

func TestRevokeIdentities(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	e.signer("cn=ci,ou=build,o=acme")
	path := identitiesPath + "/" + e.identities()[0].ID + "/revoke"
	if len(w.get(identitiesPath).has("active", "This cannot be undone").elements("form", "action", path)) != 1 {
		t.Fatal("no form to revoke the identity")
	}
	e.signIn(e.writer).post(path, nil).want(403)
	w.post(path, nil).redirectsTo(identitiesPath)
	p := w.get(identitiesPath).has("revoked 30 Nov 2030 09:00 UTC", "ci key")
	if len(p.elements("form", "action", path)) != 0 {
		t.Error("a revoked identity has a form to revoke it")
	}
	w.post(identitiesPath+"/idn_01KAJ8Q0M6R4YB0J3X5T9ZC2DE/revoke", nil).want(404)
}

func TestDistrustIdentities(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	e.signer("cn=ci,ou=build,o=acme")
	path := identitiesPath + "/" + e.identities()[0].ID + "/distrust"
	if len(w.get(identitiesPath).elements("a", "href", path)) != 1 {
		t.Fatal("no link to the form")
	}
	checkHTML(t, "an admin", w.get(path).want(200).has("Compromised since", "new signatures are rejected"))
	e.signIn(e.writer).post(path, url.Values{"since": {"2030-11-29"}}).want(403)

	w.post(path, url.Values{"since": {"yesterday"}}).want(422).has("is not a time or date")
	w.post(path, nil).want(422)
	w.post(path, url.Values{"since": {"2030-12-01"}}).want(400).has("is still to come")
	if i := e.identities()[0]; i.RevokedAt != 0 {
		t.Fatal("a refused form revoked the identity")
	}
	w.post(path, url.Values{"since": {"2030-11-29"}}).redirectsTo(identitiesPath)
	w.get(identitiesPath).has("revoked 30 Nov 2030 09:00 UTC", "distrusted since 29 Nov 2030 00:00 UTC")
	w.post(path, url.Values{"since": {"2030-11-30"}}).want(422).has("distrust cannot be taken back")
	w.post(identitiesPath+"/idn_01KAJ8Q0M6R4YB0J3X5T9ZC2DE/distrust", url.Values{"since": {"2030-11-29"}}).want(404)
}

// What an identity may attest is shown, and edited by admins.
func TestEditIdentities(t *testing.T) {
	const pattern = `ou=\<b\>build\</b\>,o=acme`
	e := newEnv(t)
	w := e.signIn(e.admin)
	_, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	w.post(identitiesPath+"/new", url.Values{"kind": {"key"}, "pem": {pasted(must.PublicPEM(t, key.Public()))},
		"dn": {"cn=ci,ou=build,o=acme"}, "may": {"test:*\r\n\r\n build:docker, lint:* "}}).redirectsTo(identitiesPath)
	w.post(identitiesPath+"/new", url.Values{"kind": {"root"}, "pem": {pasted(e.rootPEM())},
		"dn_pattern": {` o=acme, ou=\<b\>build\</b\>`}}).redirectsTo(identitiesPath)
	ids := e.identities()
	if may := strings.Join(ids[0].May, " "); may != "test:* build:docker lint:*" || ids[1].DNPattern != pattern {
		t.Fatalf("added: %+v", ids)
	}
	p := w.get(identitiesPath).has("May attest test:* build:docker lint:*", "May attest every predicate",
		"certifies "+pattern)
	checkHTML(t, "an admin", p)
	r := e.signIn(e.reader)
	r.get(identitiesPath).has("May attest test:*").hasNot("Edit ")

	ofKey, ofRoot := identitiesPath+"/"+ids[0].ID+"/edit", identitiesPath+"/"+ids[1].ID+"/edit"
	r.get(ofKey).want(403)
	r.post(ofKey, url.Values{"may": {""}}).want(403)
	form := w.get(ofKey).want(200)
	if got := form.value("may"); got != "test:*\nbuild:docker\nlint:*" ||
		len(form.elements("input", "name", "dn_pattern")) > 0 {
		t.Errorf("the form has %q: %s", got, form.text())
	}
	checkHTML(t, "an admin", form)
	if got := w.get(ofRoot).want(200).value("dn_pattern"); got != pattern {
		t.Errorf("the root's form has %q", got)
	}

	// Errors are shown under their field, and change nothing.
	w.post(ofKey, url.Values{"may": {"test:*\r\nte<i>*st"}}).want(422).hasError("may", `"te<i>*st" has a * before its end`)
	w.post(ofKey, url.Values{"emails": {"nobody"}}).want(422).hasError("emails", "not an e-mail address")
	w.post(ofRoot, url.Values{"dn_pattern": {"build"}}).want(422).hasError("dn_pattern", "")
	private := must.PrivatePEM(t, key)
	w.post(ofKey, url.Values{"may": {pasted(private)}}).want(422).hasError("may", "contains a private key").
		hasNot(strings.Split(private, "\n")[1])
	if again := e.identities(); len(again[0].May) != 3 || again[1].DNPattern != ids[1].DNPattern {
		t.Errorf("changed: %+v", again)
	}

	w.post(ofKey, url.Values{"may": {""}, "emails": {"ci@example.com"}}).redirectsTo(identitiesPath)
	w.post(ofRoot, url.Values{"may": {"build:*"}, "dn_pattern": {""}}).redirectsTo(identitiesPath)
	if again := e.identities(); again[0].May != nil || again[0].Email != "ci@example.com" || again[1].DNPattern != "" ||
		strings.Join(again[1].May, " ") != "build:*" {
		t.Errorf("changed: %+v", again)
	}

	w.post(identitiesPath+"/"+ids[0].ID+"/revoke", nil).redirectsTo(identitiesPath)
	if len(w.get(identitiesPath).elements("a", "href", ofKey)) > 0 {
		t.Error("a revoked identity has a link to edit it")
	}
	w.post(ofKey, url.Values{"may": {"x"}}).want(422).has("is revoked")
	w.get(identitiesPath + "/idn_01KAJ8Q0M6R4YB0J3X5T9ZC2DE/edit").want(404)
}

// Errors are shown under their field. Nothing that may be a secret reaches a page
// or the log.
func TestIdentityFormErrors(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	_, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	private := must.PrivatePEM(t, key)
	secret := strings.Split(private, "\n")[1]
	good := url.Values{"kind": {"key"}, "pem": {must.PublicPEM(t, key.Public())}, "dn": {"cn=ci,ou=build,o=acme"}}

	for name, test := range map[string]struct{ field, value, want string }{
		"no PEM":                             {"pem", "", "no PEM block"},
		"private key":                        {"pem", private, "contains a private key"},
		"private key after the public key":   {"pem", good.Get("pem") + private, "private key"},
		"private key of another type":        {"pem", strings.ReplaceAll(private, "PRIVATE", "EC PRIVATE"), "private key"},
		"private key without its first line": {"pem", secret, "no PEM block"},
		"private key in lower case":          {"pem", strings.ReplaceAll(private, "PRIVATE KEY", "private key"), ""},
		"private key as DN":                  {"dn", private, "contains a private key"},
		"private key as e-mail":              {"emails", private, "contains a private key"},
		"invalid DN":                         {"dn", "ci<i>", ""},
		"no kind":                            {"kind", "", ""},
		"unknown kind":                       {"kind", "<u>x</u>", ""},
		"key as root":                        {"kind", "root", ""},
	} {
		t.Run(name, func(t *testing.T) {
			form := url.Values{}
			for field, values := range good {
				form[field] = values
			}
			form.Set(test.field, pasted(test.value))
			field := test.field
			if name == "key as root" {
				field = "pem"
			}

			p := e.in(t).browserOf(w).post(identitiesPath+"/new", form)
			if p.status < 400 || p.status > 422 {
				t.Fatalf("%d: %s", p.status, p.text())
			}
			p.hasError(field, test.want).hasNot(secret, "<script>alert")
			if len(p.elements("u"))+len(p.elements("i")) > 0 {
				t.Error("a value became an element")
			}
			checkHTML(t, "an admin", p)
			if test.field == "dn" && p.value("pem") != good.Get("pem") {
				t.Error("the form lost the public key")
			}
		})
	}

	if n := len(e.identities()); n > 0 {
		t.Errorf("%d identities added", n)
	}
	if strings.Contains(e.log.String(), secret) {
		t.Error("a private key is in the log")
	}
	w.post(identitiesPath+"/new", url.Values{"pem": {strings.Repeat("x", 5<<20)}}).want(413).
		has("form too large: at most 4194304 bytes")
}

// Adding a key twice is a conflict.
func TestAddIdentityTwice(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	_, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	form := url.Values{"kind": {"key"}, "pem": {must.PublicPEM(t, key.Public())}, "dn": {"cn=ci,ou=build,o=acme"}}
	w.post(identitiesPath+"/new", form).redirectsTo(identitiesPath)
	if p := w.post(identitiesPath+"/new", form); p.status != 409 || len(e.identities()) != 1 {
		t.Errorf("%d: %s", p.status, p.text())
	}
}
