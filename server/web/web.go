// Package web is the web interface of ledgerd: pages made on the server, whose
// every fact comes from the HTTP API as the person who looks may see it.
// routes.go holds all the pages there are.
package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/turns"
)

// New returns a Site.
func New(c Config) (*Site, error) {
	s := &Site{api: c.API, log: c.Logger, clock: c.Now, stream: c.API.Sessions(), turns: turns.New()}
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

// Handler returns the pages.
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
	return wire.Compressed(frame.Handler(guard.Handler(s.mux())), "text/html", "text/css", "text/javascript",
		"image/svg+xml")
}

// contentPolicy lets a page load what this server gives and nothing else; no
// script or style stands in a page itself.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// mux makes the table answer requests. HEAD works where GET does.
func (s *Site) mux() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.Handle(rt.method+" "+rt.pattern, s.serve(rt))
	}
	// What the table has not comes here, a page by another method too: a pattern
	// without a method would clash with more special ones that have one.
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if known := methodsOf(mux, r); len(known) > 0 {
			allow := strings.Join(known, ", ")
			w.Header().Set("Allow", allow)
			s.fail(w, r, ledger.Errorf(ledger.CodeMethodNotAllowed, "method %s not allowed: use %s", r.Method, allow))
			return
		}
		s.fail(w, r, ledger.Errorf(ledger.CodeNotFound, "no page at %s", r.URL.Path))
	})
	return mux
}

// methodsOf returns by which methods there is something at the request's path.
func methodsOf(mux *http.ServeMux, r *http.Request) []string {
	var known []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		asked := r.Clone(r.Context())
		asked.Method = method
		if _, pattern := mux.Handler(asked); pattern != "/" {
			known = append(known, method)
		}
	}
	return known
}

// serve wraps the handler of a route: it lets in who may, and writes the
// answer or tells of the problem.
func (s *Site) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{site: s, route: rt, r: r, api: s.client}
		a, err := v.answer()
		if err != nil {
			a = v.problem(err)
		}
		if err := v.write(w, a); err != nil {
			s.fail(w, r, err)
		}
	})
}

// answer has the handler answer who may visit. What a slow browser sends is
// read before, and what it gets is written after the visit's turn.
func (v *visit) answer() (*answer, error) {
	if err := v.begin(); err != nil {
		return nil, err
	}
	if v.r.Method == http.MethodPost {
		if _, err := v.form(); err != nil {
			return nil, err
		}
	}
	if !v.route.makesNoPage() {
		if err := v.site.turns.Take(v.ctx()); err != nil {
			return nil, err
		}
		defer v.site.turns.Leave()
	}
	a, err := v.route.handle(v)
	if err != nil {
		return nil, err
	}
	return a, v.render(a)
}

// begin finds out who visits, and whether they may.
func (v *visit) begin() error {
	rt, r := v.route, v.r
	// A page may be asked for by names that the API would take for another path.
	for segment := range strings.SplitSeq(rt.pattern, "/") {
		name, isValue := strings.CutPrefix(strings.TrimSuffix(segment, "}"), "{")
		if value := r.PathValue(name); isValue && name != "$" &&
			(value == "" || value == "." || value == ".." || strings.Contains(value, "/")) {
			return ledger.Errorf(ledger.CodeNotFound, "no page at %s", r.URL.Path)
		}
	}
	if rt.asksNobody() {
		return nil
	}
	if err := v.greet(); err != nil && (rt.scope != open || client.CodeOf(err) != ledger.CodeUnauthenticated) {
		return err
	}
	if rt.scope == open {
		return nil
	}
	return v.enter(rt)
}

// enter reports why the visitor may not see the page. The API would too, but
// not of a page that does not ask it.
func (v *visit) enter(rt route) error {
	if v.session == nil {
		return ledger.Errorf(ledger.CodeUnauthenticated, "sign in with an API token")
	}
	v.org = v.session.Org
	switch {
	case v.value("org") != v.session.Org:
		return ledger.Errorf(ledger.CodeForbidden, "your API token is for org %s, not %s", v.session.Org,
			v.value("org"))
	case !v.may(rt.scope):
		return ledger.Errorf(ledger.CodeForbidden, "scope %s required: your API token has %s", rt.scope,
			v.session.Scope)
	}
	v.repo = v.value("repo")
	return nil
}
