package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/internal/live"
	"github.com/ledgerd/ledgerd/server/internal/tokenexchange"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
)

// Handler returns the API for the network, below the base path. Callers authenticate with a
// token.
func (s *Server) Handler() http.Handler {
	return wire.Compressed(s.handler(s.config.Base, s.byToken, s.observed),
		typeJSON, typeProblem, typeYAML, typeDSSE, typeBundle, typeBundleOld)
}

// Host returns the API for the administrator of the host, who has access to every
// org and every endpoint without a token. It is for use inside the process, and
// must never be reachable from a network.
func (s *Server) Host() http.Handler { return s.handler("", byHost, unobserved) }

// Sessions returns the API for people who are signed in to the web interface. The
// caller is the session that WithSession put into the request's context, with the
// permissions of its token. It is for use inside the process: no request from the
// network can set the session.
func (s *Server) Sessions() http.Handler { return s.handler("", s.bySession, unobserved) }

// handler returns the handler of all endpoints, which are below the base path.
func (s *Server) handler(base string, identify identify, observed observed) http.Handler {
	return s.framed(s.router(append(s.routes(), removedRoutes()...), base, identify, observed))
}

// An observed function returns the handler of a route, with what counts its responses.
type observed func(route string, next httprouter.Handle) httprouter.Handle

// unobserved counts nothing: what the pages and the administrator of the host ask for in process
// is no request of the network.
func unobserved(_ string, next httprouter.Handle) httprouter.Handle { return next }

// observed returns next with a call of the observer after each response.
func (s *Server) observed(route string, next httprouter.Handle) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, path httprouter.Params) {
		recorder := wire.NewRecorder(w)
		out := http.ResponseWriter(recorder)
		if hijacker, ok := w.(http.Hijacker); ok { // which lets a stream leave its handler
			out = hijackable{recorder, hijacker}
		}
		next(out, r, path)
		s.config.Observer.Responded(route, r.Method, recorder.Status(), recorder.Took())
	}
}

// framed returns next with the headers, request id and access log that all
// requests have, even those of unknown paths.
func (s *Server) framed(next http.Handler) http.Handler {
	name := "ledgerd"
	if v := s.config.Version; v != "" {
		name += "/" + v
	}
	frame := wire.Frame{
		Header: map[string]string{"Server": name, "Cache-Control": "private, no-cache"},
		Fail:   s.fail,
	}
	return wire.Logged(wire.WithRequestID(frame.Handler(next)), s.log)
}

// router returns a handler for the routes, below the base path. HEAD works wherever GET does.
func (s *Server) router(routes []route, base string, identify identify, observed observed) http.Handler {
	router := httprouter.New()
	router.RedirectTrailingSlash = false
	router.RedirectFixedPath = false
	router.HandleOPTIONS = false
	for _, rt := range routes {
		handle := observed(rt.pattern, s.serve(rt, base, identify))
		router.Handle(rt.method, base+rt.pattern, handle)
		if rt.method == http.MethodGet {
			router.Handle(http.MethodHead, base+rt.pattern, handle)
		}
	}

	missing := observed("", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		s.fail(w, r, ledger.Errorf(
			ledger.CodeNotFound, "no endpoint at %s (see GET %s/v1/openapi.yaml)", r.URL.Path, base))
	})
	other := observed("", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		// httprouter lists OPTIONS for every path, but no endpoint has it.
		allow := slices.DeleteFunc(strings.Split(w.Header().Get("Allow"), ", "),
			func(m string) bool { return m == http.MethodOptions })
		w.Header().Set("Allow", strings.Join(allow, ", "))
		s.fail(w, r, ledger.Errorf(ledger.CodeMethodNotAllowed, "method %s not allowed: use %s", r.Method,
			strings.Join(allow, " or ")))
	})
	router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { missing(w, r, nil) })
	router.MethodNotAllowed = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { other(w, r, nil) })
	return router
}

// serve returns the HTTP handler of a route below the base path. It calls the route and writes
// the response or the problem.
func (s *Server) serve(rt route, base string, identify identify) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, path httprouter.Params) {
		c := &call{w: w, r: r, base: base, path: path, identify: identify,
			maxBody: s.config.Limits.MaxBody, stopping: &s.draining}
		defer func() { c.memory.Release() }()
		var response *reply
		respond := func() (err error) {
			response, err = s.respond(rt, c)
			return err
		}

		var err error
		if wire.IsStreamRequest(r) {
			err = live.OnOwnStack(respond)
		} else {
			err = respond()
		}

		if err != nil {
			if rt.kind == ofExchange {
				err = tokenexchange.Failed(err)
			}
			s.fail(w, r, err)
			return
		}
		if response.location != "" {
			response.location = c.base + response.location
		}
		response.write(w, r)
	}
}

// respond authenticates the caller and returns the response to the call, encoded.
func (s *Server) respond(rt route, c *call) (*reply, error) {
	if rt.scope == public {
		return s.call(rt, c)
	}
	opened, err := s.isOpened(rt, c)
	if err != nil {
		return nil, err
	}

	if opened {
		c.caller.token = ledger.Token{Org: c.org(), Scope: ledger.Read}
	} else if c.caller, err = c.identify(c.r); err != nil {
		if c.r.Header["Authorization"] != nil {
			err = s.CountFailure(c.w.Header(), c.r.RemoteAddr, err)
		}
		return nil, err
	}
	wire.SetCaller(c.r, c.caller.token.ID, c.caller.token.Org)
	if err := s.countRequest(c); err != nil {
		return nil, err
	}

	if !c.caller.isHost() {
		c.memory = s.Memory(c.caller.token.ID, c.r)
		c.slot = s.budgets.reads.Lease(c.caller.token.ID)
	}
	defer c.slot.Release() // once the memory of the response is accounted for
	response, err := s.call(rt, c)
	if err != nil && !isCode(err, ledger.CodeRequestTimeout) {
		c.slot.Release()
		c.memory.Release()
		wire.DrainBody(c.w, c.r) // not for callers who have not authenticated
	}
	return response, err
}

// isOpened reports whether a call needs no token, because it is about a public log.
func (s *Server) isOpened(rt route, c *call) (bool, error) {
	if rt.kind != ofPublicLog || c.r.Header["Authorization"] != nil {
		return false, nil
	}
	return s.isLogPublic(c)
}

// call authorizes the caller, parses the query, and runs the route's handler.
func (s *Server) call(rt route, c *call) (response *reply, err error) {
	if rt.scope != public {
		if err := c.caller.authorize(rt, c.org()); err != nil {
			return nil, err
		}
		if err := c.authorizeRepo(rt); err != nil {
			return nil, err
		}
	}
	if c.query, err = parameters(c.r.URL.RawQuery, rt.parameters); err != nil {
		return nil, err
	}

	if rt.reads(c.r) {
		if err := c.beginRead(); err != nil {
			return nil, err
		}
	}
	if !wire.IsRead(c.r) {
		c.acting = store.WithActor(c.r.Context(), s.actor(c))
	}
	if response, err = rt.handle(c); err != nil {
		return nil, err
	}
	if err := response.encode(); err != nil {
		return nil, err
	}
	// A write is on disk, so its response is never refused.
	if c.isRead {
		err = wire.Charge(c.ctx(), c.memory, c.r.Header, len(response.body))
	}
	return response, err
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
	case rt.scope > c.token.Scope && c.token.IsSignIn:
		return ledger.Errorf(ledger.CodeForbidden, "role %s required: you are %s", member.Role(rt.scope),
			member.Role(c.token.Scope))
	case rt.scope > c.token.Scope:
		return ledger.Errorf(ledger.CodeForbidden, "scope %s required: the API token has scope %s", rt.scope, c.token.Scope)
	}
	return nil
}

// actor returns who makes a call, and from where, as audit events report it.
func (s *Server) actor(c *call) ledger.Actor {
	if c.caller.isHost() {
		a := ledger.Actor{Name: c.caller.token.Name, Via: ledger.ViaHost, User: s.config.HostUser}
		if remote, ok := c.ctx().Value(clientKey{}).(string); ok { // the setup page
			a.Via, a.User, a.Address = ledger.ViaWeb, "", addressOf(remote)
		}
		return a
	}
	if c.caller.credential.session {
		return visitor(c.ctx(), c.caller.token)
	}
	return ledger.Actor{
		Name: c.caller.token.Name, Token: c.caller.token.ID, Via: ledger.ViaAPI, Address: addressOf(c.r.RemoteAddr),
	}
}

// fail writes err as a problem.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problem(w, r, err)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	body, err := marshal(p)
	if err != nil {
		panic(fmt.Sprintf("encode a problem: %v", err))
	}
	wire.WriteBody(w, r, p.Status, typeProblem, body)
}

// authorizeRepo returns an error with CodeForbidden if the caller's token is only for some repos, and
// the request is not about one of them.
func (c *call) authorizeRepo(rt route) error {
	t := c.caller.token
	if !t.IsExchanged() && !t.IsLimited || rt.kind == ofToken {
		return nil
	}
	repo := c.repo()
	if rt.kind == ofEvents {
		repo = c.r.URL.Query().Get("repo") // the events of one repo; the query may have only one
	}
	if slices.ContainsFunc(t.Repos, func(name string) bool { return strings.EqualFold(name, repo) }) {
		return nil
	}
	why := "it was created for no other repo"
	if t.IsExchanged() {
		why = "it was exchanged by the rule " + t.Rule
	}
	return ledger.Errorf(ledger.CodeForbidden, "the API token is only for %s: %s", strings.Join(t.Repos, ", "), why)
}
