package web_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/passkey/passkeytest"
	"github.com/ledgerd/ledgerd/server/web"
)

const passkeysPath = "/orgs/acme/settings/passkeys"

// passkey adds a passkey to the member of a sign-in.
func (e *env) passkey(signIn ledger.Token) passkey.Passkey {
	e.t.Helper()
	device := passkeytest.New(e.t, party)
	challenge := make([]byte, 32)
	must.OK(e.t, e.db.CreatePasskeyChallenge(e.t.Context(), "acme", signIn.ID, challenge, e.db.Now().Add(time.Minute)))
	p, err := e.db.AddPasskey(e.t.Context(), "acme", signIn.ID, challenge, passkey.Passkey{Name: "Phone", RPID: party.ID,
		CredentialID: device.ID, PublicKey: device.PublicKey(e.t)})
	must.OK(e.t, err)
	return p
}

func toJSON(t testing.TB, value any) string {
	t.Helper()
	text := must.Get(json.Marshal(value))(t)
	return string(text)
}

// enrol adds a passkey by the forms of the page, as its script does.
func (w *browser) enrol(name string) (*passkeytest.Device, passkey.Passkey) {
	w.t.Helper()
	device := passkeytest.New(w.t, party)
	o := answer[passkey.Options](w.post(passkeysPath+"/challenge", url.Values{}).want(200))
	added := w.post(passkeysPath+"/add", url.Values{"passkey": {toJSON(w.t, device.Enrol(w.t, name, o.Challenge))}})
	return device, answer[passkey.Passkey](added.want(200))
}

// hasForm reports whether a page has the form that adds a passkey.
func (p page) hasForm() bool {
	return len(p.elements("script", "type", "module")) == 1 && strings.Contains(p.body, "/static/passkeys-")
}

// passkeyForms returns the targets of the forms that remove passkeys.
func (p page) passkeyForms() (targets []string) {
	for _, form := range p.elements("form", "method", "post") {
		if target := attribute(form, "action"); strings.HasPrefix(target, passkeysPath) {
			targets = append(targets, target)
		}
	}
	return targets
}

// Members add, see and remove their passkeys; admins see those of all.
func TestPasskeysPage(t *testing.T) {
	e := newReviewEnv(t)
	ann := e.member("ann", 0)
	if p := ann.get(passkeysPath).want(200).has("No passkeys"); !p.hasForm() {
		t.Error("a member cannot add a passkey")
	}
	_, key := ann.enrol("Ann's <laptop>")
	remove := passkeysPath + "/" + key.ID + "/remove"
	shown := ann.get(passkeysPath).want(200).has("Ann's <laptop> yours").hasNot("No passkeys")
	if got := shown.passkeyForms(); !slices.Equal(got, []string{remove}) {
		t.Errorf("the forms are %q", got)
	}

	rob := e.member("rob", 0)
	if p := rob.get(passkeysPath).want(200).has("No passkeys").hasNot(key.ID); !p.hasForm() {
		t.Error("a reader cannot add a passkey")
	}
	admin := e.signIn(e.admin).get(passkeysPath).want(200).has("cn=ann,ou=people-dev,o=acme").hasNot("yours")
	if got := admin.passkeyForms(); admin.hasForm() || !slices.Equal(got, []string{remove}) {
		t.Errorf("an admin with a token sees the forms %q", got)
	}
	e.addMember("max", member.Admin)
	max, _ := e.signInMember("max")
	max.get(passkeysPath).want(200).has("Ann's <laptop>").hasNot("yours") // nor is it that of another member
	reader := e.signIn(e.reader).get(passkeysPath).want(200).has("This session is of an API token").hasNot(key.ID)
	if reader.hasForm() {
		t.Error("a token can add a passkey")
	}
	e.browser().get(passkeysPath).want(303)

	rob.post(remove, url.Values{}).want(404)
	ann.post(remove, url.Values{}).redirectsTo(passkeysPath)
	ann.get(passkeysPath).want(200).has("No passkeys").hasNot(key.ID)
}

func TestPasskeyFormsRefuse(t *testing.T) {
	e := newReviewEnv(t)
	ann := e.member("ann", 0)
	ann.post(passkeysPath+"/add", url.Values{"passkey": {"{"}}).want(422).has("invalid_field")
	ann.post(passkeysPath+"/add", url.Values{}).want(422).has("invalid_field")
	e.member("ann", 16*time.Minute).post(passkeysPath+"/challenge", url.Values{}).want(403).has("sign_in_again")
	e.signIn(e.admin).post(passkeysPath+"/challenge", url.Values{}).want(403).has("forbidden")
	ann.header = map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
	for _, path := range []string{"/challenge", "/add"} {
		ann.post(passkeysPath+path, url.Values{}).want(403).has("form sent from another site")
	}
}

// Without the setting, no tab leads to the page, and it has no form.
func TestPagesWithoutPasskeys(t *testing.T) {
	e := newReviewEnv(t)
	e.member("ann", 0).get("/orgs/acme/settings/sign-ins").want(200).has("Passkeys")
	site, err := web.New(web.Config{API: e.api, Now: e.clock.now})
	must.OK(t, err)
	network := httptest.NewServer(site.Handler())
	t.Cleanup(network.Close)
	e.url = network.URL
	ann := e.member("ann", 0)
	ann.get("/orgs/acme/settings/sign-ins").want(200).hasNot(passkeysPath)
	if ann.get(passkeysPath).want(200).has("This server takes no passkeys").hasNot("API token").hasForm() {
		t.Error("the page has the form")
	}
}

// A review that a passkey has confirmed can be given long after the sign-in. Its page has the assertion.
func TestReviewWithAPasskeyByTheForms(t *testing.T) {
	e := newReviewEnv(t)
	device, _ := e.member("ann", 0).enrol("Laptop")
	ann := e.member("ann", time.Hour)
	draft := answer[struct {
		Payload         []byte
		PasskeyRequired bool `json:"passkey_required"`
	}](ann.post(reviewPath+"/review-draft", url.Values{"member": {ann.id()}, "verdict": {"approve"}}).want(200))
	if !draft.PasskeyRequired {
		t.Error("the draft does not require the passkey")
	}

	form := signedForm(t, draft.Payload)
	form.Set("member", ann.id())
	form.Set("confirmation", "{")
	ann.post(reviewPath+"/review", form).want(422).has("invalid_field")
	form.Set("confirmation", toJSON(t, device.Confirm(t, draft.Payload)))
	record := answer[ledger.AttestationRecord](ann.post(reviewPath+"/review", form).want(200))
	at := "/orgs/acme/repos/api/attestations/" + record.ID
	ann.get(at).want(200).has("confirmed the statement with a passkey", record.AssertionDigest)
	file := ann.get(at + "/assertion").want(200)
	kept, err := e.host.Assertion(t.Context(), "acme", "api", record.ID)
	must.OK(t, err)
	if passkey.Digest([]byte(file.body)) != record.AssertionDigest || string(kept) != file.body {
		t.Errorf("the file is %s", file.body)
	}
	if got := file.header.Get("Content-Disposition"); !strings.Contains(got, record.ID+".assertion.json") {
		t.Errorf("it is saved as %s", got)
	}

	keys := must.Get(client.Collect(e.host.Passkeys(t.Context(), "acme", ""), 10))(t)
	if len(keys) != 1 || keys[0].Name != "Laptop" {
		t.Errorf("the org has %+v", keys)
	}
	must.OK(t, e.host.RemovePasskey(t.Context(), "acme", keys[0].ID))
}
