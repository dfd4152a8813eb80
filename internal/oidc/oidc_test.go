package oidc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

// A clock is a clock that only tests advance.
type clock struct{ now atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Unix(0, c.now.Load()) }
func (c *clock) advance(d time.Duration) { c.now.Add(int64(d)) }

// newIssuers returns Issuers for a provider.
func newIssuers(p *oidctest.Provider) (*oidc.Issuers, *clock) {
	c := &clock{}
	c.now.Store(time.Now().UnixNano())
	return oidc.New(oidc.Config{RootCAs: p.Roots(), Now: c.Now}), c
}

// verify verifies a token of a provider.
func verify(v *oidc.Issuers, p *oidctest.Provider, raw string) error {
	token, err := exchange.Parse(raw)
	if err != nil {
		return err
	}
	_, err = v.Verify(context.Background(), exchange.Issuer{URL: p.URL}, token)
	return err
}

func valid(p *oidctest.Provider) string { return p.Token(p.GitHub("x", time.Now())) }

// A new key is read when a token needs it, and the former one does not count any more.
func TestKeyRotation(t *testing.T) {
	p := oidctest.New(t)
	v, clock := newIssuers(p)
	former := valid(p)
	wantCode(t, "with the first key", verify(v, p, former), "")

	p.Rotate()
	wantCode(t, "with a new key, within a minute", verify(v, p, valid(p)), ledger.CodeInvalidToken)
	clock.advance(time.Minute)
	wantCode(t, "with a new key, after a minute", verify(v, p, valid(p)), "")
	wantCode(t, "with the former key", verify(v, p, former), ledger.CodeInvalidToken)
	wantReads(t, p, 2)
}

// Keys that were withdrawn end after a quarter of an hour, although no token needs a new one.
func TestKeysAge(t *testing.T) {
	p := oidctest.New(t)
	v, clock := newIssuers(p)
	former := valid(p)
	wantCode(t, "at first", verify(v, p, former), "")
	p.Rotate()
	clock.advance(15*time.Minute - 1)
	wantCode(t, "before a quarter of an hour", verify(v, p, former), "")
	clock.advance(1)
	wantCode(t, "after a quarter of an hour", verify(v, p, former), ledger.CodeInvalidToken)
	wantReads(t, p, 2)
}

// Without an answer, the keys are used for an hour.
func TestKeysOfAnIssuerThatIsDown(t *testing.T) {
	p := oidctest.New(t)
	v, clock := newIssuers(p)
	wantCode(t, "at first", verify(v, p, valid(p)), "")
	p.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	clock.advance(time.Hour - 1)
	wantCode(t, "before an hour", verify(v, p, valid(p)), "")
	clock.advance(1)
	wantCode(t, "after an hour", verify(v, p, valid(p)), ledger.CodeIssuerUnavailable)
	p.Answer(nil)
	clock.advance(time.Minute)
	wantCode(t, "when it is up", verify(v, p, valid(p)), "")
}

// Many tokens with unknown keys cause one read of the keys a minute.
func TestKeysAreReadOnceAMinute(t *testing.T) {
	p := oidctest.New(t)
	v, clock := newIssuers(p)
	for minute := range 3 {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_ = verify(v, p, p.TokenWithID(fmt.Sprintf("key-%d-%d", minute, i), p.GitHub("x", time.Now())))
			})
		}
		all.Wait()
		wantReads(t, p, minute+1)
		clock.advance(time.Minute - 1)
		_ = verify(v, p, p.TokenWithID("unknown", p.GitHub("x", time.Now())))
		wantReads(t, p, minute+1)
		clock.advance(1)
	}
}

// An issuer that fails is asked once a minute, too.
func TestAnIssuerThatFails(t *testing.T) {
	large := strings.Repeat(" ", 1<<20)
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string // in the error
	}{
		"an error": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "status 404"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/", http.StatusFound)
		}, "status 302"},
		"garbage":       {text("<html>"), "not valid JSON"},
		"nothing":       {text(""), "not valid JSON"},
		"another name":  {text(`{"issuer": "https://gitlab.com", "jwks_uri": "https://gitlab.com/jwks"}`), "that of"},
		"no end":        {endless(large), "more than 65536 bytes"},
		"a broken line": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "cannot be reached"},
	} {
		p := oidctest.New(t)
		v, clock := newIssuers(p)
		p.Answer(test.answer)
		for range 3 {
			wantUnavailable(t, name, verify(v, p, valid(p)), test.want)
		}
		wantReads(t, p, 1)

		p.Answer(nil)
		wantUnavailable(t, name, verify(v, p, valid(p)), test.want)
		clock.advance(time.Minute)
		wantCode(t, name+", later", verify(v, p, valid(p)), "")
	}
}

// Bad key sets are refused, and so are addresses of key sets without HTTPS.
func TestBadKeySets(t *testing.T) {
	for name, test := range map[string]struct {
		uri  string // empty: where it is
		set  http.HandlerFunc
		want string
	}{
		"plain http":   {"http://127.0.0.1/jwks", nil, "no jwks_uri with https"},
		"a file":       {"file:///etc/passwd", nil, "no jwks_uri with https"},
		"a user":       {"https://user@127.0.0.1/jwks", nil, "no jwks_uri with https"},
		"no host":      {"https:///jwks", nil, "no jwks_uri with https"},
		"garbage":      {"", text("<html>"), "not a JSON Web Key Set"},
		"no keys":      {"", text(`{"keys": []}`), "no RSA key"},
		"gigabytes":    {"", endless(" "), "more than 65536 bytes"},
		"private keys": {"", text(`{"keys": [` + oidctest.PrivateKeyOf(t, oidctest.NewKey(t)) + `]}`), "not a public key"},
	} {
		p := oidctest.New(t)
		v, _ := newIssuers(p)
		p.Answer(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/jwks":
				test.set(w, r)
			case test.uri != "":
				fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, p.URL, test.uri)
			default:
				p.ServeHTTP(w, r)
			}
		})
		wantUnavailable(t, name, verify(v, p, valid(p)), test.want)
	}
}

// Others do not wait for an issuer that hangs: neither the tokens of other issuers, nor those for
// which its keys are known. A caller stops waiting when its request ends.
func TestAnIssuerThatHangs(t *testing.T) {
	p, other := oidctest.New(t), oidctest.New(t)
	roots := p.Roots()
	roots.AddCert(other.Certificate())
	clock := &clock{}
	clock.now.Store(time.Now().UnixNano())
	v := oidc.New(oidc.Config{RootCAs: roots, Now: clock.Now})
	wantCode(t, "before", verify(v, p, valid(p)), "")

	reached, release := make(chan struct{}), make(chan struct{})
	p.Answer(func(http.ResponseWriter, *http.Request) {
		close(reached)
		<-release
	})
	clock.advance(time.Minute)
	var first sync.WaitGroup
	first.Go(func() {
		wantCode(t, "that waits", verify(v, p, p.TokenWithID("new", p.GitHub("x", time.Now()))), ledger.CodeInvalidToken)
	})
	<-reached

	wantCode(t, "of another issuer", verify(v, other, valid(other)), "")
	wantCode(t, "with a known key", verify(v, p, valid(p)), "")
	token := must.Get(exchange.Parse(p.TokenWithID("new", p.GitHub("x", time.Now()))))(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.Verify(ctx, exchange.Issuer{URL: p.URL}, token); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the request was cancelled", err)
	}
	close(release)
	first.Wait()
}

// The keys of an issuer are read although the request that needs them first is cancelled.
func TestReadingOutlivesARequest(t *testing.T) {
	p := oidctest.New(t)
	v, _ := newIssuers(p)
	token := must.Get(exchange.Parse(valid(p)))(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.Verify(ctx, exchange.Issuer{URL: p.URL}, token); err != nil {
		t.Error(err)
	}
}

// An issuer whose keys were pasted is not asked.
func TestPastedKeys(t *testing.T) {
	p := oidctest.New(t)
	v, _ := newIssuers(p)
	issuer := exchange.Issuer{URL: p.URL, JWKS: p.JWKS()}
	token, err := exchange.Parse(valid(p))
	must.OK(t, err)
	_, err = v.Verify(context.Background(), issuer, token)
	must.OK(t, err)

	p.Rotate()
	token = must.Get(exchange.Parse(valid(p)))(t)
	_, err = v.Verify(context.Background(), issuer, token)
	wantCode(t, "with another key", err, ledger.CodeInvalidToken)
	wantReads(t, p, 0)
}

// Keys that one org has pasted are for that org, also if others have the issuer, with their own keys
// or with those that it publishes.
func TestPastedKeysAreOfOneOrg(t *testing.T) {
	p, attacker := oidctest.New(t), oidctest.New(t)
	v, _ := newIssuers(p)
	published := exchange.Issuer{URL: p.URL}
	own := exchange.Issuer{URL: p.URL, JWKS: p.JWKS()}
	pasted := exchange.Issuer{URL: p.URL, JWKS: attacker.JWKS()}
	claims := attacker.GitHub("x", time.Now())
	claims["iss"] = p.URL
	forged := must.Get(exchange.Parse(attacker.Token(claims)))(t)
	genuine := must.Get(exchange.Parse(valid(p)))(t)

	for range 2 { // the second time, keys are cached
		for _, test := range []struct {
			name   string
			issuer exchange.Issuer
			token  exchange.Token
			want   ledger.Code
		}{
			{"forged, for the org that pasted the key", pasted, forged, ""},
			{"forged, for an org with published keys", published, forged, ledger.CodeInvalidToken},
			{"forged, for an org with other pasted keys", own, forged, ledger.CodeInvalidToken},
			{"genuine, for an org with published keys", published, genuine, ""},
			{"genuine, for an org with other pasted keys", pasted, genuine, ledger.CodeInvalidToken},
		} {
			_, err := v.Verify(context.Background(), test.issuer, test.token)
			wantCode(t, test.name, err, test.want)
		}
	}
}

// A token is verified with the keys of its own issuer only.
func TestKeysOfAnotherIssuer(t *testing.T) {
	p, q := oidctest.New(t), oidctest.New(t)
	v, _ := newIssuers(p)
	claims := q.GitHub("x", time.Now())
	wantCode(t, "of another issuer", verify(v, p, q.Token(claims)), ledger.CodeInvalidToken)
	claims["iss"] = p.URL
	wantCode(t, "that says it is of this one", verify(v, p, q.Token(claims)), ledger.CodeInvalidToken)
}

// The dial guard sees every address, and its reason is not disclosed.
func TestDialGuard(t *testing.T) {
	p := oidctest.New(t)
	var dialled atomic.Int64
	v := oidc.New(oidc.Config{RootCAs: p.Roots(), Control: func(_, address string, _ syscall.RawConn) error {
		dialled.Add(1)
		return errors.New(address + " is not a public address")
	}})
	err := verify(v, p, valid(p))
	wantUnavailable(t, "a private address", err, "cannot be reached")
	if dialled.Load() == 0 || strings.Contains(err.Error(), "public address") {
		t.Errorf("%d addresses were checked, and the error is %v", dialled.Load(), err)
	}
}

// Keys of many issuers take no more memory than those of a thousand.
func TestManyIssuers(t *testing.T) {
	p := oidctest.New(t)
	v := oidc.New(oidc.Config{Control: func(string, string, syscall.RawConn) error { return errors.New("refused") }})
	for i := range oidc.MaxCached + 10 {
		claims := p.GitHub("x", time.Now())
		url := fmt.Sprintf("https://127.0.0.1/%d", i)
		claims["iss"] = url
		token, err := exchange.Parse(p.Token(claims))
		must.OK(t, err)
		_, err = v.Verify(context.Background(), exchange.Issuer{URL: url}, token)
		wantUnavailable(t, url, err, "cannot be reached")
	}
	if n := v.Cached(); n != oidc.MaxCached {
		t.Errorf("%d issuers are cached, want %d", n, oidc.MaxCached)
	}
}

func text(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }
}

// endless returns a handler that writes a text again and again, until the connection is closed.
func endless(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := fmt.Fprint(w, text); err != nil {
				return
			}
		}
	}
}

func wantCode(t *testing.T, name string, err error, want ledger.Code) {
	t.Helper()
	e, _ := errors.AsType[*ledger.Error](err)
	if want == "" && err != nil || want != "" && (e == nil || e.Code != want) {
		t.Errorf("a token %s: got %v, want the code %q", name, err, want)
	}
}

func wantUnavailable(t *testing.T, name string, err error, want string) {
	t.Helper()
	wantCode(t, name, err, ledger.CodeIssuerUnavailable)
	if err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want an error with %q", name, err, want)
	}
}

func wantReads(t *testing.T, p *oidctest.Provider, want int) {
	t.Helper()
	if got := p.Reads(); got != want {
		t.Errorf("the keys were read %d times, want %d", got, want)
	}
}
