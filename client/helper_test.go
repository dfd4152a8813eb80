package client_test

import (
	"crypto/ed25519"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A backend is a real server with its own database file, the org acme and its repo
// api.
type backend struct {
	url   string
	host  *client.Client // has access to everything
	admin *client.Client // has an admin token of acme
	store *store.Store
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	db := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s := server.New(server.Config{Store: db})
	host, public := httptest.NewServer(s.Host()), httptest.NewServer(s.Handler())
	t.Cleanup(host.Close)
	t.Cleanup(public.Close)

	b := &backend{url: public.URL, host: newClient(t, host.URL, ""), store: db}
	if _, err := b.host.CreateOrg(t.Context(), ledger.NewOrg{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	b.admin = newClient(t, b.url, b.token(t, ledger.Admin))
	if _, err := b.admin.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}); err != nil {
		t.Fatal(err)
	}
	return b
}

func newClient(t *testing.T, url, token string) *client.Client {
	t.Helper()
	return must.Get(client.New(url, client.Options{Token: token}))(t)
}

// token creates a token of acme and returns its secret.
func (b *backend) token(t *testing.T, scope ledger.Scope) string {
	t.Helper()
	token, err := b.host.CreateToken(t.Context(), "acme", ledger.NewToken{Name: scope.String(), Scope: scope})
	must.OK(t, err)
	return token.Secret
}

// addKey creates a key and adds it to acme's identities.
func (b *backend) addKey(t *testing.T, dn string) (ed25519.PrivateKey, identity.Identity) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	identity, err := b.admin.AddIdentity(t.Context(), "acme", identity.NewIdentity{
		Kind: identity.KeyIdentity,
		DN:   dn,
		PEM:  must.PublicPEM(t, public),
	})
	must.OK(t, err)
	return key, identity
}

func envelope(t *testing.T, key ed25519.PrivateKey, commit, predicate string, status ledger.Status) []byte {
	t.Helper()
	statement, err := attestation.NewStatement("acme/api", commit, attestation.ResultPredicate{
		Predicate: predicate,
		Result:    ledger.Result{Status: status, DurationMS: 12},
		StartedOn: ledger.TimeOf(time.Now()),
	})
	must.OK(t, err)
	return must.Get(attestation.SignDSSE(key, statement))(t)
}

var sha = strings.Repeat("a1", 20)
