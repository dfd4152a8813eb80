// Package server implements the HTTP API of ledgerd. routes.go lists all
// endpoints and openapi.yaml describes them; the tests check that both agree.
package server

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/authority"
	"github.com/ledgerd/ledgerd/internal/oidc"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/server/internal/budget"
	"github.com/ledgerd/ledgerd/server/internal/live"
	"github.com/ledgerd/ledgerd/server/internal/reviews"
	"github.com/ledgerd/ledgerd/server/internal/tokenexchange"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// DefaultMaxBody is the default of Config.MaxBody, in bytes.
const DefaultMaxBody = 4 << 20

// The defaults of Config.StreamsPerOrg and Config.StreamsPerToken.
const (
	DefaultStreamsPerOrg   = 5000
	DefaultStreamsPerToken = 2000
)

// bulkTime is how long the server records items of one request. It is shorter than the time
// that clients usually wait for a response.
const bulkTime = 20 * time.Second

// Config configures a Server. Only Store is required.
type Config struct {
	Store *store.Store
	// Now is the clock by which certificates, tokens and sessions expire. The default
	// is that of the Store.
	Now func() time.Time
	// Logger receives internal errors and, at debug level, every request. By default
	// nothing is logged.
	Logger *slog.Logger
	// Base is the path, without a slash at its end, below which Handler has the API: that of
	// the setting base_url. If it is empty, the API has the root.
	Base string
	// MaxBody is the maximum size of an attestation, a registration or a preview, in
	// bytes (setting max_body). 0 means DefaultMaxBody.
	MaxBody int64
	// Version is the version of ledgerd in the Server header. It may be empty.
	Version string
	// Streams is the maximum number of open live streams of all orgs. 0 means no limit.
	Streams int
	// StreamsPerOrg and StreamsPerToken are the maximum numbers of open live streams. 0 means
	// DefaultStreamsPerOrg or DefaultStreamsPerToken.
	StreamsPerOrg, StreamsPerToken int
	// Requests is the maximum number of requests per second with a token, and for public logs
	// from an address (setting limits.requests). 0 means no limit.
	Requests int
	// FailedSignIns is the maximum number of requests per minute from an address whose token
	// is not accepted. 0 means no limit.
	FailedSignIns int
	// CheckTarget returns a *ledger.Error about the field url if a webhook must not
	// have that URL. It is called when a webhook is created and when its URL changes.
	// If it is nil, every URL is allowed.
	CheckTarget func(ctx context.Context, url string) error
	// BaseURL is the setting base_url. If it is empty, no tokens are exchanged.
	BaseURL string
	// Issuers verifies the tokens of issuers. If it is nil, their keys are read from any address.
	Issuers *oidc.Issuers
	// CheckIssuer is like CheckTarget, for the URL of an issuer.
	CheckIssuer func(ctx context.Context, url string) error
	// Witnesses returns how far each witness has cosigned the log with an origin. It may be
	// nil.
	Witnesses func(origin string) []ledger.LogWitness
	// Receipts signs receipts. It may be nil.
	Receipts *transparency.Receipts
	// Authority issues certificates to CI jobs and to people who review. It may be nil.
	Authority *authority.Authority
	// Party is the domain and the origin of passkeys. If its ID is empty, members cannot use passkeys.
	Party passkey.Party
	// HostUser is the user of the operating system who runs a command, for audit events of
	// requests of Host. It may be empty.
	HostUser string
	// Observer counts what the Server does for the network. It may be nil.
	Observer Observer
	// Signing returns why logs are not signed, by org. It may be nil.
	Signing func() map[string]string
}

// A Server serves the HTTP API.
type Server struct {
	store   *store.Store
	now     func() time.Time
	log     *slog.Logger
	maxBody int64
	name    string // value of the Server header
	base    string // Config.Base
	// hostUser is Config.HostUser.
	hostUser string

	observer    Observer
	checkTarget func(ctx context.Context, url string) error
	checkIssuer func(ctx context.Context, url string) error
	exchanger   *tokenexchange.Exchanger
	reviews     *reviews.Desk
	signing     func() map[string]string
	receipts    *transparency.Receipts
	authority   *authority.Authority
	witnesses   func(origin string) []ledger.LogWitness

	feeds    *live.Feeds
	limits   *limits
	rates    rates
	rechecks rechecks
	budgets  budgets
	timing   live.Timing
	bulkTime time.Duration
	stopping chan struct{} // closed by EndStreams
	stopOnce sync.Once
	draining atomic.Bool // set by Drain
}

// New returns a Server. Call EndStreams before shutting it down.
func New(c Config) *Server {
	s := &Server{store: c.Store, now: c.Now, log: c.Logger, maxBody: c.MaxBody, name: "ledgerd",
		timing: live.DefaultTiming, bulkTime: bulkTime, stopping: make(chan struct{}),
		rechecks: rechecks{by: make(map[credential]recheck)}}

	s.limits = &limits{total: cmp.Or(c.Streams, math.MaxInt), perOrg: cmp.Or(c.StreamsPerOrg, DefaultStreamsPerOrg),
		perToken: cmp.Or(c.StreamsPerToken, DefaultStreamsPerToken), open: make(map[string]int)}
	s.rates = newRates(c.Requests, c.FailedSignIns)
	if s.checkTarget = c.CheckTarget; s.checkTarget == nil {
		s.checkTarget = func(context.Context, string) error { return nil }
	}
	if s.checkIssuer = c.CheckIssuer; s.checkIssuer == nil {
		s.checkIssuer = func(context.Context, string) error { return nil }
	}
	s.exchanger = &tokenexchange.Exchanger{Store: c.Store, Issuers: c.Issuers, BaseURL: c.BaseURL, Now: s.time}
	if c.Issuers == nil {
		s.exchanger.Issuers = oidc.New(oidc.Config{})
	}
	if s.signing = c.Signing; s.signing == nil {
		s.signing = func() map[string]string { return nil }
	}
	s.receipts, s.authority, s.hostUser, s.base = c.Receipts, c.Authority, c.HostUser, c.Base
	s.reviews = &reviews.Desk{Store: c.Store, Authority: c.Authority, Party: c.Party, Now: s.time}
	if s.witnesses = c.Witnesses; s.witnesses == nil {
		s.witnesses = func(string) []ledger.LogWitness { return nil }
	}
	if s.observer = c.Observer; s.observer == nil {
		s.observer = noObserver{}
	}
	if s.now == nil {
		s.now = func() time.Time { return c.Store.Now().Std() }
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.maxBody == 0 {
		s.maxBody = DefaultMaxBody
	}
	s.budgets = newBudgets(s.maxBody)
	if c.Version != "" {
		s.name += "/" + c.Version
	}

	s.feeds = live.NewFeeds(s.store, s.log)
	return s
}

// Drain makes the server not ready, so that load balancers send requests elsewhere. It
// still serves all requests.
func (s *Server) Drain() { s.draining.Store(true) }

// EndStreams ends the live streams, and those that are opened later. Their clients
// reconnect to the next server and resume.
func (s *Server) EndStreams() { s.stopOnce.Do(func() { close(s.stopping) }) }

// WaitForStreams waits until all live streams have ended, which [http.Server.Shutdown]
// does not. Call it after EndStreams. If ctx is done before, it returns the error of ctx.
func (s *Server) WaitForStreams(ctx context.Context) error { return s.limits.wait(ctx) }

// Memory returns a lease for the memory of a request's body and of its response, on
// behalf of a token; empty for callers without a token, who share one share.
func (s *Server) Memory(token string, r *http.Request) *budget.Lease {
	return s.budgets.memoryOf(token, r)
}

// Streams returns the number of open live streams.
func (s *Server) Streams() int {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	return s.limits.all
}

func (s *Server) time() ledger.Time { return ledger.TimeOf(s.now()) }
