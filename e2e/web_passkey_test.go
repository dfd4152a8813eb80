package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// device attaches a virtual device for passkeys to the browser, which verifies its user.
func (v *visitor) device() webauthn.AuthenticatorID {
	v.t.Helper()
	_, err := chromedp.Call(v.ctx, webauthn.Enable, webauthn.EnableParams{})
	must.OK(v.t, err)
	added, err := chromedp.Call(v.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		},
	})
	must.OK(v.t, err)
	return added.AuthenticatorID
}

// verifies sets whether a device verifies its user.
func (v *visitor) verifies(device webauthn.AuthenticatorID, ok bool) {
	v.t.Helper()
	_, err := chromedp.Call(v.ctx, webauthn.SetUserVerified,
		webauthn.SetUserVerifiedParams{AuthenticatorID: device, IsUserVerified: ok})
	must.OK(v.t, err)
}

const passkeyCommit = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// newPasskeyOrg returns an org whose server takes passkeys and whose policy asks for them, with a commit
// that waits for a review.
func newPasskeyOrg(t *testing.T) (*org, *client.Client) {
	t.Helper()
	o := newOrg(t)
	o.url = strings.Replace(o.url, "127.0.0.1", "localhost", 1) // passkeys are for names
	o.env = append(o.env, "LEDGERD_BASE_URL="+o.url, "LEDGERD_SIGN_IN_RP_ID=localhost")
	o.start()
	o.ledgerd("identity", "people-ca", "create", "--org", "acme")
	o.requireReviews("passkey: true")
	return o, o.attested(passkeyCommit, "First")
}

// A member adds a passkey, and confirms an approval with it long after the sign-in. The policy asks for
// one. What the passkey has signed is evidence that anybody can verify.
func TestPasskeyInTheBrowser(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	o, api := newPasskeyOrg(t)
	page := "/orgs/acme/repos/api/commits/" + passkeyCommit
	v := newBrowser(t).visitor(t, o.url)
	v.signInAnn(o, time.Now())
	device := v.device()
	v.open("/orgs/acme/settings/passkeys")
	v.sees("What you call the device", "No passkeys") // the script shows the form
	v.fill("Name", "Laptop of Ann")
	v.click("button", "Add passkey")
	v.sees("Laptop of Ann yours", annDN)
	v.open("/orgs/acme/settings/passkeys") // the device has one now
	v.sees("What you call the device")
	v.fill("Name", "Again")
	v.click("button", "Add passkey")
	v.sees("This device already has a passkey of yours.")

	// Without the passkey, the policy is not met.
	v.open(page)
	v.sees("Request changes")
	v.click("button", "Approve")
	v.sees("This is what you sign", "Confirm with a passkey")
	v.click("button", "Confirm")
	v.sees("Recorded: review:code pass", "without a passkey: review:code passed")

	// The sign-in is too old by itself. The passkey confirms that it is ann.
	v.signInAnn(o, time.Now().Add(-time.Hour))
	v.open(page)
	v.sees("Request changes")
	v.click("button", "Approve")
	v.sees("This is what you sign", "Confirm with a passkey")
	v.verifies(device, false)
	v.click("button", "Confirm with a passkey")
	v.sees("No passkey has confirmed it", "This is what you sign")
	v.verifies(device, true)
	v.click("button", "Confirm with a passkey")
	v.sees("Recorded: review:code pass", "Moved to Promotable", "All requirements are met.")
	if got := stateOf(t, api, passkeyCommit); got.State != ledger.Promotable {
		t.Errorf("the commit is %s: %+v", got.State, got.Requirements)
	}

	list := stateOf(t, api, passkeyCommit).Attestations
	latest := list[0]
	for _, a := range list {
		if a.AssertionDigest != "" {
			latest = a
		}
	}
	v.open("/orgs/acme/repos/api/attestations/" + latest.ID)
	v.sees("The signer confirmed the statement with a passkey", latest.AssertionDigest)
	text := must.Get(api.Assertion(t.Context(), "acme", "api", latest.ID))(t)
	a := must.Get(passkey.ParseAssertion(text))(t)
	envelope := must.Get(api.Envelope(t.Context(), "acme", "api", latest.ID))(t)
	payload := must.Get(attestation.Payload(envelope))(t)
	must.OK(t, a.Verify(payload))
	if passkey.Digest(text) != latest.AssertionDigest || a.RPID != "localhost" {
		t.Errorf("the assertion is %s", text)
	}
	o.ledgerd("verify", "attestation", "acme/api", latest.ID)

	// What is removed confirms nothing.
	v.open("/orgs/acme/settings/passkeys")
	v.click("button", "Remove the passkey Laptop of Ann")
	v.sees("No passkeys")
	v.open(page)
	v.sees("Request changes")
	v.click("button", "Approve")
	v.sees("you must have signed in during the last 15 minutes", "Sign in again")
	v.checkConsole(t)
}

func TestWebPasskeysAreAccessible(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	axe := readAxe(t)
	o, _ := newPasskeyOrg(t)
	v := newBrowser(t).visitor(t, o.url)
	v.signInAnn(o, time.Now())
	v.device()
	v.open("/orgs/acme/settings/passkeys")
	v.sees("What you call the device")
	v.isAccessible(axe)
	v.fill("Name", strings.Repeat("Longer", 16))
	v.click("button", "Add passkey")
	v.sees("LongerLonger", annDN)
	v.isAccessible(axe)

	v.open("/orgs/acme/repos/api/commits/" + passkeyCommit)
	v.sees("Request changes")
	v.click("button", "Approve")
	v.sees("This is what you sign", "Confirm with a passkey")
	v.isAccessible(axe)
}
