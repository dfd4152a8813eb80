package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// Handler returns the API as the network sees it: callers show a token.
func (s *Server) Handler() http.Handler {
	return wire.Compressed(s.handler(s.byToken), typeJSON, typeProblem, typeYAML, typeDSSE, typeBundle, typeBundleOld)
}

// Host returns the API as the administrator of the host sees it: without a
// token, every org and every endpoint. It is for use inside the process, and
// must never be reachable from a network.
func (s *Server) Host() http.Handler { return s.handler(byHost) }

// Sessions returns the API as those see it who are signed in to the web
// interface: callers are known by WithSession, and can do what the token can
// that they signed in with. It is for use inside the process: what comes from a
// network tells it nothing of who calls.
func (s *Server) Sessions() http.Handler { return s.handler(s.bySession) }

func (s *Server) handler(identify identify) http.Handler {
	return s.framed(s.router(s.routes(), identify))
}

// framed returns next with what every answer has in common, that to an unknown
// path too.
func (s *Server) framed(next http.Handler) http.Handler {
	frame := wire.Frame{
		Header: map[string]string{"Server": s.name, "Cache-Control": "private, no-cache"},
		Fail:   s.fail,
	}
	return wire.Logged(wire.Identified(frame.Handler(next)), s.log)
}

// router returns a handler that answers by the table. HEAD works where GET does.
func (s *Server) router(routes []route, identify identify) http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash = false
	router.RedirectFixedPath = false
	router.HandleOPTIONS = false
	for _, rt := range routes {
		router.Handle(rt.method, rt.pattern, s.serve(rt, identify))
		if rt.method == http.MethodGet {
			router.Handle(http.MethodHead, rt.pattern, s.serve(rt, identify))
		}
	}
	router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, ledger.Errorf(
			ledger.CodeNotFound, "there is no endpoint at %s: GET /v1/openapi.yaml describes all there are", r.URL.Path))
	})
	router.MethodNotAllowed = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// httprouter names OPTIONS for every path, but it is no endpoint's.
		allow := slices.DeleteFunc(strings.Split(w.Header().Get("Allow"), ", "),
			func(m string) bool { return m == http.MethodOptions })
		w.Header().Set("Allow", strings.Join(allow, ", "))
		s.fail(w, r, ledger.Errorf(ledger.CodeMethodNotAllowed, "%s does not work here: use %s", r.Method,
			strings.Join(allow, " or ")))
	})
	return router
}

// serve wraps the handler of a route: it lets in who may, and writes the
// answer or the problem.
func (s *Server) serve(rt route, identify identify) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, path httprouter.Params) {
		var answer *reply
		call := func() (err error) {
			answer, err = s.call(rt, &call{r: r, path: path, identify: identify, maxBody: s.maxBody})
			return err
		}
		var err error
		if wire.AsksForStream(r) {
			err = apart(call)
		} else {
			err = call()
		}
		if err == nil {
			err = answer.write(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	}
}

func (s *Server) call(rt route, c *call) (*reply, error) {
	var err error
	if rt.scope != open {
		if c.caller, err = c.identify(c.r); err != nil {
			return nil, err
		}
		if err := c.caller.may(rt, c.org()); err != nil {
			return nil, err
		}
	}
	if c.query, err = parameters(c.r.URL.RawQuery, rt.parameters); err != nil {
		return nil, err
	}
	return rt.handle(c)
}

// may returns why the caller may not use the route, in that org if its path names
// one. It does not reveal whether the org exists.
func (c caller) may(rt route, org string) error {
	switch {
	case c.isHost():
		return nil
	case rt.scope == ledger.Host:
		return ledger.Errorf(
			ledger.CodeForbidden, "only the administrator of the host may do this, with the ledgerd command there")
	case rt.inOrg() && org != c.token.Org:
		return ledger.Errorf(ledger.CodeForbidden, "this API token is not for the org %s", org)
	case rt.scope > c.token.Scope:
		return ledger.Errorf(ledger.CodeForbidden, "this needs the scope %s; the API token has %s", rt.scope, c.token.Scope)
	}
	return nil
}

// fail answers with the problem that err is.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	id := w.Header().Get(wire.HeaderRequestID)
	e := wire.Explain(err)
	if e.Code == ledger.CodeInternal {
		s.log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err, "request", id)
		e.Detail += " under the request id"
	}
	drain(r)
	status := wire.StatusOf(e)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	body, err := marshal(wire.ProblemOf(e, id))
	if err != nil {
		panic(fmt.Sprintf("encode a problem: %v", err))
	}
	wire.WriteBody(w, status, typeProblem, body)
}
