package storetest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/internal/sigstoretest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/passkey/passkeytest"
	"github.com/ledgerd/ledgerd/store"
)

// CreateAcme creates the org acme with its repo api.
func CreateAcme(t testing.TB, s *store.Store) {
	t.Helper()
	_, err := s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	must.OK(t, err)
}

// AddSigner makes acme trust a new key.
func AddSigner(t testing.TB, s *store.Store, dn string) (ed25519.PrivateKey, identity.Identity) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	n := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: must.PublicPEM(t, public), DN: dn,
		May: identity.Predicates{"*", "merge:*", "baseline:*", "changes:*"}}
	return key, addIdentity(t, s, n)
}

func addIdentity(t testing.TB, s *store.Store, n identity.NewIdentity) identity.Identity {
	t.Helper()
	i := must.Get(n.Identity())(t)
	return must.Get(s.AddIdentity(t.Context(), "acme", i))(t)
}

// record records an envelope in acme/api, with an assertion or without.
func record(t testing.TB, s *store.Store, envelope, assertion []byte) ledger.AttestationRecord {
	t.Helper()
	keyring, version, err := s.Keyring(t.Context(), "acme")
	must.OK(t, err)
	a := must.Get(attestation.Verify(envelope, keyring, s.Now()))(t)
	a.Assertion = assertion
	r, _, err := s.Record(t.Context(), "acme", "api", a, version)
	must.OK(t, err)
	return r
}

// RecordKeyless records a keyless bundle in acme/api. The store parses trusted roots. Afterwards, the one that
// verifies the bundle is replaced by one that does not.
func RecordKeyless(t testing.TB, s *store.Store) ledger.AttestationRecord {
	t.Helper()
	set := func(file string) {
		t.Helper()
		_, err := s.SetTrustedRoot(t.Context(), "acme", "public-good", sigstoretest.File(t, file))
		must.OK(t, err)
	}
	set(sigstoretest.PublicGood)
	addIdentity(t, s, identity.NewIdentity{
		Kind: identity.SigstoreIdentity, DN: "cn=release,ou=build,o=acme", May: identity.Predicates{"build:*"},
		Sigstore: &ledger.SigstoreEntry{TrustedRoot: "public-good", Issuer: "https://token.actions.githubusercontent.com",
			Subject: "https://github.com/sigstore/*"},
	})
	r := record(t, s, sigstoretest.File(t, sigstoretest.Bundle), nil)
	set(sigstoretest.OtherRoot)
	return r
}

// NewRoot returns the root of a new CA of acme. A CA for CI jobs may certify them for test:*.
func NewRoot(t testing.TB, p ca.Purpose, now ledger.Time) identity.Identity {
	t.Helper()
	cert := must.Get(ca.NewRoot(p, "acme", ca.NewSerial(), oidctest.NewKey(t), now))(t)
	var n ca.NewAuthority
	if p == ca.Jobs {
		n.May = identity.Predicates{"test:*"}
	}
	root, err := n.Identity(p, "acme", ca.PEM(cert))
	must.OK(t, err)
	return root
}

// A Reviewer is a member of acme with a signing key, whose device has a passkey.
type Reviewer struct {
	*passkeytest.Device
	Passkey passkey.Passkey
	SignIn  string // ID of the token

	t       testing.TB
	key     ed25519.PrivateKey
	reviews int64
}

// NewReviewer adds a reviewer to a ledger. Acme may use the provider of [Providers].
func NewReviewer(t testing.TB, s *store.Store, dn string) *Reviewer {
	t.Helper()
	ctx, account := t.Context(), member.Account{Issuer: Provider, Subject: dn}
	_, err := s.AddMember(ctx, "acme",
		member.NewMember{Issuer: account.Issuer, Subject: account.Subject, DN: dn, Role: member.Contributor})
	must.OK(t, err)
	state, session := sha256.Sum256([]byte("state "+dn)), sha256.Sum256([]byte("session "+dn))
	token, err := s.SignInMember(ctx, "acme", account, state, session, s.Now().Add(time.Hour))
	must.OK(t, err)

	r := &Reviewer{t: t, SignIn: token.ID}
	r.Enrol(s)
	r.key, _ = AddSigner(t, s, dn)
	return r
}

// Enrol adds a passkey on a new device, which is used from then on.
func (r *Reviewer) Enrol(s *store.Store) {
	r.t.Helper()
	r.Device = passkeytest.New(r.t, passkey.Party{ID: "ledger.example.com", Origin: "https://ledger.example.com"})
	challenge := sha256.Sum256(r.ID)
	must.OK(r.t, s.CreatePasskeyChallenge(r.t.Context(), "acme", r.SignIn, challenge[:], s.Now().Add(passkey.Lifetime)))
	var err error
	r.Passkey, err = s.AddPasskey(r.t.Context(), "acme", r.SignIn, challenge[:], passkey.Passkey{Name: "Läptop",
		RPID: r.RPID, CredentialID: r.ID, PublicKey: r.PublicKey(r.t)})
	must.OK(r.t, err)
}

// Assert returns the assertion of the passkey that it has confirmed a statement.
func (r *Reviewer) Assert(payload []byte) []byte {
	r.t.Helper()
	a := passkey.Assertion{RPID: r.RPID, PublicKey: r.PublicKey(r.t), Confirmation: r.Confirm(r.t, payload)}
	return must.Get(a.Text())(r.t)
}

// Review records a review of a commit of acme/api, with what assert returns for its statement, if it is not nil.
func (r *Reviewer) Review(s *store.Store, commit string, assert func(payload []byte) []byte) ledger.AttestationRecord {
	r.t.Helper()
	r.reviews++
	payload, err := attestation.NewStatement("acme/api", commit, attestation.ResultPredicate{
		Predicate: "review:code", Result: ledger.Result{Status: ledger.Pass, DurationMS: r.reviews}})
	must.OK(r.t, err)
	var assertion []byte
	if assert != nil {
		assertion = assert(payload)
	}
	return record(r.t, s, must.Get(attestation.SignDSSE(r.key, payload))(r.t), assertion)
}
