package server

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/ledgerd/ledgerd/authority"
	"github.com/ledgerd/ledgerd/internal/oidc"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// DefaultMaxBody is the default of Limits.MaxBody, in bytes.
const DefaultMaxBody = 4 << 20

// The defaults of Limits.StreamsPerOrg and Limits.StreamsPerToken.
const (
	DefaultStreamsPerOrg   = 5000
	DefaultStreamsPerToken = 2000
)

// Config configures a Server. Only Store is required.
type Config struct {
	Store *store.Store
	// Now is the clock by which certificates, tokens and sessions expire. The default
	// is that of the Store.
	Now func() time.Time
	// Logger receives internal errors and, at debug level, every request. By default
	// nothing is logged.
	Logger *slog.Logger
	// Observer counts what the Server does for the network. It may be nil.
	Observer Observer
	// Version is the version of ledgerd in the Server header. It may be empty.
	Version string
	// Base is the path, without a slash at its end, below which Handler has the API: that of
	// the setting base_url. If it is empty, the API has the root.
	Base string
	// BaseURL is the setting base_url. If it is empty, no tokens are exchanged.
	BaseURL string
	// Limits limits the requests of clients.
	Limits Limits
	// Logs is what the API shows of the transparency logs.
	Logs Logs
	// Authority issues certificates to CI jobs and to people who review. It may be nil.
	Authority *authority.Authority
	// Party is the domain and the origin of passkeys. If its ID is empty, members cannot use passkeys.
	Party passkey.Party
	// Issuers verifies the tokens of issuers. If it is nil, their keys are read from any address.
	Issuers *oidc.Issuers
	// CheckIssuer is like CheckTarget, for the URL of an issuer.
	CheckIssuer func(ctx context.Context, url string) error
	// CheckTarget returns a *ledger.Error about the field url if a webhook must not
	// have that URL. It is called when a webhook is created and when its URL changes.
	// If it is nil, every URL is allowed.
	CheckTarget func(ctx context.Context, url string) error
	// HostUser is the user of the operating system who runs a command, for audit events of
	// requests of Host. It may be empty.
	HostUser string
}

// Limits limits what clients may send and open.
type Limits struct {
	// MaxBody is the maximum size of an attestation, a registration or a preview, in
	// bytes (setting max_body). 0 means DefaultMaxBody.
	MaxBody int64
	// Requests is the maximum number of requests per second with a token, and for public logs
	// from an address (setting limits.requests). 0 means no limit.
	Requests int
	// FailedSignIns is the maximum number of requests per minute from an address whose token
	// is not accepted. 0 means no limit.
	FailedSignIns int
	// Streams is the maximum number of open live streams of all orgs. 0 means no limit.
	Streams int
	// StreamsPerOrg and StreamsPerToken are the maximum numbers of open live streams. 0 means
	// DefaultStreamsPerOrg or DefaultStreamsPerToken.
	StreamsPerOrg, StreamsPerToken int
}

// Logs is what the API shows of the transparency logs. Each field may be nil.
type Logs struct {
	// Signing returns why logs are not signed, by org.
	Signing func() map[string]string
	// Witnesses returns how far each witness has cosigned the log with an origin.
	Witnesses func(origin string) []ledger.LogWitness
	// Receipts signs receipts.
	Receipts *transparency.Receipts
}

// withDefaults returns the configuration with the defaults of its fields. Receipts and Authority
// have none: they may be nil in a Server too.
func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = func() time.Time { return c.Store.Now().Std() }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	if c.Issuers == nil {
		c.Issuers = oidc.New(oidc.Config{})
	}
	if c.CheckIssuer == nil {
		c.CheckIssuer = func(context.Context, string) error { return nil }
	}
	if c.CheckTarget == nil {
		c.CheckTarget = func(context.Context, string) error { return nil }
	}
	c.Limits, c.Logs = c.Limits.withDefaults(), c.Logs.withDefaults()
	return c
}

func (l Limits) withDefaults() Limits {
	l.MaxBody = cmp.Or(l.MaxBody, DefaultMaxBody)
	l.Streams = cmp.Or(l.Streams, math.MaxInt)
	l.StreamsPerOrg = cmp.Or(l.StreamsPerOrg, DefaultStreamsPerOrg)
	l.StreamsPerToken = cmp.Or(l.StreamsPerToken, DefaultStreamsPerToken)
	return l
}

func (l Logs) withDefaults() Logs {
	if l.Signing == nil {
		l.Signing = func() map[string]string { return nil }
	}
	if l.Witnesses == nil {
		l.Witnesses = func(string) []ledger.LogWitness { return nil }
	}
	return l
}
