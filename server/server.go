// Package server implements the HTTP API of ledgerd. routes.go lists all
// endpoints and openapi.yaml describes them; the tests check that both agree, and that
// each exchange is as described. testdata/contract.txt lists what clients rely on.
// Handlers call the store directly.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/budget"
	"github.com/ledgerd/ledgerd/server/internal/live"
	"github.com/ledgerd/ledgerd/server/internal/reviews"
	"github.com/ledgerd/ledgerd/server/internal/tokenexchange"
	"github.com/ledgerd/ledgerd/store"
)

// bulkTime is how long the server records items of one request. It is shorter than the time
// that clients usually wait for a response.
const bulkTime = 20 * time.Second

// A Server serves the HTTP API.
type Server struct {
	config Config // with defaults
	store  *store.Store
	log    *slog.Logger

	exchanger *tokenexchange.Exchanger
	reviews   *reviews.Desk
	feeds     *live.Feeds
	streams   *openStreams
	rates     rates
	rechecks  rechecks
	budgets   budgets
	timing    live.Timing
	bulkTime  time.Duration
	stopping  chan struct{} // closed by EndStreams
	stopOnce  sync.Once
	draining  atomic.Bool // set by Drain
}

// New returns a Server. Call EndStreams before shutting it down.
func New(c Config) *Server {
	c = c.withDefaults()
	s := &Server{
		config: c,
		store:  c.Store,
		log:    c.Logger,

		feeds:    live.NewFeeds(c.Store, c.Logger),
		streams:  newOpenStreams(c.Limits),
		rates:    newRates(c.Limits),
		rechecks: rechecks{by: make(map[credential]recheck)},
		budgets:  newBudgets(c.Limits.MaxBody),
		timing:   live.DefaultTiming,
		bulkTime: bulkTime,
		stopping: make(chan struct{}),
	}
	s.exchanger = &tokenexchange.Exchanger{Store: c.Store, Issuers: c.Issuers, BaseURL: c.BaseURL, Now: s.time}
	s.reviews = &reviews.Desk{Store: c.Store, Authority: c.Authority, Party: c.Party, Now: s.time}
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
func (s *Server) WaitForStreams(ctx context.Context) error { return s.streams.wait(ctx) }

// Memory returns a lease for the memory of a request's body and of its response, on
// behalf of a token; empty for callers without a token, who share one share.
func (s *Server) Memory(token string, r *http.Request) *budget.Lease {
	return s.budgets.memoryOf(token, r)
}

// Streams returns the number of open live streams.
func (s *Server) Streams() int {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	return s.streams.all
}

func (s *Server) time() ledger.Time { return ledger.TimeOf(s.config.Now()) }
