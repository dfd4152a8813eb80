package store

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// newIdentity returns an identity with a new key.
func newIdentity(t *testing.T, dn string) identity.Identity {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	text := []byte(must.PublicPEM(t, public))
	i, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(text), DN: dn}.Identity()
	must.OK(t, err)
	return i
}

// identityEvents returns the events of acme's identities.
func identityEvents(t *testing.T, s *Store) (list []ledger.IdentityEvent) {
	t.Helper()
	page, err := s.Events(t.Context(), "acme",
		events.EventFilter{Query: txn.Query{Limit: 500}, Types: []ledger.EventType{ledger.EventIdentity}})
	must.OK(t, err)
	for _, body := range page.Data {
		var e ledger.IdentityEvent
		must.OK(t, ledger.DecodeStrict(body, &e))
		list = append(list, e)
	}
	return list
}

// Each change of an identity is in the log, with what is in effect after it. What changes
// nothing is not.
func TestIdentitiesAreLogged(t *testing.T) {
	ctx := t.Context()
	s, path := newLogStore(t)
	var want []string
	wantEvents := func(id, event string) {
		t.Helper()
		var got []string
		for _, e := range identityEvents(t, s) {
			got = append(got, fmt.Sprintf("%s %s %s may %q %q, revoked %t, distrusted since %d",
				e.Action, e.DN, e.Key, e.May, e.Email, e.RevokedAt != 0, e.DistrustedSince))
		}
		if event != "" {
			want = append(want, event)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("logged %q, want %q", got, want)
		}
		i, err := s.Identity(ctx, "acme", id)
		must.OK(t, err)
		events := identityEvents(t, s)
		last := events[len(events)-1]
		if i.Event != last.ID || last.IdentityID != id || last.Timestamp == 0 || last.Org != "acme" {
			t.Fatalf("the identity's event is %q, the last is %+v", i.Event, last)
		}
	}

	n := newIdentity(t, "cn=alice,ou=dev,o=acme")
	alice, err := s.AddIdentity(ctx, "acme", n)
	must.OK(t, err)
	line := "cn=alice,ou=dev,o=acme " + alice.Fingerprint
	wantEvents(alice.ID, "added "+line+` may [] "", revoked false, distrusted since 0`)
	if got, err := s.Identity(ctx, "acme", alice.ID); err != nil || got.Event != alice.Event {
		t.Errorf("added with the event %q, stored with %q, %v", alice.Event, got.Event, err)
	}
	if _, err := s.AddIdentity(ctx, "acme", n); err == nil {
		t.Error("a key was added twice")
	}
	wantEvents(alice.ID, "")

	may, email := identity.Predicates{"test:*"}, "alice@acme.example"
	for range 2 { // the second one changes nothing
		changed, err := s.ChangeIdentity(ctx, "acme", alice.ID, identity.Change{May: &may, Email: &email})
		must.OK(t, err)
		if events := identityEvents(t, s); len(events) != 2 || changed.Event != events[1].ID {
			t.Errorf("changed with the event %q, logged %+v", changed.Event, events)
		}
	}
	line += ` may ["test:*"] "alice@acme.example"`
	wantEvents(alice.ID, "changed "+line+`, revoked false, distrusted since 0`)

	for range 2 {
		must.OK(t, s.RevokeIdentity(ctx, "acme", alice.ID))
	}
	wantEvents(alice.ID, "revoked "+line+`, revoked true, distrusted since 0`)
	for range 2 {
		must.OK(t, s.DistrustIdentity(ctx, "acme", alice.ID, 5))
	}
	wantEvents(alice.ID, "distrusted "+line+`, revoked true, distrusted since 5`)

	bob, err := s.AddIdentity(ctx, "acme", newIdentity(t, "cn=bob,ou=dev,o=acme"))
	must.OK(t, err)
	line = "cn=bob,ou=dev,o=acme " + bob.Fingerprint + ` may [] "", revoked `
	wantEvents(bob.ID, "added "+line+"false, distrusted since 0")
	must.OK(t, s.DistrustIdentity(ctx, "acme", bob.ID, 7))
	wantEvents(bob.ID, "distrusted "+line+"true, distrusted since 7")
	wantLog(t, s, path)
}

// Identities of an older release are logged once, in several writes.
func TestKnownIdentitiesAreLogged(t *testing.T) {
	ctx := t.Context()
	s, path := newLogStore(t)
	const many = 103 // one write logs 50
	var ids []string
	for n := range many {
		i, err := s.AddIdentity(ctx, "acme", newIdentity(t, fmt.Sprintf("cn=ci%d,ou=build,o=acme", n)))
		must.OK(t, err)
		ids = append(ids, i.ID)
	}
	must.OK(t, s.RevokeIdentity(ctx, "acme", ids[1]))
	before := len(identityEvents(t, s))
	db := readRaw(t, path)
	_, err := db.Exec("UPDATE identities SET event_id = '' WHERE dn <> 'cn=ci0,ou=build,o=acme'")
	must.OK(t, err)
	must.OK(t, db.Close())

	for range 2 {
		must.OK(t, s.BuildLogsOnce(ctx))
		known := identityEvents(t, s)[before:]
		if len(known) != many-1 {
			t.Fatalf("logged %d identities, want %d", len(known), many-1)
		}
		for n, e := range known {
			if e.Action != ledger.IdentityKnown || e.IdentityID != ids[n+1] || (e.RevokedAt != 0) != (n == 0) {
				t.Fatalf("event %d is %+v", n, e)
			}
		}
	}
	wantLog(t, s, path)
}
