package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// refreshHeader is a header of requests in which the script fetches a live page again.
// It uses only the live parts of the response.
const refreshHeader = "X-Ledger-Refresh"

// visit returns the visit of a request, before its session is loaded.
func (s *Site) visit(rt page.Route, w http.ResponseWriter, r *http.Request) *page.Visit {
	r = r.WithContext(s.api.WithClient(r.Context(), r.RemoteAddr))
	return &page.Visit{Route: rt, Writer: w, Request: r, Memory: s.api.Memory("", r), API: s.client, Clock: s.clock,
		Base: s.base, RPID: s.rpID}
}

// isRefresh reports whether the request refreshes a live page.
func isRefresh(v *page.Visit) bool {
	return v.Route.Live && v.Request.Method == http.MethodGet && v.Request.Header.Get(refreshHeader) != ""
}

// anonymous returns a visit with the same permissions that renders pages without the
// visitor's name.
func anonymous(ctx context.Context, v *page.Visit) *page.Visit {
	return &page.Visit{Route: v.Route, Request: v.Request.WithContext(ctx), API: v.API, Clock: v.Clock, Base: v.Base,
		RPID: v.RPID,
		Org:  v.Org, Repo: v.Repo, Anonymous: true, Session: &ledger.Token{Org: v.Session.Org, Scope: v.Session.Scope}}
}

// loadSession looks up the session of the request, if it has one.
func (s *Site) loadSession(v *page.Visit) error {
	secret := s.cookies.Secret(v.Request)
	if secret == "" {
		return nil
	}
	v.Request = v.Request.WithContext(s.api.WithSession(v.Ctx(), secret))
	token, err := v.API.OwnToken(v.Ctx())
	if err != nil {
		return err
	}
	wire.SetCaller(v.Request, token.ID, token.Org)
	v.Session, v.Memory = &token, s.api.Memory(token.ID, v.Request)
	return nil
}

// begin checks the path, loads the session and checks the permissions.
func (s *Site) begin(v *page.Visit) error {
	rt, r := v.Route, v.Request
	// In a path of the API, such a name would select another resource.
	for segment := range strings.SplitSeq(rt.Pattern, "/") {
		name, isValue := strings.CutPrefix(strings.TrimSuffix(segment, "}"), "{")
		if value := r.PathValue(name); isValue && name != "$" &&
			(value == "" || value == "." || value == ".." || strings.Contains(value, "/")) {
			return ledger.Errorf(ledger.CodeNotFound, "no page at %s", r.URL.Path)
		}
	}

	if rt.IgnoresSession {
		return nil
	}
	if err := s.loadSession(v); err != nil && (rt.Scope != page.Open || client.CodeOf(err) != ledger.CodeUnauthenticated) {
		return err
	}
	if rt.Scope == page.Open {
		return nil
	}
	return authorize(v)
}

// authorize returns an error if the visitor may not see the page. The API checks
// this too, but not every page calls the API.
func authorize(v *page.Visit) error {
	if v.Session == nil {
		return ledger.Errorf(ledger.CodeUnauthenticated, "sign in to see this page")
	}
	v.Org = v.Session.Org
	switch {
	case v.Session.IsSignIn:
		return authorizeMember(v)
	case v.Value("org") != v.Session.Org:
		return ledger.Errorf(ledger.CodeForbidden, "your API token is for org %s, not %s", v.Session.Org,
			v.Value("org"))
	case !v.May(v.Route.Scope):
		return ledger.Errorf(ledger.CodeForbidden, "scope %s required: your API token has scope %s", v.Route.Scope,
			v.Session.Scope)
	}
	v.Repo = v.Value("repo")
	return nil
}

// authorizeMember is like authorize, for a member of the org who has signed in as a person.
func authorizeMember(v *page.Visit) error {
	switch {
	case v.Value("org") != v.Session.Org:
		return ledger.Errorf(ledger.CodeForbidden, "you are signed in to org %s, not %s", v.Session.Org, v.Value("org"))
	case !v.May(v.Route.Scope):
		return ledger.Errorf(ledger.CodeForbidden, "role %s required: you are %s", member.Role(v.Route.Scope),
			member.Role(v.Session.Scope))
	}
	v.Repo = v.Value("repo")
	return nil
}
