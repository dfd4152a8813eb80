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

// Handler returns the API for the network. Callers authenticate with a token.
func (s *Server) Handler() http.Handler {
	return wire.Compressed(s.handler(s.byToken), typeJSON, typeProblem, typeYAML, typeDSSE, typeBundle, typeBundleOld)
}

// Host returns the API for the administrator of the host, who has access to every
// org and every endpoint without a token. It is for use inside the process, and
// must never be reachable from a network.
func (s *Server) Host() http.Handler { return s.handler(byHost) }

// Sessions returns the API for people who are signed in to the web interface. The
// caller is the session that WithSession put into the request's context, with the
// permissions of its token. It is for use inside the process: no request from the
// network can set the session.
func (s *Server) Sessions() http.Handler { return s.handler(s.bySession) }

func (s *Server) handler(identify identify) http.Handler {
	return s.framed(s.router(s.routes(), identify))
}

// framed returns next with the headers, request id and access log that all
// requests have, even those of unknown paths.
func (s *Server) framed(next http.Handler) http.Handler {
	frame := wire.Frame{
		Header: map[string]string{"Server": s.name, "Cache-Control": "private, no-cache"},
		Fail:   s.fail,
	}
	return wire.Logged(wire.WithRequestID(frame.Handler(next)), s.log)
}

// router returns a handler for the routes. HEAD works wherever GET does.
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
			ledger.CodeNotFound, "no endpoint at %s (see GET /v1/openapi.yaml)", r.URL.Path))
	})
	router.MethodNotAllowed = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// httprouter lists OPTIONS for every path, but no endpoint has it.
		allow := slices.DeleteFunc(strings.Split(w.Header().Get("Allow"), ", "),
			func(m string) bool { return m == http.MethodOptions })
		w.Header().Set("Allow", strings.Join(allow, ", "))
		s.fail(w, r, ledger.Errorf(ledger.CodeMethodNotAllowed, "method %s not allowed: use %s", r.Method,
			strings.Join(allow, " or ")))
	})
	return router
}

// serve returns the HTTP handler of a route. It calls the route and writes the
// response or the problem.
func (s *Server) serve(rt route, identify identify) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, path httprouter.Params) {
		var response *reply
		call := func() (err error) {
			response, err = s.call(rt, &call{r: r, path: path, identify: identify, maxBody: s.maxBody,
				stopping: &s.draining})
			return err
		}

		var err error
		if wire.IsStreamRequest(r) {
			err = onOwnStack(call)
		} else {
			err = call()
		}

		if err == nil {
			err = response.write(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	}
}

// call authenticates and authorizes the caller, parses the query, and runs the
// route's handler.
func (s *Server) call(rt route, c *call) (*reply, error) {
	var err error
	if rt.scope != public {
		if c.caller, err = c.identify(c.r); err != nil {
			return nil, err
		}
		if err := c.caller.authorize(rt, c.org()); err != nil {
			return nil, err
		}
	}
	if c.query, err = parameters(c.r.URL.RawQuery, rt.parameters); err != nil {
		return nil, err
	}
	return rt.handle(c)
}

// authorize returns an error with CodeForbidden if the caller is not allowed to
// use the route, in the org that its path names, if any. The error does not reveal
// whether the org exists.
func (c caller) authorize(rt route, org string) error {
	switch {
	case c.isHost():
		return nil
	case rt.scope == ledger.Host:
		return ledger.Errorf(
			ledger.CodeForbidden, "only the administrator of the host can do this, with the ledgerd command on the host")
	case rt.inOrg() && org != c.token.Org:
		return ledger.Errorf(ledger.CodeForbidden, "the API token is not for org %s", org)
	case rt.scope > c.token.Scope:
		return ledger.Errorf(ledger.CodeForbidden, "scope %s required: the API token has scope %s", rt.scope, c.token.Scope)
	}
	return nil
}

// fail writes err as a problem. An internal error is logged.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	id := w.Header().Get(wire.HeaderRequestID)
	e := wire.Explain(err)
	if e.Code == ledger.CodeInternal {
		s.log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err, "request", id)
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
