// Package web is the web interface of ledgerd: pages made on the server, whose
// every fact comes from the HTTP API as the person who looks may see it.
// routes.go holds all the pages there are.
package web

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
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
	turns  turns
}

// New returns a Site.
func New(c Config) (*Site, error) {
	s := &Site{api: c.API, log: c.Logger, clock: c.Now, stream: c.API.Sessions(), turns: pageTurns()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	var err error
	if s.client, err = inProcess(s.stream); err != nil {
		return nil, err
	}
	host, err := inProcess(c.API.Host())
	if err != nil {
		return nil, err
	}
	s.setup = newSetup(host)
	if s.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if s.pages, err = s.loadPages(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Site) now() ledger.Time { return ledger.TimeOf(s.clock()) }

func inProcess(h http.Handler) (*client.Client, error) {
	c, err := client.New("http://localhost", client.Options{
		UserAgent:  "ledgerd-web",
		HTTPClient: &http.Client{Transport: client.InProcess(h)},
	})
	if err != nil {
		return nil, fmt.Errorf("make the client of the pages: %w", err)
	}
	return c, nil
}

// Handler returns the pages.
func (s *Site) Handler() http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, ledger.Errorf(ledger.CodeForbidden, "the form was sent from another site, so nothing was done: open the page here and send it again. A proxy before ledgerd has to pass on the Host header"))
	}))
	frame := wire.Frame{
		Header: map[string]string{
			"Content-Security-Policy":    contentPolicy,
			"Referrer-Policy":            "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin",
			"Cache-Control":              "no-store",
		},
		Fail: s.fail,
	}
	return wire.Compressed(frame.Handler(guard.Handler(s.mux())), "text/html", "text/css", "text/javascript", "image/svg+xml")
}

// contentPolicy lets a page load what this server gives and nothing else; no
// script or style stands in a page itself.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
