package verify

import (
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func TestLoggedIdentity(t *testing.T) {
	ci, eve := newSigner(t, "cn=ci,ou=build,o=acme"), newSigner(t, "cn=ci,ou=build,o=acme")
	e, err := ci.id.Logged(ledger.IdentityAdded)
	must.OK(t, err)
	e.ID, e.Type, e.Timestamp = "evt_1", ledger.EventIdentity, 7
	if c := LoggedIdentity(ci.id, &e); c.Status != OK {
		t.Errorf("as it is: %+v", c)
	}

	for name, change := range map[string]func(i *identity.Identity){
		// The host lists the fingerprint that was logged, with another key.
		"another key": func(i *identity.Identity) { i.PEM = eve.id.PEM },
		"another ID":  func(i *identity.Identity) { i.ID += "x" },
		"another DN":  func(i *identity.Identity) { i.DN = "cn=eve" },
		"may":         func(i *identity.Identity) { i.May = identity.Predicates{"test:*"} },
		"revoked":     func(i *identity.Identity) { i.RevokedAt = 9 },
		"no PEM":      func(i *identity.Identity) { i.PEM = "" },
	} {
		changed := ci.id
		change(&changed)
		if c := LoggedIdentity(changed, &e); c.Status != Failed {
			t.Errorf("%s: %+v", name, c)
		}
	}
	renamed := ci.id
	renamed.Org = "globex"
	if c := LoggedIdentity(renamed, &e); c.Status != OK {
		t.Errorf("an org that was renamed: %+v", c)
	}
	e.Type = ledger.EventKey
	if c := LoggedIdentity(ci.id, &e); c.Status != Failed {
		t.Errorf("an event of another type: %+v", c)
	}
	if _, err := IdentityEvent([]byte("x")); err == nil {
		t.Error("a body that is not JSON: no error")
	}
}
