// Package web is the web interface of ledgerd. Pages are rendered on the server,
// with data from the HTTP API and the visitor's permissions: they call it in process,
// as the visitor's session. routes.go has the table of all pages. Templates and static
// files are embedded.
package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/session"
	"github.com/ledgerd/ledgerd/server/web/turns"
)

// New returns a Site.
func New(c Config) (*Site, error) {
	s := &Site{api: c.API, log: c.Logger, clock: c.Now, stream: c.API.Sessions(), limiter: turns.NewLimiter(),
		base: c.Base, rpID: c.RPID, cookies: session.Cookies{Base: c.Base}, providers: c.Providers,
		flows: session.Cookies{Base: c.Base, Name: "ledgerd-sign-in", MaxSecret: idp.MaxFlow,
			HTTPS: c.Providers.OverHTTPS()}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}

	s.links, s.joining = session.NewLinks(s.clock), session.NewPool[joining](maxJoining, s.clock)
	var err error
	if s.client, err = inProcess(s.stream); err != nil {
		return nil, err
	}
	host, err := inProcess(c.API.Host())
	if err != nil {
		return nil, err
	}
	s.setup = newSetup(host)
	if s.assets, err = loadAssets(c.Base); err != nil {
		return nil, err
	}
	if s.pages, err = s.loadPages(); err != nil {
		return nil, err
	}
	return s, nil
}

// inProcess returns a client that calls the handler directly.
func inProcess(h http.Handler) (*client.Client, error) {
	c, err := client.New("http://localhost", client.Options{
		UserAgent:  "ledgerd-web",
		HTTPClient: &http.Client{Transport: client.InProcess(h)},
	})
	if err != nil {
		return nil, fmt.Errorf("create the client of the pages: %w", err)
	}
	return c, nil
}

// Handler returns the handler of all pages, below the base path.
func (s *Site) Handler() http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, ledger.Errorf(ledger.CodeForbidden, "form sent from another site: open the page here and send it "+
			"again (a proxy in front of ledgerd must pass on the Host header)"))
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
	logged := wire.Logged(wire.WithRequestID(frame.Handler(guard.Handler(s.mux()))), s.log)
	return wire.Compressed(logged, "text/html", "text/css", "text/javascript", "image/svg+xml")
}

// contentPolicy allows pages to load from this server only, and no inline
// scripts or styles.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// mux returns the handler of the routes, below the base path. A GET route also serves HEAD.
func (s *Site) mux() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range s.routes() {
		mux.Handle(rt.Method+" "+s.base+rt.Pattern, s.serve(rt))
	}
	// All other requests, including those with a wrong method. A pattern for the
	// path without a method would conflict with more specific patterns.
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if allowed := methodsOf(mux, r); len(allowed) > 0 {
			allow := strings.Join(allowed, ", ")
			w.Header().Set("Allow", allow)
			s.fail(w, r, ledger.Errorf(ledger.CodeMethodNotAllowed, "method %s not allowed: use %s", r.Method, allow))
			return
		}
		s.fail(w, r, ledger.Errorf(ledger.CodeNotFound, "no page at %s", r.URL.Path))
	})
	return mux
}

// methodsOf returns the methods of the routes that match the request's path.
func methodsOf(mux *http.ServeMux, r *http.Request) []string {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := mux.Handler(probe); pattern != "/" {
			methods = append(methods, method)
		}
	}
	return methods
}

// serve returns the handler of a route. It checks the visitor's permissions, and
// writes the response or the error page.
func (s *Site) serve(rt page.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := s.visit(rt, w, r)
		defer func() { v.Memory.Release() }()
		resp, err := s.respond(v)
		if err == nil && !resp.Immutable { // files are in memory once
			err = wire.Charge(v.Ctx(), v.Memory, r.Header, len(resp.Body))
		}
		if err != nil {
			resp = s.problem(v, err)
		}
		if err := s.write(v, w, resp); err != nil {
			s.fail(w, r, err)
		}
	})
}

// respond checks the request, calls the handler and renders the page. Only the
// handler and the rendering occupy the limiter: the form is read before and the
// response written after, so that slow browsers do not block others.
func (s *Site) respond(v *page.Visit) (*page.Response, error) {
	if err := s.begin(v); err != nil {
		return nil, err
	}
	if v.Request.Method == http.MethodPost {
		if err := v.ReadForm(); err != nil {
			return nil, err
		}
	}
	if isRefresh(v) {
		return s.refresh(v)
	}
	return s.handle(v)
}

// handle calls the handler and renders the page.
func (s *Site) handle(v *page.Visit) (*page.Response, error) {
	if !v.Route.SkipsLimiter {
		if err := s.limiter.Acquire(v.Ctx()); err != nil {
			return nil, err
		}
		defer s.limiter.Release()
	}

	resp, err := v.Route.Handle(v)
	if err != nil {
		return nil, err
	}
	return resp, s.render(v, resp)
}

// refresh returns a page without the visitor's name. It is rendered once for all
// visitors who refresh it at the same time. The visitor's own permissions were checked
// before.
func (s *Site) refresh(v *page.Visit) (*page.Response, error) {
	key := refreshKey{v.Org, v.Session.Scope, v.Request.URL.RequestURI()}
	resp, own, err := s.refreshes.Do(v.Ctx(), key, func(ctx context.Context) (*page.Response, error) {
		return s.handle(anonymous(ctx, v))
	})
	if err != nil && !own && isPersonal(err) {
		return s.handle(v) // the error is that of another visitor
	}
	return resp, err
}

// isPersonal reports whether an error may depend on the visitor's token, and not only
// on the page.
func isPersonal(err error) bool {
	switch page.CodeOf(err) {
	case ledger.CodeUnauthenticated, ledger.CodeForbidden, ledger.CodeTooManyRequests:
		return true
	}
	return false
}
