// Package oidc verifies the tokens of OpenID Connect issuers with their keys, which it reads from
// the issuers and caches.
package oidc

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ledgerd/ledgerd/internal/boundedhttp"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

const (
	// interval is the shortest time between two reads of an issuer's keys.
	interval = time.Minute
	// keysAge is the age from which keys are read again before they are used.
	keysAge = 15 * time.Minute
	// maxKeysAge is the age up to which keys are used if they cannot be read again.
	maxKeysAge = time.Hour

	maxIssuers = 1000 // whose keys are cached
)

// Config configures Issuers.
type Config struct {
	// Control is called with each address before it is dialled, as that of a [net.Dialer]. It may be
	// nil.
	Control func(network, address string, c syscall.RawConn) error
	// RootCAs verify the certificates of issuers. If nil, they are those of the system.
	RootCAs   *x509.CertPool
	UserAgent string
	// Logger receives why keys cannot be read. It may be nil.
	Logger *slog.Logger
	// Now is the clock by which keys age; nil: [time.Now].
	Now func() time.Time
}

// Issuers verify tokens. The methods are safe for concurrent use.
type Issuers struct {
	http *http.Client
	log  *slog.Logger
	now  func() time.Time

	mu    sync.Mutex
	byURL map[string]*keySet
}

// A keySet has the keys of an issuer. Issuers.mu guards it.
type keySet struct {
	keys    *exchange.Keys // nil: never read
	err     error          // of the last read
	keysAt  time.Time      // when keys were read
	triedAt time.Time      // when the last read began
	reading chan struct{}  // closed when that read ends; nil: it has ended
}

// New returns Issuers that have no keys yet.
func New(c Config) *Issuers {
	// Connections are not used again, since there are two requests in a minute.
	client := boundedhttp.NewClient(boundedhttp.Config{MaxAnswer: exchange.MaxKeySet, Control: c.Control,
		RootCAs: c.RootCAs, UserAgent: c.UserAgent})
	v := &Issuers{http: client, log: c.Logger, now: c.Now, byURL: make(map[string]*keySet)}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	if v.now == nil {
		v.now = time.Now
	}
	return v
}

// Verify verifies the signature of a token that says it is from an issuer, and returns its claims.
// The caller has looked up the issuer by the token. If the keys of the issuer cannot be read, the
// error has CodeIssuerUnavailable.
func (v *Issuers) Verify(ctx context.Context, issuer exchange.Issuer, t exchange.Token) (exchange.Claims, error) {
	if t.Claimed.Issuer != issuer.URL {
		return exchange.Claims{}, ledger.Errorf(ledger.CodeInvalidToken, "the token is of another issuer than %s",
			issuer.URL)
	}
	keys, err := v.keys(ctx, issuer, t)
	if err != nil {
		return exchange.Claims{}, err
	}
	return t.Verify(keys)
}

// keys returns the keys of an issuer, with which a token may be signed.
func (v *Issuers) keys(ctx context.Context, issuer exchange.Issuer, t exchange.Token) (*exchange.Keys, error) {
	if issuer.JWKS != "" {
		keys, err := exchange.ParseKeys([]byte(issuer.JWKS))
		if err != nil {
			return nil, fmt.Errorf("parse the keys of %s: %w", issuer.URL, err)
		}
		return keys, nil
	}

	set, reading, isMine := v.reserve(issuer.URL, t)
	if isMine {
		v.read(ctx, set, issuer.URL)
	} else if reading != nil {
		select {
		case <-reading:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return v.result(set, issuer.URL)
}

// reserve returns the keys of an issuer. If isMine, the caller must read them; if others are
// doing so, reading is closed when they have done it.
func (v *Issuers) reserve(url string, t exchange.Token) (set *keySet, reading <-chan struct{}, isMine bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	set = v.set(url)
	now := v.now()
	isFresh := set.keys != nil && now.Sub(set.keysAt) < keysAge && t.KnownTo(set.keys)
	isEarly := !set.triedAt.IsZero() && now.Sub(set.triedAt) < interval

	switch {
	case isFresh:
		return set, nil, false
	case set.reading != nil:
		return set, set.reading, false
	case isEarly:
		return set, nil, false
	}
	set.triedAt, set.reading = now, make(chan struct{})
	return set, nil, true
}

// read reads the keys of an issuer. It does not end with the request of the caller, since others
// wait for the keys, too.
func (v *Issuers) read(ctx context.Context, set *keySet, url string) {
	var keys *exchange.Keys
	err := errors.New("reading the keys was interrupted")
	defer func() { // also if it panics
		v.mu.Lock()
		defer v.mu.Unlock()
		if set.err = err; err == nil {
			set.keys, set.keysAt = keys, set.triedAt
		}
		close(set.reading)
		set.reading = nil
	}()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), boundedhttp.Timeout)
	defer cancel()
	if keys, err = v.fetch(ctx, url); err != nil {
		v.log.WarnContext(ctx, "the keys of an OIDC issuer cannot be read", "issuer", url, "error", err)
	}
}

// set returns the keys of an issuer. If there are too many, it evicts those whose last read is
// the longest ago. The caller holds mu.
func (v *Issuers) set(url string) *keySet {
	if set, ok := v.byURL[url]; ok {
		return set
	}
	if len(v.byURL) >= maxIssuers {
		var oldest string
		for u, set := range v.byURL {
			if set.reading == nil && (oldest == "" || set.triedAt.Before(v.byURL[oldest].triedAt)) {
				oldest = u
			}
		}
		delete(v.byURL, oldest)
	}
	set := &keySet{}
	v.byURL[url] = set
	return set
}

// result returns the keys that were read last, unless they are too old.
func (v *Issuers) result(set *keySet, url string) (*exchange.Keys, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if set.keys != nil && v.now().Sub(set.keysAt) < maxKeysAge {
		return set.keys, nil
	}
	reason := "they are being read"
	if set.err != nil {
		reason = reasonOf(set.err)
	}
	return nil, ledger.Errorf(ledger.CodeIssuerUnavailable, "the keys of the issuer %s cannot be read: %s", url, reason)
}

// A badAnswer is an error about the answer of an issuer. Callers without access to the log see it.
type badAnswer string

func (e badAnswer) Error() string { return string(e) }

// reasonOf returns why keys cannot be read, without addresses: not every caller may learn those of
// internal names.
func reasonOf(err error) string {
	if bad, ok := errors.AsType[badAnswer](err); ok {
		return string(bad)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "it does not answer in time"
	}
	return "it cannot be reached (see the server log)"
}

// fetch reads the discovery document of an issuer, and the keys at its jwks_uri.
func (v *Issuers) fetch(ctx context.Context, issuer string) (*exchange.Keys, error) {
	document, err := v.get(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return nil, err
	}
	var discovered struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	switch err := ledger.DecodeOpen(document, &discovered); {
	case err != nil:
		return nil, badAnswer("its openid-configuration is not valid JSON")
	case discovered.Issuer != issuer:
		return nil, badAnswer(fmt.Sprintf("its openid-configuration is that of %.200q", discovered.Issuer))
	}

	u, err := url.Parse(discovered.JWKS)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, badAnswer("its openid-configuration has no jwks_uri with https")
	}
	set, err := v.get(ctx, discovered.JWKS)
	if err != nil {
		return nil, err
	}
	keys, err := exchange.ParseKeys(set)
	if err != nil {
		return nil, badAnswer(err.Error())
	}
	return keys, nil
}

// get returns the document at a URL.
func (v *Issuers) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := v.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		return nil, badAnswer(fmt.Sprintf("it answers with status %d", response.StatusCode))
	}
	body, err := io.ReadAll(response.Body)
	if large, ok := errors.AsType[boundedhttp.TooLargeError](err); ok {
		return nil, badAnswer(large.Error())
	}
	return body, err
}
