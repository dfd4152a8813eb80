package verify

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/passkey/passkeytest"
)

const annDN = "cn=ann,ou=people-dev,o=acme"

// assert returns the assertion of a passkey that has confirmed a statement.
func assert(t testing.TB, d *passkeytest.Device, payload []byte) []byte {
	t.Helper()
	text, err := passkey.Assertion{RPID: d.RPID, PublicKey: d.PublicKey(t), Confirmation: d.Confirm(t, payload)}.Text()
	must.OK(t, err)
	return text
}

// A confirmed is an attestation that a passkey has confirmed, with the passkeys in the log.
type confirmed struct {
	recorded
	assertion []byte
	passkeys  Passkeys
	index     int64 // of the event of the recording
}

// setDigest sets the digest of the assertion in the event and the record.
func (c *confirmed) setDigest(digest string) {
	c.event.AssertionDigest, c.record.AssertionDigest = digest, digest
}

// attestation returns the attestation as the ledger gives it.
func (c *confirmed) attestation(t testing.TB) Attestation {
	t.Helper()
	body := must.Get(json.Marshal(c.event))(t)
	return Attestation{Envelope: c.envelope, Event: body, Record: &c.record, Assertion: c.assertion, Passkeys: c.passkeys,
		Index: c.index}
}

// A passkey confirms an attestation if the event has the digest of its assertion, if it has signed what the
// attestation says, and if it was the signer's then.
func TestPasskey(t *testing.T) {
	ann := newSigner(t, annDN)
	keys := Listed([]identity.Identity{ann.id}, nil)
	party := passkey.Party{ID: "ledger.example.com", Origin: "https://ledger.example.com"}
	mine, other := passkeytest.New(t, party), passkeytest.New(t, party)
	good := recordedBy(t, ann)
	payload, err := attestation.Payload(good.envelope)
	must.OK(t, err)

	added := ledger.IdentityEvent{ID: "evt_added", Action: ledger.IdentityAdded, IdentityID: "pas_1",
		Kind: ledger.KindPasskey, DN: annDN, Key: passkey.Fingerprint(mine.PublicKey(t)), RPID: party.ID}
	removed := added
	removed.ID, removed.Action = "evt_removed", ledger.IdentityRevoked
	changed := func(change func(e *ledger.IdentityEvent)) func(c *confirmed) {
		return func(c *confirmed) {
			e := added
			change(&e)
			c.passkeys = Passkeys{}
			c.passkeys.Add(3, e)
		}
	}
	by := func(text []byte) func(c *confirmed) {
		return func(c *confirmed) { c.assertion = text; c.setDigest(passkey.Digest(text)) }
	}
	for name, test := range map[string]struct {
		change func(c *confirmed)
		want   Status
		text   string
	}{
		"good": {func(*confirmed) {}, OK, "of " + annDN + ", for ledger.example.com, has confirmed it"},
		"withheld": {func(c *confirmed) { c.assertion = nil }, Failed,
			"the assertion is missing, and the event has its digest"},
		"another digest": {func(c *confirmed) { c.setDigest(digest(nil)) }, Failed, "and the event says " + digest(nil)},
		"not JSON":       {by([]byte("{")), Failed, "parse it"},
		"of another statement": {by(assert(t, mine, []byte("{}"))), Failed,
			"the assertion of the passkey is invalid"},
		"of another passkey": {by(assert(t, other, payload)), Failed, "the log has no enrolment of the passkey "},

		"not enrolled":            {func(c *confirmed) { c.passkeys = Passkeys{} }, Failed, "the log has no enrolment"},
		"enrolled afterwards":     {func(c *confirmed) { c.index = 2 }, Failed, "the log has no enrolment"},
		"enrolled with the event": {func(c *confirmed) { c.index = 3 }, Failed, "the log has no enrolment"},
		"enrolled just before":    {func(c *confirmed) { c.index = 4 }, OK, ""},
		"another's": {changed(func(e *ledger.IdentityEvent) { e.DN = "cn=bob,ou=people-dev,o=acme" }), Failed,
			"is enrolled for cn=bob,ou=people-dev,o=acme, and the attestation is by " + annDN},
		"of an invalid DN": {changed(func(e *ledger.IdentityEvent) { e.DN = "ann" }), Failed, "is enrolled for ann"},
		"for another domain": {changed(func(e *ledger.IdentityEvent) { e.RPID = "example.com" }), Failed,
			"is enrolled for the domain example.com"},
		"an identity, not a passkey": {changed(func(e *ledger.IdentityEvent) { e.Kind = "key" }), Failed,
			"the log has no enrolment"},
		"removed before": {func(c *confirmed) { c.passkeys.Add(9, removed) }, Failed,
			"was removed before the attestation, by the event evt_removed"},
		"removed afterwards": {func(c *confirmed) { c.passkeys.Add(10, removed) }, OK, ""},
		"removed under another key": {func(c *confirmed) {
			e := removed
			e.Key = "ab"
			c.passkeys.Add(9, e)
		}, Failed, "the log has no enrolment"},
		"one of two removed": {func(c *confirmed) {
			e := added
			e.IdentityID = "pas_0"
			c.passkeys.Add(4, e)
			c.passkeys.Add(5, removed)
		}, OK, ""},

		"events that are not in the log": {func(c *confirmed) { c.passkeys.Fault = errors.New("rewritten") }, Failed,
			"rewritten"},
		"events that were not read": {func(c *confirmed) { c.passkeys.Gap = "earlier logs" }, NotChecked, "earlier logs"},
		"of another statement, and events that were not read": {func(c *confirmed) {
			by(assert(t, mine, []byte("{}")))(c)
			c.passkeys.Gap = "earlier logs"
		}, Failed, "the assertion of the passkey is invalid"},
		"a signature that is not valid": {func(c *confirmed) { c.event.Key = digest(nil) }, NotChecked,
			"the signature is not valid"},
	} {
		c := confirmed{recorded: good, index: 10}
		by(assert(t, mine, payload))(&c)
		c.passkeys.Add(3, added)
		test.change(&c)
		checks, signed := c.attestation(t).Check(keys)
		got := checks[len(checks)-1]
		if got.Name != CheckPasskey || got.Status != test.want || !strings.Contains(got.Detail, test.text) {
			t.Errorf("%s: %+v, want %s with %q", name, got, test.want, test.text)
		}
		if isSet := signed != nil && signed.Assertion != nil; isSet != (test.want == OK) {
			t.Errorf("%s: the attestation has the assertion: %v", name, isSet)
		}
	}
}

// Without the digest of an assertion, there is nothing to check. The record must have that of the event.
func TestPasskeyDigestOfTheRecord(t *testing.T) {
	ci := newSigner(t, "cn=ci,ou=build,o=acme")
	keys := Listed([]identity.Identity{ci.id}, nil)
	c := confirmed{recorded: recordedBy(t, ci)}
	a := c.attestation(t)
	checks, signed := a.Check(keys)
	if got := summary(checks); got != goodAttestation || a.IsConfirmed() || signed.Assertion != nil {
		t.Errorf("without a digest: %s", got)
	}
	c.assertion = []byte("{}")
	checks, signed = c.attestation(t).Check(keys)
	if got := summary(checks); got != goodAttestation+", passkey failed" || signed.Assertion != nil {
		t.Errorf("an assertion without a digest: %s", got)
	}
	c.assertion = nil

	c.record.AssertionDigest = digest(nil)
	a = c.attestation(t)
	checks, _ = a.Check(keys)
	if got := summary(checks); got != "signature ok, digests ok, record failed" || !a.IsConfirmed() {
		t.Errorf("a digest in the record only: %s", got)
	}
	c.record.AssertionDigest, c.event.AssertionDigest = "", digest(nil)
	a = c.attestation(t)
	checks, _ = a.Check(keys)
	if got := summary(checks); got != "signature ok, digests ok, record failed, passkey failed" || !a.IsConfirmed() {
		t.Errorf("a digest in the event only: %s", got)
	}
}

// If the envelope or the event was pruned, the rest is checked, and the check says why it is not whole.
func TestPasskeyOfPrunedAttestation(t *testing.T) {
	ann := newSigner(t, annDN)
	keys := Listed([]identity.Identity{ann.id}, nil)
	d := passkeytest.New(t, passkey.Party{ID: "ledger.example.com", Origin: "https://ledger.example.com"})
	good := recordedBy(t, ann)
	payload, err := attestation.Payload(good.envelope)
	must.OK(t, err)
	text, wrong := assert(t, d, payload), assert(t, d, []byte("{}"))
	enrolled := ledger.IdentityEvent{Action: ledger.IdentityAdded, IdentityID: "pas_1", Kind: ledger.KindPasskey,
		DN: annDN, Key: passkey.Fingerprint(d.PublicKey(t)), RPID: d.RPID}

	for name, test := range map[string]struct {
		assertion                []byte
		noEnvelope, noEvent, not bool // not enrolled
		want                     string
	}{
		"the envelope":                    {text, true, false, false, "passkey not_checked"},
		"the envelope, withheld":          {nil, true, false, false, "passkey failed"},
		"the event":                       {text, false, true, false, "passkey not_checked"},
		"the event, withheld":             {nil, false, true, false, "passkey failed"},
		"the event, not enrolled":         {text, false, true, true, "passkey failed"},
		"the event, of another statement": {wrong, false, true, false, "passkey failed"},
		"both":                            {text, true, true, false, "passkey not_checked"},
	} {
		c := confirmed{recorded: good, assertion: test.assertion, index: 10}
		c.setDigest(passkey.Digest(text))
		if test.assertion != nil {
			c.setDigest(passkey.Digest(test.assertion))
		}
		if !test.not {
			c.passkeys.Add(3, enrolled)
		}
		a := c.attestation(t)
		if test.noEnvelope {
			a.Envelope = nil
		}
		if test.noEvent {
			a.Event = nil
		}
		checks, _ := a.Check(keys)
		if got := summary(checks[len(checks)-1:]); got != test.want {
			t.Errorf("%s: %s, want %s", name, summary(checks), test.want)
		}
	}

	c := confirmed{recorded: good}
	c.setDigest(digest(nil))
	a := c.attestation(t)
	a.Event = nil
	checks, _ := a.Check(Listed(nil, nil))
	if got := summary(checks); got != "signature failed, digests not_checked, record not_checked, passkey failed" {
		t.Errorf("the event, and the signature is not valid: %s", got)
	}
}

// What it takes to look a passkey up does not depend on how many others there are: a repo may have as many
// attestations.
func TestManyPasskeys(t *testing.T) {
	signer := newSigner(t, annDN)
	a := passkey.Assertion{RPID: "ledger.example.com", PublicKey: []byte{1}}
	var p Passkeys
	const others = 10_000
	for i := range int64(others) {
		id := fmt.Sprintf("pas_%d", i)
		p.Add(i, ledger.IdentityEvent{IdentityID: id, Kind: ledger.KindPasskey, Key: id, DN: annDN})
	}
	p.Add(others, ledger.IdentityEvent{
		IdentityID: "pas_ann", Kind: ledger.KindPasskey, Action: ledger.IdentityAdded, Key: a.Key(), DN: annDN, RPID: a.RPID,
	})

	dn := must.Get(identity.ParseDN(signer.id.DN))(t)
	allocs := testing.AllocsPerRun(1, func() {
		if err := p.check(a, dn, others+1); err != nil {
			t.Error(err)
		}
	})
	if allocs > 100 {
		t.Errorf("to look a passkey up takes %v allocations", allocs)
	}
}
