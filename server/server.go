// Package server is the HTTP API of ledgerd. routes.go holds all of it on one
// page; openapi.yaml describes it, and the tests hold the two together.
package server

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// DefaultMaxBody is the most bytes that an attestation or the registration of
// a commit may have, unless Config says otherwise.
const DefaultMaxBody = 4 << 20

// How many live streams may be open, unless Config says otherwise.
const (
	DefaultStreamsPerOrg   = 5000
	DefaultStreamsPerToken = 2000
)

// Config is what a Server is made of.
type Config struct {
	Store *store.Store
	// Now is the clock by which certificates and tokens expire; time.Now where nil.
	Now func() time.Time
	// Logger gets what went wrong inside, and at debug level every request.
	Logger *slog.Logger
	// MaxBody is the config key max_body; DefaultMaxBody where 0.
	MaxBody int64
	// Version is ledgerd's own, for the Server header.
	Version string
	// StreamsPerOrg and StreamsPerToken are the config keys streams.per_org and
	// streams.per_token; DefaultStreamsPerOrg and DefaultStreamsPerToken where 0.
	StreamsPerOrg, StreamsPerToken int
	// CheckTarget refuses, by a *ledger.Error about the field url, a URL that no
	// webhook may have, whether it is made or changed; every URL passes where nil.
	CheckTarget func(ctx context.Context, url string) error
}

// A Server answers the HTTP API.
type Server struct {
	store   *store.Store
	now     func() time.Time
	log     *slog.Logger
	maxBody int64
	name    string // for the Server header

	checkTarget func(ctx context.Context, url string) error

	feeds  *feeds
	limits *limits
	pace   pace
	ending chan struct{} // closed by EndStreams
	end    sync.Once
}

// New returns a Server. EndStreams ends what it has running.
func New(c Config) *Server {
	s := &Server{store: c.Store, now: c.Now, log: c.Logger, maxBody: c.MaxBody, name: "ledgerd", pace: defaultPace,
		ending: make(chan struct{})}
	s.limits = &limits{perOrg: cmp.Or(c.StreamsPerOrg, DefaultStreamsPerOrg),
		perToken: cmp.Or(c.StreamsPerToken, DefaultStreamsPerToken), open: make(map[string]int)}
	if s.checkTarget = c.CheckTarget; s.checkTarget == nil {
		s.checkTarget = func(context.Context, string) error { return nil }
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.maxBody == 0 {
		s.maxBody = DefaultMaxBody
	}
	if c.Version != "" {
		s.name += "/" + c.Version
	}
	s.feeds = &feeds{store: s.store, log: s.log, byOrg: make(map[string]*feed)}
	return s
}

// EndStreams ends the live streams, those to come too. Their clients connect
// again, to the next server, and resume.
func (s *Server) EndStreams() { s.end.Do(func() { close(s.ending) }) }

func (s *Server) time() ledger.Time { return ledger.TimeOf(s.now()) }
