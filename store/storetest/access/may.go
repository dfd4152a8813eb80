package access

import (
	"errors"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

func (s suite) TestWhatAnIdentityMayAttestIsStored(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	fx.NewSigner("cn=ci,ou=build,o=acme")
	list, err := fx.Identities(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	added := list.Data[0]
	stored := identity.Predicates{"*", "merge:*", "baseline:*", "changes:*"}
	if !slices.Equal(added.May, stored) || added.DNPattern != "" {
		t.Fatalf("added: %+v", added)
	}

	for _, may := range []identity.Predicates{
		{"test:*"}, {"build:docker", "test:*"}, {"*"}, {"*", "merge:*"}, {"x"}, nil,
	} {
		_, before, err := fx.Keyring(ctx, "acme")
		must.OK(t, err)
		want, err := added.Changed(identity.Change{May: &may})
		must.OK(t, err)
		changed, err := fx.ChangeIdentity(ctx, "acme", added.ID, identity.Change{May: &may})
		must.OK(t, err)
		got, err := fx.Identity(ctx, "acme", added.ID)
		must.OK(t, err)
		if !slices.Equal(changed.May, want.May) || !slices.Equal(got.May, want.May) {
			t.Errorf("changed to %q: returned %q, stored %q, want %q", may, changed.May, got.May, want.May)
		}
		if _, after, err := fx.Keyring(ctx, "acme"); err != nil || after == before {
			t.Errorf("changed to %q: the keyring still has version %d, %v", may, after, err)
		}
	}

	// What changes nothing leaves the keyring.
	_, before, err := fx.Keyring(ctx, "acme")
	must.OK(t, err)
	for _, change := range []identity.Change{{}, {May: new(identity.Predicates{"*"})}, {Email: new("")}} {
		_, err := fx.ChangeIdentity(ctx, "acme", added.ID, change)
		must.OK(t, err)
	}
	if _, after, err := fx.Keyring(ctx, "acme"); err != nil || after != before {
		t.Errorf("version %d, %v; want %d", after, err, before)
	}

	_, err = fx.ChangeIdentity(ctx, "acme", "idn_none", identity.Change{})
	storetest.WantCode(t, err, ledger.CodeNotFound)
	_, err = fx.ChangeIdentity(ctx, "none", added.ID, identity.Change{})
	storetest.WantCode(t, err, ledger.CodeNotFound)
	must.OK(t, fx.RevokeIdentity(ctx, "acme", added.ID))
	_, err = fx.ChangeIdentity(ctx, "acme", added.ID, identity.Change{})
	storetest.WantCode(t, err, ledger.CodeRevokedIdentity)
}

// Every change between the verification of an attestation and its recording is detected,
// even one that would allow it. What is recorded stays.
func (s suite) TestAChangedIdentityBetweenVerifyAndRecordIsDetected(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	list, err := fx.Identities(ctx, "acme", store.Query{Limit: 10})
	must.OK(t, err)
	id := list.Data[0].ID
	a, version := ci.Sign(sha(1), "test:go", ledger.Pass, "1")
	recorded, _, err := fx.Record(ctx, "acme", "api", a, version)
	must.OK(t, err)

	for name, test := range map[string]struct {
		change identity.Change
		want   ledger.Code // of the attestation, verified again
	}{
		"another predicate": {identity.Change{May: &identity.Predicates{"build:*"}}, ledger.CodePredicateNotAllowed},
		"this predicate":    {identity.Change{May: &identity.Predicates{"test:go"}}, ""},
		"an address":        {identity.Change{Email: new("ci@acme.example")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fx.ChangeIdentity(ctx, "acme", id, identity.Change{May: &identity.Predicates{"*"}, Email: new("")})
			must.OK(t, err)
			a, version := ci.Sign(sha(1), "test:go", ledger.Pass, name)
			_, err = fx.ChangeIdentity(ctx, "acme", id, test.change)
			must.OK(t, err)
			if _, _, err = fx.Record(ctx, "acme", "api", a, version); !errors.Is(err, store.ErrKeyringChanged) {
				t.Fatalf("got %v, want ErrKeyringChanged", err)
			}

			keyring, version, err := fx.Keyring(ctx, "acme")
			must.OK(t, err)
			again, err := attestation.Verify(a.Envelope, keyring, fx.Now())
			if test.want != "" {
				storetest.WantCode(t, err, test.want)
				return
			}
			must.OK(t, err)
			_, created, err := fx.Record(ctx, "acme", "api", again, version)
			if err != nil || !created {
				t.Errorf("recorded again: %v, %v", created, err)
			}
		})
	}
	got, err := fx.Attestation(ctx, "acme", "api", recorded.ID)
	must.OK(t, err)
	if got.Verification = nil; got != recorded {
		t.Errorf("the earlier attestation: %+v, %v", got, err)
	}
}
