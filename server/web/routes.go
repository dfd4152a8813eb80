package web

import (
	"net/http"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/board"
	"github.com/ledgerd/ledgerd/server/web/browse"
	"github.com/ledgerd/ledgerd/server/web/commits"
	"github.com/ledgerd/ledgerd/server/web/conflicts"
	"github.com/ledgerd/ledgerd/server/web/home"
	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/policies"
	"github.com/ledgerd/ledgerd/server/web/settings"
)

// Routes returns the routes of all pages and forms, for tests. They cannot be served
// without a Site.
func Routes() []page.Route { return new(Site).routes() }

// logoutPattern is the path of the form that ends a session.
const logoutPattern = "/logout"

// routes returns all pages and forms. The paths below /v1 belong to the API.
func (s *Site) routes() []page.Route {
	own := []page.Route{
		page.Get("/{$}", page.Open, showHome),
		page.Get(loginPattern, page.Open, s.showLogin),
		page.Post(loginPattern, page.Open, s.signIn),
		// A provider may be slow, so these do not occupy the limiter.
		{Method: http.MethodGet, Pattern: withPattern + "/{provider}", Scope: page.Open, Handle: s.beginSignIn,
			SkipsLimiter: true},
		{Method: http.MethodGet, Pattern: CallbackPath + "/{provider}", Scope: page.Open, Handle: s.finishSignIn,
			SkipsLimiter: true},
		page.Post(joinPattern, page.Open, s.joinOrg),
		{Method: http.MethodPost, Pattern: logoutPattern, Scope: page.Open, Handle: s.signOut, IgnoresSession: true},
		page.Get("/setup", page.Open, s.showSetup),
		page.Post("/setup", page.Open, s.setUp),
		{Method: http.MethodGet, Pattern: "/static/{file}", Scope: page.Open, Handle: s.serveAsset, IgnoresSession: true,
			SkipsLimiter: true},

		{Method: http.MethodGet, Pattern: page.EventsPattern, Scope: ledger.Read, Handle: s.followEvents,
			SkipsLimiter: true},
	}
	return slices.Concat(own, home.Routes(), board.Routes(), commits.Routes(), conflicts.Routes(), browse.Routes(),
		policies.Routes(), settings.Routes())
}
