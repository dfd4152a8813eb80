package client_test

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
)

// An exampleServer is the server of the examples, with the org acme, its repo api, a
// write token, and a key that the org trusts.
type exampleServer struct {
	url, token string
	key        ed25519.PrivateKey
	close      func()
}

func startExample() *exampleServer {
	ctx := context.Background()
	dir := try(os.MkdirTemp("", "ledgerd-example"))
	db := try(store.Open(ctx, filepath.Join(dir, "ledger.db"), store.Options{}))
	s := server.New(server.Config{Store: db})
	public := httptest.NewServer(s.Handler())
	e := &exampleServer{url: public.URL, close: func() {
		s.EndStreams()
		public.Close()
		db.Close()
		os.RemoveAll(dir)
	}}

	inProcess := &http.Client{Transport: client.InProcess(s.Host())}
	host := try(client.New("http://ledger.example", client.Options{HTTPClient: inProcess}))
	try(host.CreateOrg(ctx, ledger.NewOrg{Name: "acme"}))
	try(host.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "api"}))
	e.token = try(host.CreateToken(ctx, "acme", ledger.NewToken{Name: "ci", Scope: ledger.Write})).Secret
	e.key = ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	der := try(x509.MarshalPKIXPublicKey(e.key.Public()))
	try(host.AddIdentity(ctx, "acme", identity.NewIdentity{
		Kind: identity.KeyIdentity,
		DN:   "cn=ci,ou=build,o=acme",
		PEM:  string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	}))
	return e
}

// record records a passing result for a commit.
func (e *exampleServer) record(predicate string) {
	c := try(client.New(e.url, client.Options{Token: e.token}))
	statement := try(attestation.NewStatement("acme/api", sha, attestation.ResultPredicate{
		Predicate: predicate,
		Result:    ledger.Result{Status: ledger.Pass},
		StartedOn: ledger.TimeOf(time.Now()),
	}))
	_, _, err := c.Record(context.Background(), "acme", "api", try(attestation.SignDSSE(e.key, statement)))
	if err != nil {
		log.Fatal(err)
	}
}

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
