package web_test

import (
	"net/url"
	"testing"

	"github.com/ledgerd/ledgerd/internal/sigstoretest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Admins set trusted roots and admit keyless signers; everyone with access to the org sees them.
func TestKeylessIdentities(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	w.get(identitiesPath).want(200).has("No trusted roots: keyless bundles are refused", "Set trusted root")
	const rootPath = "/orgs/acme/settings/trusted-root"
	w.get(rootPath).want(200)
	text := sigstoretest.File(t, sigstoretest.PublicGood)
	w.post(rootPath, url.Values{"name": {"public-good"}, "document": {"{}"}}).hasError("document", "mediaType")
	w.post(rootPath, url.Values{"name": {"a/b"}, "document": {pasted(string(text))}}).hasError("name", "not a name")
	w.post(rootPath, url.Values{"name": {"public-good"}, "document": {pasted(string(text))}}).redirectsTo(identitiesPath)

	form := url.Values{"kind": {"sigstore"}, "dn": {"cn=release,ou=build,o=acme"}, "may": {"build:*"},
		"sigstore.trusted_root": {"public-good"}, "sigstore.issuer": {"https://ci.example"}, "sigstore.subject": {"*"}}
	w.post(identitiesPath+"/new", form).hasError("sigstore.subject", "admits certificates of others")
	form.Set("sigstore.subject", "https://forge.example/acme/*")
	form.Set("sigstore.commit", "any")
	w.post(identitiesPath+"/new", form).redirectsTo(identitiesPath)
	added := e.identities()[0]
	want := ledger.SigstoreEntry{TrustedRoot: "public-good", Issuer: "https://ci.example",
		Subject: "https://forge.example/acme/*", Commit: "any"}
	if added.Kind != identity.SigstoreIdentity || *added.Sigstore != want {
		t.Errorf("added %+v with %+v", added, added.Sigstore)
	}

	p := e.signIn(e.reader).get(identitiesPath).want(200).has("release sigstore", "https://forge.example/acme/*",
		"verified by public-good", "for any commit", "public-good version 1, set")
	checkHTML(t, "a reader", p)
	edit := identitiesPath + "/" + added.ID + "/edit"
	checkHTML(t, "an admin", w.get(edit).want(200).hasNot("E-mail", "DN pattern"))
	w.post(edit, url.Values{"may": {"test:*"}}).redirectsTo(identitiesPath)
	if may := e.identities()[0].May; len(may) != 1 || may[0] != "test:*" {
		t.Errorf("may attest %v", may)
	}
	w.post(edit, url.Values{"may": {""}}).hasError("may", "required for a sigstore identity")
	w.post(edit, url.Values{"may": {"*"}}).redirectsTo(identitiesPath)
	if may := w.get(edit).want(200).value("may"); may != "*" {
		t.Errorf("the form has %q, want *", may)
	}
	w.post(identitiesPath+"/"+added.ID+"/revoke", nil).redirectsTo(identitiesPath)
}
