package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"html/template"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/internal/budget"
	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/session"
	"github.com/ledgerd/ledgerd/server/web/turns"
)

// An API is the HTTP API that the pages use.
type API interface {
	// Sessions returns the API for signed-in visitors. A request with a context
	// from WithSession can do what the session's token can.
	Sessions() http.Handler
	WithSession(ctx context.Context, session string) context.Context
	// WithDigest returns a context in which a stream of Sessions sends only the latest
	// of the events since the last message; if commit is not empty, of those about it.
	WithDigest(ctx context.Context, commit string) context.Context
	// SignIn starts a session with a token's secret. It returns the session's
	// secret and when the session expires.
	SignIn(ctx context.Context, token string) (session string, expires ledger.Time, err error)
	SignOut(ctx context.Context, session string) error
	// SignInMember starts a session of a member of an org, whose account a provider has
	// confirmed. state is the SHA-256 of the state of the sign-in, which counts once. If the org
	// does not admit the account, or does not exist, the error has CodeForbidden.
	SignInMember(ctx context.Context, org string, account member.Account, state [sha256.Size]byte) (
		session string, expires ledger.Time, err error)
	// Offers returns the orgs that an account can sign in to.
	Offers(ctx context.Context, account member.Account) ([]member.Offer, error)
	// WithClient returns a context whose requests are those of a visitor with a remote address.
	WithClient(ctx context.Context, remote string) context.Context
	// CountFailure counts a request from an address whose token was not accepted, and returns
	// the error for it, which has headers in the response.
	CountFailure(response http.Header, remote string, err error) error
	// Memory returns a lease for the memory of a request's form and of its response, on
	// behalf of a token; empty for visitors who are not signed in.
	Memory(token string, r *http.Request) *budget.Lease
	// Host returns the API with the permissions of the host's administrator. Only
	// the page that creates the first org uses it.
	Host() http.Handler
}

// Config configures a Site.
type Config struct {
	API API
	// Base is the path, without a slash at its end, below which Handler has the pages: that of the
	// setting base_url. If it is empty, they have the root.
	Base string
	// Providers are those with which people can sign in, in addition to API tokens.
	Providers idp.Providers
	// RPID is the domain of passkeys. If it is empty, members cannot use passkeys.
	RPID string
	// Logger logs internal errors; nil for no log.
	Logger *slog.Logger
	// Now returns the current time; nil for time.Now.
	Now func() time.Time
}

// A refreshKey identifies the live parts of a page. They depend on nothing else of the
// request: the API gives all tokens of an org with the same scope the same data, except those for some
// repos, which have no sessions.
type refreshKey struct {
	org   string
	scope ledger.Scope
	url   string // path and query, as requested
}

// A pageTemplate returns the template of a page. The first call parses it: to parse those of all pages would be
// a third of the work of a server's start.
type pageTemplate func() (*template.Template, error)

// A Site is the web interface.
type Site struct {
	api     API
	log     *slog.Logger
	clock   func() time.Time
	base    string // Config.Base
	rpID    string // Config.RPID
	cookies session.Cookies
	// providers are Config.Providers, flows the cookies of the sign-ins that have begun, and joining the
	// sign-ins that wait until the person agrees to join an org.
	providers idp.Providers
	flows     session.Cookies
	joining   *session.Pool[joining]
	client    *client.Client // for signed-in visitors
	stream    http.Handler   // the API, for the live stream
	setup     setup
	links     *session.Links
	pages     map[string]pageTemplate
	assets    *assets
	limiter   turns.Limiter
	// refreshes are the live pages that are rendered for several visitors at once.
	refreshes turns.Group[refreshKey, *page.Response]
}

func (s *Site) now() ledger.Time { return ledger.TimeOf(s.clock()) }

// A setup creates the first org of an empty ledger, once, for a visitor with the
// key.
type setup struct {
	host *client.Client
	key  string
	mu   *sync.Mutex // held while the org is created
}

func newSetup(host *client.Client) setup {
	return setup{host, rand.Text(), new(sync.Mutex)}
}

// check returns an error if the key is wrong or an org exists.
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
