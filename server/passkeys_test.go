package server

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/passkey/passkeytest"
	"github.com/ledgerd/ledgerd/ledger/review"
	"github.com/ledgerd/ledgerd/store"
)

const (
	passkeysURL   = "/v1/orgs/acme/passkeys"
	challengesURL = "/v1/orgs/acme/passkey-challenges"
)

var party = passkey.Party{ID: "ledger.example.com", Origin: "https://ledger.example.com"}

// newEnrolled returns reviewers whose server takes passkeys.
func newEnrolled(t *testing.T) *reviewers {
	t.Helper()
	return newReviewers(t, func(c *Config) { c.Party = party })
}

// enrol adds a passkey on a new device.
func (p *person) enrol() (*passkeytest.Device, passkey.Passkey) {
	p.t.Helper()
	device := passkeytest.New(p.t, party)
	o := decode[passkey.Options](p.postTo(challengesURL, "").want(201))
	added := p.postTo(passkeysURL, toJSON(p.t, device.Enrol(p.t, "Laptop", o.Challenge))).want(201)
	return device, decode[passkey.Passkey](added)
}

// confirmed returns a review that the person has signed, and a device has confirmed.
func (p *person) confirmed(d *passkeytest.Device, payload []byte) review.NewReview {
	p.t.Helper()
	n := sign(p.t, p.key, payload)
	c := d.Confirm(p.t, payload)
	n.Confirmation = &c
	return n
}

func (p *person) getFrom(path string) response {
	p.t.Helper()
	return receive(p.t, p.client, p.url, request{method: "GET", path: path})
}

// token returns the person's sign-in.
func (p *person) token() ledger.Token {
	p.t.Helper()
	return decode[ledger.Token](p.getFrom("/v1/token").want(200))
}

// newToken returns an API token that the person has created.
func (p *person) newToken() (secret string) {
	p.t.Helper()
	secret = ledger.NewSecret()
	hash, err := ledger.ParseSecret(secret)
	must.OK(p.t, err)
	ctx := store.WithActor(p.t.Context(), ledger.Actor{Name: annDN, Token: p.token().ID})
	created, err := p.store.CreateToken(ctx, "acme", ledger.NewToken{Name: "script", Scope: ledger.Write}, hash)
	must.OK(p.t, err)
	if created.Member == "" {
		p.t.Fatalf("no member owns the token: %+v", created)
	}
	return secret
}

func TestMemberEnrolsAPasskey(t *testing.T) {
	r := newEnrolled(t)
	ann := r.signIn("ann", time.Minute)
	resp := ann.postTo(challengesURL, "").want(201)
	if resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the challenge may be stored: %q", resp.header)
	}
	o := decode[passkey.Options](resp)
	if len(o.Challenge) != 32 || o.RPID != party.ID || o.DN != annDN || o.User == "" || len(o.Enrolled) != 0 ||
		o.ExpiresAt != r.clock.time().Add(10*time.Minute) || len(o.Algorithms) == 0 || o.Algorithms[0] != -7 {
		t.Errorf("the options are %+v", o)
	}

	d := decode[review.Draft](ann.postTo(draftsURL, `{"verdict":"approve"}`).want(201))
	if d.RPID != "" || d.Passkeys != nil {
		t.Errorf("without a passkey, the draft has %q and %x", d.RPID, d.Passkeys)
	}
	device, added := ann.enrol()
	if added.Member != o.User || added.DN != annDN || added.Name != "Laptop" || added.RPID != party.ID ||
		!bytes.Equal(added.CredentialID, device.ID) || !bytes.Equal(added.PublicKey, device.PublicKey(t)) {
		t.Errorf("added %+v", added)
	}
	o = decode[passkey.Options](ann.postTo(challengesURL, "").want(201))
	if len(o.Enrolled) != 1 || !bytes.Equal(o.Enrolled[0], device.ID) {
		t.Errorf("the browser would make a second one on the device: %x", o.Enrolled)
	}
	events := r.send(request{method: "GET", path: "/v1/orgs/acme/audit?action=passkey.added", token: r.admin}).want(200)
	if !strings.Contains(string(events.body), added.ID) {
		t.Errorf("the audit lacks the passkey: %s", events.body)
	}
}

// Only a member who has signed in lately enrols a passkey, on a device that has answered a challenge of
// this sign-in.
func TestEnrolmentRefuses(t *testing.T) {
	r := newEnrolled(t)
	device := passkeytest.New(t, party)
	ann := r.signIn("ann", time.Minute)
	challenge := decode[passkey.Options](ann.postTo(challengesURL, "").want(201)).Challenge
	answer := func() string { return toJSON(t, device.Enrol(t, "Laptop", challenge)) }

	stale := r.signIn("ann", 16*time.Minute)
	stale.postTo(challengesURL, "").wantProblem(403, ledger.CodeSignInAgain)
	stale.postTo(passkeysURL, answer()).wantProblem(403, ledger.CodeSignInAgain)
	for _, token := range []string{r.admin, ann.newToken()} {
		r.send(request{method: "POST", path: challengesURL, token: token}).wantProblem(403, ledger.CodeForbidden)
		add := request{method: "POST", path: passkeysURL, token: token, body: answer()}
		r.send(add).wantProblem(403, ledger.CodeForbidden)
	}
	r.signIn("max", time.Minute).postTo(passkeysURL, answer()).wantProblem(404, ledger.CodeNotFound)
	r.signIn("ann", time.Minute).postTo(passkeysURL, answer()).wantProblem(404, ledger.CodeNotFound)

	for name, change := range map[string]func(d *passkeytest.Device){
		"another server": func(d *passkeytest.Device) { d.Origin = "https://evil.example" },
		"another domain": func(d *passkeytest.Device) { d.RPID = "example.com" },
		"not verified":   func(d *passkeytest.Device) { d.Flags = passkeytest.Present },
	} {
		t.Log(name)
		d := *device
		change(&d)
		ann.postTo(passkeysURL, toJSON(t, d.Enrol(t, "Laptop", challenge))).wantProblem(422, ledger.CodeInvalidField)
	}
	ann.postTo(passkeysURL, toJSON(t, device.Enrol(t, "", challenge))).wantProblem(422, ledger.CodeInvalidField)
	ann.postTo(passkeysURL, `{"kind":"laptop"}`).want(400)

	ann.postTo(passkeysURL, answer()).want(201) // what was refused has not used it up
	ann.postTo(passkeysURL, answer()).wantProblem(404, ledger.CodeNotFound)

	none := newReviewers(t).signIn("ann", time.Minute)
	none.postTo(challengesURL, "").wantProblem(404, ledger.CodeNotFound)
	none.postTo(passkeysURL, answer()).wantProblem(404, ledger.CodeNotFound)
}

// Members see and remove their own passkeys, and admins those of all.
func TestWhosePasskeys(t *testing.T) {
	r := newEnrolled(t)
	ann, max := r.signIn("ann", time.Minute), r.signIn("max", time.Minute)
	_, ofAnn := ann.enrol()
	_, ofMax := max.enrol()
	ids := func(resp response) (list []string) {
		for _, p := range decode[ledger.Page[passkey.Passkey]](resp.want(200)).Data {
			list = append(list, p.ID)
		}
		return list
	}
	asAdmin := func(method, path string) response {
		return r.send(request{method: method, path: path, token: r.admin})
	}
	for name, test := range map[string]struct {
		got  []string
		want string
	}{
		"ann":              {ids(ann.getFrom(passkeysURL)), ofAnn.ID},
		"max, by name":     {ids(max.getFrom(passkeysURL + "?member=" + ofMax.Member)), ofMax.ID},
		"an admin":         {ids(asAdmin("GET", passkeysURL)), ofAnn.ID + " " + ofMax.ID},
		"an admin, of max": {ids(asAdmin("GET", passkeysURL+"?member="+ofMax.Member)), ofMax.ID},
	} {
		if got := strings.Join(test.got, " "); got != test.want {
			t.Errorf("%s sees %q, want %q", name, got, test.want)
		}
	}
	ann.getFrom(passkeysURL+"?member="+ofMax.Member).wantProblem(403, ledger.CodeForbidden)
	r.send(request{method: "GET", path: passkeysURL, token: r.reader}).wantProblem(403, ledger.CodeForbidden)

	remove := func(p *person, id string) response {
		return receive(t, p.client, p.url, request{method: "DELETE", path: passkeysURL + "/" + id})
	}
	remove(ann, ofMax.ID).wantProblem(404, ledger.CodeNotFound)
	remove(ann, ofAnn.ID).want(204)
	remove(ann, ofAnn.ID).want(204)
	asAdmin("DELETE", passkeysURL+"/"+ofMax.ID).want(204)
	if left := ids(asAdmin("GET", passkeysURL)); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// The server does not ask for passkeys of its former domain.
func TestPasskeysOfAFormerDomain(t *testing.T) {
	r := newEnrolled(t)
	ann := r.signIn("ann", time.Minute)
	device := passkeytest.New(t, passkey.Party{ID: "old.example.com", Origin: party.Origin})
	token := ann.token().ID
	must.OK(t, r.store.CreatePasskeyChallenge(t.Context(), "acme", token, []byte{1}, r.clock.time().Add(time.Minute)))
	_, err := r.store.AddPasskey(t.Context(), "acme", token, []byte{1}, passkey.Passkey{
		Name: "Old", RPID: "old.example.com", CredentialID: device.ID, PublicKey: device.PublicKey(t),
	})
	must.OK(t, err)

	d := decode[review.Draft](ann.postTo(draftsURL, `{"verdict":"approve"}`).want(201))
	o := decode[passkey.Options](ann.postTo(challengesURL, "").want(201))
	if d.RPID != "" || len(d.Passkeys) > 0 || len(o.Enrolled) > 0 {
		t.Errorf("the browser would ask for it: %+v, %+v", d, o)
	}
	ann.postTo(reviewsURL, toJSON(t, ann.confirmed(device, d.Payload))).wantProblem(422, ledger.CodeInvalidField)
	r.signIn("ann", time.Hour).postTo(draftsURL, `{"verdict":"approve"}`).wantProblem(403, ledger.CodeSignInAgain)
}

// A passkey confirms a review, also long after the sign-in. What it has signed is kept as evidence.
func TestPasskeyConfirmsAReview(t *testing.T) {
	r := newEnrolled(t)
	device, enrolled := r.signIn("ann", time.Minute).enrol()
	ann := r.signIn("ann", time.Hour)
	d := decode[review.Draft](ann.postTo(draftsURL, `{"verdict":"approve"}`).want(201))
	if !d.PasskeyRequired || d.RPID != party.ID || len(d.Passkeys) != 1 || !bytes.Equal(d.Passkeys[0], device.ID) {
		t.Errorf("the draft does not ask for the passkey: %+v", d)
	}
	ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, d.Payload))).wantProblem(403, ledger.CodeSignInAgain)
	record := decode[ledger.AttestationRecord](
		ann.postTo(reviewsURL, toJSON(t, ann.confirmed(device, d.Payload))).want(201))

	at := attestationsURL("acme", "api") + "/" + record.ID
	kept := r.send(request{method: "GET", path: at + "/assertion", token: r.reader}).want(200)
	if got := passkey.Digest(kept.body); got != record.AssertionDigest || got == "" {
		t.Errorf("the assertion has the digest %s, and the record %s", got, record.AssertionDigest)
	}
	a, err := passkey.ParseAssertion(kept.body)
	must.OK(t, err)
	must.OK(t, a.Verify(d.Payload))
	if a.Key() != enrolled.Key || kept.header.Get("Content-Type") != typeJSON {
		t.Errorf("it is of the key %s as %s", a.Key(), kept.header.Get("Content-Type"))
	}
	read := decode[ledger.AttestationRecord](r.send(request{method: "GET", path: at, token: r.reader}).want(200))
	if read.AssertionDigest != record.AssertionDigest {
		t.Errorf("the record has the digest %q, read again", read.AssertionDigest)
	}
	event := r.send(request{method: "GET", path: "/v1/orgs/acme/events/" + record.Event, token: r.reader}).want(200)
	if !strings.Contains(string(event.body), `"assertion_digest":"`+record.AssertionDigest+`"`) {
		t.Errorf("the event lacks the digest: %s", event.body)
	}

	// Without a passkey, there is no assertion.
	fresh := r.signIn("ann", time.Minute)
	d = decode[review.Draft](fresh.postTo(draftsURL, `{"verdict":"approve"}`).want(201))
	if d.PasskeyRequired || len(d.Passkeys) != 1 {
		t.Errorf("a draft after a sign-in: %+v", d)
	}
	plain := decode[ledger.AttestationRecord](
		fresh.postTo(reviewsURL, toJSON(t, sign(t, fresh.key, d.Payload))).want(201))
	r.send(request{method: "GET", path: attestationsURL("acme", "api") + "/" + plain.ID + "/assertion", token: r.reader}).
		wantProblem(404, ledger.CodeNotFound)
	if plain.AssertionDigest != "" {
		t.Errorf("it has the digest %s", plain.AssertionDigest)
	}
}

// A confirmation must be of a passkey of the member, of this statement, for this server. What is refused
// does not use the draft up.
func TestConfirmationsAreRefused(t *testing.T) {
	r := newEnrolled(t)
	ann, max := r.signIn("ann", time.Minute), r.signIn("max", time.Minute)
	device, _ := ann.enrol()
	ofMax, _ := max.enrol()
	removed, gone := ann.enrol()
	receive(t, ann.client, ann.url, request{method: "DELETE", path: passkeysURL + "/" + gone.ID}).want(204)
	payload, other := ann.draft(), ann.draft()

	changed := func(change func(d *passkeytest.Device)) *passkeytest.Device {
		d := *device
		change(&d)
		return &d
	}
	for name, test := range map[string]struct {
		device *passkeytest.Device
		about  []byte
		code   ledger.Code
	}{
		"of another member":    {ofMax, payload, ledger.CodeInvalidField},
		"of a removed passkey": {removed, payload, ledger.CodeInvalidField},
		"not enrolled":         {passkeytest.New(t, party), payload, ledger.CodeInvalidField},
		"of another draft":     {device, other, ledger.CodeInvalidAssertion},
		"by another key": {changed(func(d *passkeytest.Device) { d.Key = ofMax.Key }), payload,
			ledger.CodeInvalidAssertion},
		"for another server": {changed(func(d *passkeytest.Device) { d.Origin = "https://x.ledger.example.com" }), payload,
			ledger.CodeInvalidAssertion},
		"without verification": {changed(func(d *passkeytest.Device) { d.Flags = passkeytest.Present }), payload,
			ledger.CodeInvalidAssertion},
	} {
		t.Log(name)
		n := sign(t, ann.key, payload)
		c := test.device.Confirm(t, test.about)
		n.Confirmation = &c
		ann.postTo(reviewsURL, toJSON(t, n)).wantProblem(http.StatusUnprocessableEntity, test.code)
	}
	// One that is too long to be read again would be recorded, and never verified.
	long := changed(func(d *passkeytest.Device) {
		d.Client = map[string]any{"padding": strings.Repeat("x", passkey.MaxAssertion)}
	})
	ann.postTo(reviewsURL, toJSON(t, ann.confirmed(long, payload))).wantProblem(422, ledger.CodeInvalidAssertion)

	ann.postTo(reviewsURL, toJSON(t, ann.confirmed(device, payload))).want(201)
	ann.postTo(reviewsURL, toJSON(t, ann.confirmed(device, payload))).wantProblem(404, ledger.CodeNotFound)
}

// A requirement that asks for a passkey is met by a review that a passkey has confirmed, and by no other.
func TestRequirementAsksForAPasskey(t *testing.T) {
	r := newEnrolled(t)
	r.putPolicy("*", `{"requirements":[{"state":"ATTESTED","predicate":"review:*","passkey":true}]}`).want(200)
	ann := r.signIn("ann", time.Minute)
	device, _ := ann.enrol()
	state := func() (ledger.State, string) {
		c := decode[ledger.Commit](
			r.send(request{method: "GET", path: "/v1/orgs/acme/repos/api/commits/" + reviewCommit, token: r.reader}).want(200))
		return c.State, c.Requirements[0].Reason
	}

	ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, ann.draft()))).want(201)
	if got, why := state(); got != ledger.Validating || !strings.Contains(why, "passkey") {
		t.Errorf("without a passkey, the commit is %s: %s", got, why)
	}
	ann.postTo(reviewsURL, toJSON(t, ann.confirmed(device, ann.draft()))).want(201)
	if got, why := state(); got != ledger.Promotable {
		t.Errorf("with a passkey, the commit is %s: %s", got, why)
	}
	ann.postTo(reviewsURL, toJSON(t, sign(t, ann.key, ann.draft()))).want(201) // the latest review counts
	if got, why := state(); got != ledger.Validating {
		t.Errorf("after another review without a passkey, the commit is %s: %s", got, why)
	}
}
