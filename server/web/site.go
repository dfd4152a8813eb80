package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"html/template"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/turns"
)

// An API is what the pages are made from.
type API interface {
	// Sessions is the HTTP API as those see it who are signed in: in a context
	// that WithSession made, they can do what their token can.
	Sessions() http.Handler
	WithSession(ctx context.Context, session string) context.Context
	// SignIn begins a session with a token's text.
	SignIn(ctx context.Context, token string) (session string, expires ledger.Time, err error)
	SignOut(ctx context.Context, session string) error
	// Host is the API as the administrator of the host sees it. Only the page
	// that makes the first org uses it.
	Host() http.Handler
}

// Config is what a Site is made of.
type Config struct {
	API API
	// Logger gets what went wrong inside; nothing is logged where nil.
	Logger *slog.Logger
	// Now is the clock by which things end soon; time.Now where nil.
	Now func() time.Time
}

// A Site answers the requests of browsers.
type Site struct {
	api    API
	log    *slog.Logger
	clock  func() time.Time
	client *client.Client // as those who are signed in
	stream http.Handler   // the API, for answers without an end
	setup  setup
	pages  map[string]*template.Template
	assets *assets
	turns  turns.Turns
}

func (s *Site) now() ledger.Time { return ledger.TimeOf(s.clock()) }

// A setup makes the first org of an empty ledger, once, for who has the key.
type setup struct {
	host *client.Client
	key  string
	mu   *sync.Mutex // held while the org is being made
}

func newSetup(host *client.Client) setup {
	return setup{host, rand.Text(), new(sync.Mutex)}
}

// check returns why the page is closed for that key.
func (s setup) check(ctx context.Context, key string) error {
	if subtle.ConstantTimeCompare([]byte(key), []byte(s.key)) != 1 {
		return ledger.Errorf(ledger.CodeForbidden, "invalid setup link: use the one that ledgerd serve printed "+
			"when it last started")
	}
	orgs, err := client.Collect(s.host.Orgs(ctx), 1)
	if err != nil {
		return err
	}
	if len(orgs) > 0 {
		return ledger.Errorf(
			ledger.CodeForbidden, "setup link expired: the ledger already has an org (sign in with an API token)")
	}
	return nil
}
