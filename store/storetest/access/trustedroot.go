package access

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/sigstoretest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

func (fx *fixture) setTrustedRoot(name string, document []byte) (identity.TrustedRoot, error) {
	return fx.SetTrustedRoot(fx.T.Context(), "acme", name, document)
}

// A trusted root has versions. The last one is in effect, and each changes the keyring.
func (s suite) TestTrustedRootsHaveVersions(t *testing.T) {
	fx, ctx := s.newFixture(t), t.Context()
	public, mock := sigstoretest.File(t, sigstoretest.PublicGood), sigstoretest.File(t, sigstoretest.OtherRoot)

	var want []identity.TrustedRoot
	for i, document := range [][]byte{public, mock, nil, public} {
		_, before, err := fx.Keyring(ctx, "acme")
		must.OK(t, err)
		r, err := fx.setTrustedRoot("public-good", document)
		must.OK(t, err)
		if r.Version != i+1 || r.Removed != (document == nil) || r.CreatedAt == 0 || r.Event == "" {
			t.Errorf("set as version %d: %+v", i+1, r)
		}
		if _, after, err := fx.Keyring(ctx, "acme"); err != nil || after == before {
			t.Errorf("version %d: the keyring still has version %d, %v", i+1, after, err)
		}
		got, err := fx.TrustedRoot(ctx, "acme", "public-good", i+1)
		if must.OK(t, err); got != r {
			t.Errorf("stored %+v, want %+v", got, r)
		}
		r.Document = ""
		want = append(want, r)
	}

	_, before, err := fx.Keyring(ctx, "acme")
	must.OK(t, err)
	if again, err := fx.setTrustedRoot("public-good", public); err != nil || again.Version != 4 {
		t.Errorf("set again as version %d, %v; want 4", again.Version, err)
	}
	if _, after, err := fx.Keyring(ctx, "acme"); err != nil || after != before {
		t.Errorf("version %d, %v; want %d", after, err, before)
	}
	list, err := fx.TrustedRoots(ctx, "acme", store.Query{Limit: 10})
	if must.OK(t, err); fmt.Sprint(list.Data) != fmt.Sprint(want) {
		t.Errorf("listed %+v, want %+v", list.Data, want)
	}

	_, err = fx.setTrustedRoot("other", nil)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	for _, version := range []int{0, 1} {
		_, err = fx.TrustedRoot(ctx, "acme", "other", version)
		storetest.WantCode(t, err, ledger.CodeNotFound)
	}
}

// The entry of a keyless identity is stored with it, and verifies bundles with the trusted root that it
// names.
func (s suite) TestKeylessEntriesAreStored(t *testing.T) {
	fx, ctx := s.newFixture(t), t.Context()
	entry := ledger.SigstoreEntry{
		TrustedRoot: "public-good", Issuer: "https://token.actions.githubusercontent.com",
		Subject: "https://github.com/sigstore/*", RepositoryID: "495574555", Ref: "refs/heads/*",
		Workflow: "https://github.com/sigstore/*", Commit: ledger.CommitAny,
	}
	n, err := identity.NewIdentity{Kind: identity.SigstoreIdentity, DN: "cn=release,ou=build,o=acme", Sigstore: &entry,
		May: identity.Predicates{"build:*"}}.Identity()
	must.OK(t, err)
	_, err = fx.AddIdentity(ctx, "acme", n)
	storetest.WantCode(t, err, ledger.CodeInvalidField) // there is no such trusted root
	_, err = fx.setTrustedRoot("public-good", sigstoretest.File(t, sigstoretest.OtherRoot))
	must.OK(t, err)
	added, err := fx.AddIdentity(ctx, "acme", n)
	must.OK(t, err)
	got, err := fx.Identity(ctx, "acme", added.ID)
	if must.OK(t, err); got.Sigstore == nil || *got.Sigstore != entry || got.Fingerprint != n.Fingerprint {
		t.Errorf("stored %+v with entry %+v, want %+v", got, got.Sigstore, entry)
	}
	_, err = fx.AddIdentity(ctx, "acme", n)
	storetest.WantCode(t, err, ledger.CodeAlreadyExists)

	verify := func() error {
		keyring, _, err := fx.Keyring(ctx, "acme")
		must.OK(t, err)
		_, err = attestation.Verify(sigstoretest.File(t, sigstoretest.Bundle), keyring, fx.Now())
		return err
	}
	storetest.WantCode(t, verify(), ledger.CodeUntrustedIdentity)
	_, err = fx.setTrustedRoot("public-good", sigstoretest.File(t, sigstoretest.PublicGood))
	must.OK(t, err)
	must.OK(t, verify())
	must.OK(t, fx.DistrustIdentity(ctx, "acme", added.ID, 1))
	storetest.WantCode(t, verify(), ledger.CodeRevokedIdentity)
}
