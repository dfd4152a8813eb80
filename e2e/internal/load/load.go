// Package load puts a mixed load on a server and notes every answer.
package load

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Settings are variables for the environment of the server: it may post webhooks to this
// machine, and sends those again soon whose outcome it does not know.
func Settings() []string {
	return []string{
		"LEDGERD_LIMITS_REQUESTS=0",
		"LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8",
		"LEDGERD_WEBHOOKS_SCHEDULE=1s,1s,1s,2s,2s,5s,5s,10s,10s,20s",
		"LEDGERD_WEBHOOKS_TIMEOUT=2s",
	}
}

// A Load is the org acme with its repos, and what clients have done there.
type Load struct {
	// Token has the scope admin.
	Token string
	// Book has a note of every answer.
	Book *filecheck.Notebook
	// Answered, if not nil, is called with each response, and when its request was sent.
	Answered func(sent time.Time, r *http.Response)

	keys     []ed25519.PrivateKey
	client   *http.Client
	receiver *receiver
	serial   atomic.Int64 // makes requests distinct

	mu       sync.Mutex
	again    []statement // without an answer, or refused because of a fault: clients send them again
	webhooks int         // number of requests to create one
}

// A statement is signed and can be sent several times.
type statement struct {
	repo     string
	envelope []byte
	note     filecheck.Note // as it is confirmed, without ids
}

// The repos of a load.
var repos = []string{"api", "web"}

// maxWebhooks is how many webhooks a load creates.
const maxWebhooks = 6

// New creates the org in a new database that no server has open. The caller must close
// the load.
func New(ctx context.Context, database string) (*Load, error) {
	settings := config.Default()
	settings.Database = config.Database(database)
	local, err := service.OpenLocal(ctx, settings)
	if err != nil {
		return nil, err
	}
	l := &Load{Book: filecheck.NewNotebook(), receiver: newReceiver()}
	// Without compression, a trace of the server shows its answers.
	transport := &watchedTransport{&http.Transport{DisableCompression: true}, l}
	l.client = &http.Client{Timeout: 30 * time.Second, Transport: transport}
	if err := errors.Join(l.create(ctx, local.Client), local.Close(ctx)); err != nil {
		l.Close()
		return nil, fmt.Errorf("create the org of the load: %w", err)
	}
	return l, nil
}

func (l *Load) create(ctx context.Context, c *client.Client) error {
	if _, err := c.CreateOrg(ctx, ledger.NewOrg{Name: "acme"}); err != nil {
		return err
	}
	for _, repo := range repos {
		if _, err := c.CreateRepo(ctx, "acme", ledger.NewRepo{Name: repo}); err != nil {
			return err
		}
	}
	for i := range 4 {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			return err
		}
		_, err = c.AddIdentity(ctx, "acme", identity.NewIdentity{
			Kind: identity.KeyIdentity, DN: fmt.Sprintf("cn=signer-%d,ou=build,o=acme", i),
			PEM: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		})
		if err != nil {
			return err
		}
		l.keys = append(l.keys, private)
	}

	token, err := c.CreateToken(ctx, "acme", ledger.NewToken{Name: "load", Scope: ledger.Admin})
	l.Token = token.Secret
	return err
}

// A watchedTransport reports the responses to a load.
type watchedTransport struct {
	*http.Transport
	load *Load
}

// RoundTrip implements http.RoundTripper.
func (w *watchedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := time.Now()
	response, err := w.Transport.RoundTrip(request)
	if err == nil && w.load.Answered != nil {
		w.load.Answered(sent, response)
	}
	return response, err
}

// Close stops receiving webhooks.
func (l *Load) Close() {
	l.receiver.Close()
	l.client.CloseIdleConnections()
}
