package access

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// challenge creates a challenge of a sign-in, which ends in 10 minutes.
func (fx *people) challenge(number byte, token ledger.Token) []byte {
	fx.T.Helper()
	fx.Turn()
	c := bytes.Repeat([]byte{number}, 32)
	must.OK(fx.T, fx.CreatePasskeyChallenge(fx.T.Context(), "acme", token.ID, c, fx.Now().Add(passkey.Lifetime)))
	return c
}

// enrol adds a passkey that a sign-in has made for a challenge.
func (fx *people) enrol(number byte, token ledger.Token, challenge []byte) (passkey.Passkey, error) {
	fx.T.Helper()
	fx.Turn()
	return fx.AddPasskey(fx.T.Context(), "acme", token.ID, challenge, passkey.Passkey{
		Name: "Laptop", RPID: "ledger.example.com", CredentialID: []byte{number}, PublicKey: []byte{number, number},
	})
}

// passkeysOf returns the IDs of the passkeys of a member, or of the org if the member is empty.
func (fx *people) passkeysOf(memberID string) (ids []string) {
	fx.T.Helper()
	fx.Turn()
	list, err := fx.Passkeys(fx.T.Context(), "acme", memberID, store.Query{Limit: 100})
	must.OK(fx.T, err)
	for _, p := range list.Data {
		ids = append(ids, p.ID)
	}
	return ids
}

// A passkey is enrolled by the answer to a challenge, which counts once and for one sign-in.
func (s suite) TestPasskeysAreEnrolled(t *testing.T) {
	fx := s.newReviewers(t)
	_, err := fx.add("bob", member.Contributor)
	must.OK(t, err)
	bob, _ := fx.signedIn(account("bob"))
	c := fx.challenge(1, fx.ann)
	_, err = fx.enrol(1, bob, c)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	_, err = fx.enrol(1, fx.ann, bytes.Repeat([]byte{2}, 32))
	storetest.WantCode(t, err, ledger.CodeNotFound)

	p, err := fx.enrol(1, fx.ann, c)
	must.OK(t, err)
	want := passkey.Passkey{
		ID: p.ID, Org: "acme", Member: fx.ann.Member, DN: "cn=ann,ou=people-dev,o=acme", Name: "Laptop",
		RPID: "ledger.example.com", CredentialID: []byte{1}, PublicKey: []byte{1, 1},
		Key: passkey.Fingerprint([]byte{1, 1}), CreatedAt: fx.Now(),
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("the passkey is %+v, want %+v", p, want)
	}
	_, err = fx.enrol(3, fx.ann, c)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	_, err = fx.enrol(1, fx.ann, fx.challenge(4, fx.ann)) // the same device again
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)
	other, err := fx.enrol(1, bob, fx.challenge(5, bob)) // credential IDs are the devices' choice
	must.OK(t, err)

	late := fx.challenge(6, fx.ann)
	fx.Clock.Advance(passkey.Lifetime)
	_, err = fx.enrol(6, fx.ann, late)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	must.OK(t, fx.Prune(t.Context()))
	if got, want := fx.passkeysOf(""), []string{p.ID, other.ID}; !slices.Equal(got, want) {
		t.Errorf("the org has %q, want %q", got, want)
	}
	if got, want := fx.passkeysOf(bob.Member), []string{other.ID}; !slices.Equal(got, want) {
		t.Errorf("bob has %q, want %q", got, want)
	}
}

// What was removed confirms nothing, and its credential is not enrolled again.
func (s suite) TestPasskeysAreRemoved(t *testing.T) {
	fx := s.newReviewers(t)
	ctx := t.Context()
	_, err := fx.add("bob", member.Contributor)
	must.OK(t, err)
	bob, _ := fx.signedIn(account("bob"))
	p, err := fx.enrol(1, fx.ann, fx.challenge(1, fx.ann))
	must.OK(t, err)

	confirmed := fx.draft(1, fx.ann)
	confirmed.Passkey = p.ID
	must.OK(t, fx.log(confirmed, "ann"))
	ofAnother := fx.draft(2, bob)
	ofAnother.Passkey = p.ID
	storetest.WantCode(t, fx.log(ofAnother, "bob"), ledger.CodeForbidden)
	ofAnother.Passkey = ""
	must.OK(t, fx.log(ofAnother, "bob")) // what was refused has not used it up

	storetest.WantCode(t, fx.RemovePasskey(ctx, "acme", bob.Member, p.ID), ledger.CodeNotFound)
	storetest.WantCode(t, fx.RemovePasskey(ctx, "acme", "", "pas_none"), ledger.CodeNotFound)
	must.OK(t, fx.RemovePasskey(ctx, "acme", fx.ann.Member, p.ID))
	must.OK(t, fx.RemovePasskey(ctx, "acme", "", p.ID)) // a no-op
	confirmed = fx.draft(3, fx.ann)
	confirmed.Passkey = p.ID
	storetest.WantCode(t, fx.log(confirmed, "ann"), ledger.CodeForbidden)
	_, err = fx.enrol(1, fx.ann, fx.challenge(4, fx.ann))
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)
	if left := fx.passkeysOf(""); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// Passkeys that a removal of the member keeps are still listed, and confirm again if the member is
// restored. Otherwise, they are removed.
func (s suite) TestPasskeysOfRestoredMembers(t *testing.T) {
	fx := s.newReviewers(t)
	p, err := fx.enrol(1, fx.ann, fx.challenge(1, fx.ann))
	must.OK(t, err)
	confirmed := fx.draft(1, fx.ann)
	confirmed.Passkey = p.ID

	_, err = fx.ChangeMember(t.Context(), "acme", fx.ann.Member, member.Change{Removed: new(true), KeepKeys: true})
	must.OK(t, err)
	storetest.WantCode(t, fx.log(confirmed, "ann"), ledger.CodeForbidden)
	if got := fx.passkeysOf(""); !slices.Equal(got, []string{p.ID}) {
		t.Errorf("the org has %q, want %q", got, p.ID)
	}

	_, err = fx.ChangeMember(t.Context(), "acme", fx.ann.Member, member.Change{Removed: new(false)})
	must.OK(t, err)
	storetest.WantCode(t, fx.log(confirmed, "ann"), ledger.CodeForbidden) // of a sign-in that has ended
	again, _ := fx.signedIn(account("ann"))
	confirmed = fx.draft(2, again)
	confirmed.Passkey = p.ID
	must.OK(t, fx.log(confirmed, "ann"))

	_, err = fx.ChangeMember(t.Context(), "acme", fx.ann.Member, member.Change{Removed: new(true)})
	must.OK(t, err)
	if left := fx.passkeysOf(""); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// Enrolments and removals are in the log, and who did it is in the audit.
func (s suite) TestPasskeysAreLogged(t *testing.T) {
	fx := s.newReviewers(t)
	p, err := fx.enrol(1, fx.ann, fx.challenge(1, fx.ann))
	must.OK(t, err)
	fx.Clock.Advance(time.Minute)
	for range 2 { // the second time, it is a no-op
		must.OK(t, fx.RemovePasskey(t.Context(), "acme", "", p.ID))
	}
	var got []ledger.IdentityEvent
	for _, e := range storetest.EventsOf[ledger.IdentityEvent](fx.Fixture) {
		if e.Kind == ledger.KindPasskey {
			e.ID, e.Timestamp = "", 0
			got = append(got, e)
		}
	}
	added := ledger.IdentityEvent{Type: ledger.EventIdentity, Org: "acme", Action: ledger.IdentityAdded, IdentityID: p.ID,
		Kind: "passkey", DN: p.DN, Key: p.Key, RPID: p.RPID}
	removed := added
	removed.Action, removed.RevokedAt = ledger.IdentityRevoked, fx.Now()
	if want := []ledger.IdentityEvent{added, removed}; !reflect.DeepEqual(got, want) {
		t.Errorf("the events are %+v, want %+v", got, want)
	}

	var audits []string
	for _, e := range storetest.EventsOf[ledger.AuditEvent](fx.Fixture) {
		if e.Target == p.ID {
			audits = append(audits, string(e.Action))
		}
	}
	if want := []string{"passkey.added", "passkey.removed"}; !slices.Equal(audits, want) {
		t.Errorf("the audit has %q, want %q", audits, want)
	}
}

// A sign-in has at most 5 challenges, the newest, and a member at most 20 passkeys, and 200 with former
// ones.
func (s suite) TestPasskeysAreBounded(t *testing.T) {
	fx := s.newReviewers(t)
	var challenges [][]byte
	for i := range byte(6) {
		fx.Clock.Advance(time.Millisecond)
		challenges = append(challenges, fx.challenge(i+1, fx.ann))
	}
	_, err := fx.enrol(1, fx.ann, challenges[0])
	storetest.WantCode(t, err, ledger.CodeNotFound)
	first, err := fx.enrol(1, fx.ann, challenges[1])
	must.OK(t, err)
	for i := range byte(passkey.MaxPasskeys - 1) {
		_, err := fx.enrol(i+2, fx.ann, fx.challenge(i+100, fx.ann))
		must.OK(t, err)
	}
	_, err = fx.enrol(255, fx.ann, fx.challenge(255, fx.ann))
	storetest.WantCode(t, err, ledger.CodeLimitReached)

	last := first
	for i := range byte(passkey.MaxEver - passkey.MaxPasskeys) {
		must.OK(t, fx.RemovePasskey(t.Context(), "acme", "", last.ID))
		last, err = fx.enrol(50+i, fx.ann, fx.challenge(50+i, fx.ann))
		must.OK(t, err)
	}
	must.OK(t, fx.RemovePasskey(t.Context(), "acme", "", last.ID))

	_, err = fx.enrol(250, fx.ann, fx.challenge(250, fx.ann))
	storetest.WantCode(t, err, ledger.CodeLimitReached) // with the former ones
}

// Passkeys are enrolled by those who are signed in, in an org that is not archived.
func (s suite) TestPasskeysNeedASignIn(t *testing.T) {
	fx := s.newReviewers(t)
	ctx := t.Context()
	c := fx.challenge(1, fx.ann)
	_, err := fx.ChangeOrg(ctx, "acme", ledger.OrgChange{Archived: new(true)})
	must.OK(t, err)
	_, err = fx.enrol(1, fx.ann, c)
	storetest.WantCode(t, err, ledger.CodeArchived)
	storetest.WantCode(t, fx.CreatePasskeyChallenge(ctx, "acme", fx.ann.ID, []byte{9}, fx.Now()), ledger.CodeArchived)
	storetest.WantCode(t, fx.RemovePasskey(ctx, "acme", "", "pas_none"), ledger.CodeArchived)
	_, err = fx.ChangeOrg(ctx, "acme", ledger.OrgChange{Archived: new(false)})
	must.OK(t, err)

	must.OK(t, fx.EndSignIn(ctx, "acme", "", fx.ann.ID))
	_, err = fx.enrol(1, fx.ann, c)
	storetest.WantCode(t, err, ledger.CodeForbidden)
	storetest.WantCode(t, fx.CreatePasskeyChallenge(ctx, "acme", fx.ann.ID, []byte{9}, fx.Now()), ledger.CodeForbidden)
}

// That a passkey has confirmed an attestation is evidence after a restart as well. What the passkey has
// signed is kept, and its digest is in the record and in the event.
func (s suite) TestAssertionsAreKept(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	fx.SetContract(`{"requirements":[{"state":"ATTESTED","predicate":"review:*","passkey":true}]}`)
	rita := fx.NewSigner("cn=rita,ou=review,o=acme")
	a, version := rita.Sign(sha(1), "review:code", ledger.Pass, "confirmed")
	a.Assertion = []byte(`{"rp_id":"ledger.example.com"}`)
	rec, created, err := fx.Record(ctx, "acme", "api", a, version)
	must.OK(t, err)
	plain := rita.Attest(sha(2), "review:code", ledger.Pass)
	digest := passkey.Digest(a.Assertion)
	if !created || rec.AssertionDigest != digest || plain.AssertionDigest != "" {
		t.Errorf("recorded with the digests %q and %q, want %q and none", rec.AssertionDigest, plain.AssertionDigest, digest)
	}

	// A removed passkey confirms nothing, however late it was removed.
	again, version := rita.Sign(sha(1), "review:code", ledger.Pass, "confirmed again")
	again.Assertion, again.Passkey = []byte("{}"), "pas_none"
	_, _, err = fx.Record(ctx, "acme", "api", again, version)
	storetest.WantCode(t, err, ledger.CodeForbidden)

	fx.Open(store.Options{}) // without what is cached
	for _, record := range []ledger.AttestationRecord{rec, plain} {
		read, err := fx.Attestation(ctx, "acme", "api", record.ID)
		must.OK(t, err)
		if read.AssertionDigest != record.AssertionDigest {
			t.Errorf("read the digest %q, want %q", read.AssertionDigest, record.AssertionDigest)
		}
	}
	text, err := fx.Assertion(ctx, "acme", "api", rec.ID)
	must.OK(t, err)
	if string(text) != string(a.Assertion) {
		t.Errorf("the assertion is %s", text)
	}
	_, err = fx.Assertion(ctx, "acme", "api", plain.ID)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	_, err = fx.Assertion(ctx, "acme", "api", "att_none")
	storetest.WantCode(t, err, ledger.CodeNotFound)
	var logged []string
	for _, e := range storetest.EventsOf[ledger.AttestationEvent](fx.Fixture) {
		logged = append(logged, e.AssertionDigest)
	}
	if want := []string{digest, ""}; !slices.Equal(logged, want) {
		t.Errorf("the events have the digests %q, want %q", logged, want)
	}

	fx.SetContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","passkey":true}]}`)
	fx.WantState(sha(1), ledger.Promotable)
	fx.WantState(sha(2), ledger.Attested)
}
