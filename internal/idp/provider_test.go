package idp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// A provider that fails is asked again later. Its failures do not count as failed sign-ins.
func TestProviderThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		path   string // that fails
		answer http.HandlerFunc
		want   string // in the log
	}{
		"down":            {discovery, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"an error":        {discovery, status(500), "500"},
		"a redirect":      {discovery, redirect, "302"},
		"garbage":         {discovery, text("<html>"), "failed to decode"},
		"another issuer":  {discovery, text(`{"issuer": "https://evil.example"}`), "did not match"},
		"no endpoint":     {discovery, nil, "authorization_endpoint"},
		"no end":          {discovery, endless, "more than 262144 bytes"},
		"token down":      {"/token", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"token error":     {"/token", status(503), "503"},
		"token redirect":  {"/token", redirect, "302"},
		"token garbage":   {"/token", text("<html>"), "cannot parse json"},
		"token no end":    {"/token", endless, "more than 262144 bytes"},
		"no ID token":     {"/token", text(`{"access_token": "a", "token_type": "Bearer"}`), "ID token of 0 bytes"},
		"wrong secret":    {"/token", oauthError("invalid_client"), "invalid_client"},
		"an unknown code": {"/token", oauthError("ldg_secret text"), "unknown error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			answer := test.answer
			if answer == nil {
				answer = text(fmt.Sprintf(`{"issuer": %q}`, s.idp.URL))
			}
			s.idp.Replace(s.except(test.path, answer))
			_, err := s.tryToSignIn()
			s.wantCode(name, err, ledger.CodeIssuerUnavailable, test.want)
			if strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("the error discloses the reason: %v", err)
			}

			s.idp.Replace(nil)
			s.advance(5 * time.Second)
			_, err = s.signIn(idp.Request{})
			must.OK(t, err)
		})
	}
}

const discovery = "/.well-known/openid-configuration"

// except returns a handler that answers as the provider, except for a path.
func (s *site) except(path string, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			answer(w, r)
			return
		}
		s.idp.ServeHTTP(w, r)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://evil.example/", http.StatusFound)
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

func oauthError(code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error": %q}`, code)
	}
}

func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for {
		if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
			return
		}
	}
}

// Sign-ins that begin while a provider is down share an attempt, so it gets no flood of requests.
func TestProviderIsAskedOnceInAWhile(t *testing.T) {
	s := newSite(t)
	var asked atomic.Int64
	s.idp.Replace(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, _, err := s.provider.Begin(context.Background(), idp.Request{})
			s.wantCode("down", err, ledger.CodeIssuerUnavailable, "502")
		})
	}
	all.Wait()
	if asked.Load() != 1 {
		t.Errorf("the provider was asked %d times", asked.Load())
	}
}

// If a provider hangs, a request ends with its browser, and does not end the attempt for others.
func TestProviderThatHangs(t *testing.T) {
	s := newSite(t)
	release, reached := make(chan struct{}), make(chan struct{})
	s.idp.Replace(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == discovery {
			close(reached)
			<-release
		}
		s.idp.ServeHTTP(w, r)
	})

	ctx, cancel := context.WithCancel(context.Background())
	var first sync.WaitGroup
	first.Go(func() {
		if _, _, err := s.provider.Begin(ctx, idp.Request{}); err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	<-reached
	cancel()
	if _, _, err := s.provider.Begin(ctx, idp.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("another: %v", err)
	}
	close(release)
	first.Wait()
}

// While a provider is slow, it gets no more than 16 requests at the same time.
func TestSignInsOfASlowProvider(t *testing.T) {
	s := newSite(t)
	var running atomic.Int64
	full, release := make(chan struct{}), make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	s.idp.Replace(s.except("/token", func(w http.ResponseWriter, r *http.Request) {
		n := running.Add(1)
		defer running.Add(-1)
		if n == 16 {
			fill()
		} else if n > 16 {
			t.Errorf("the provider gets %d requests at the same time", n)
		}
		<-release
		s.idp.ServeHTTP(w, r)
	}))

	var all sync.WaitGroup
	for range 20 {
		flow, answer := s.begin(idp.Request{})
		all.Go(func() {
			if _, err := s.provider.Finish(context.Background(), flow, answer); err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	flow, answer := s.begin(idp.Request{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.provider.Finish(ctx, flow, answer); !errors.Is(err, context.Canceled) {
		t.Errorf("the next: %v", err)
	}
	close(release)
	all.Wait()
}

// Metadata is read again after an hour. If that fails, the former metadata is used.
func TestMetadataAges(t *testing.T) {
	s := newSite(t)
	_, err := s.signIn(idp.Request{})
	must.OK(t, err)
	s.idp.Metadata = map[string]any{"authorization_endpoint": s.idp.URL + "/authorize?tenant=acme"}
	s.advance(time.Hour)
	s.idp.Replace(s.except(discovery, status(500)))
	_, err = s.signIn(idp.Request{})
	must.OK(t, err)
	s.idp.Replace(nil)
	s.advance(5 * time.Second)
	_, err = s.signIn(idp.Request{})
	must.OK(t, err)
	if s.idp.Asked().Get("tenant") != "acme" {
		t.Errorf("the former endpoint was used: %v", s.idp.Asked())
	}
}

// The endpoints of a provider with TLS have TLS.
func TestEndpointsWithoutTLS(t *testing.T) {
	for _, name := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri"} {
		for _, address := range []string{"http://127.0.0.1/x", "javascript:alert(1)", "/x", ""} {
			s := newSite(t)
			s.idp.Metadata = map[string]any{name: address}
			_, _, err := s.provider.Begin(t.Context(), idp.Request{})
			s.wantCode(name+" "+address, err, ledger.CodeIssuerUnavailable, name)
		}
	}
}

// The secret goes into the form for a provider that supports nothing else.
func TestSecretInForm(t *testing.T) {
	s := newSite(t)
	s.idp.Metadata = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}
	s.idp.Replace(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the secret is in a header")
		}
		s.idp.ServeHTTP(w, r)
	})
	_, err := s.signIn(idp.Request{})
	must.OK(t, err)
}
