package idp_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/idp/idptest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
)

const callback = "https://ledger.example.com/login/callback"

// A site is a server with one provider, at which ann signs in.
type site struct {
	t        *testing.T
	idp      *idptest.Provider
	provider *idp.Provider
	config   idp.Config
	log      *testenv.Buffer
	time     atomic.Int64
}

func ann() map[string]any { return map[string]any{"sub": "ann"} }

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, idp: idptest.New(t), log: new(testenv.Buffer)}
	s.time.Store(time.Date(2030, 11, 30, 9, 0, 0, 0, time.UTC).UnixNano())
	s.idp.Now = s.now
	s.idp.SignInAs(idptest.Person{Claims: ann()})
	configs, err := idp.Read(strings.NewReader(s.idp.YAML("okta", "Okta")))
	must.OK(t, err)
	s.config = configs[0]
	s.provider = s.open("okta")
	return s
}

// open returns the provider under a name.
func (s *site) open(name string) *idp.Provider {
	config := s.config
	config.Name = name
	return idp.New([]idp.Config{config}, idp.Options{CallbackURL: callback, RootCAs: s.idp.Roots(), Now: s.now,
		Logger: slog.New(slog.NewTextHandler(s.log, nil))}).Find(name)
}

func (s *site) now() time.Time { return time.Unix(0, s.time.Load()) }

func (s *site) advance(d time.Duration) { s.time.Add(int64(d)) }

// visit signs in at the provider, and returns the parameters of its answer.
func (s *site) visit(location string) url.Values {
	s.t.Helper()
	client := &http.Client{
		Transport:     s.idp.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Get(location)
	must.OK(s.t, err)
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		body, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("the provider answers %s %s", resp.Status, body)
	}
	if !strings.HasPrefix(back.String(), callback+"/okta?") {
		s.t.Fatalf("the provider answers to %s", back)
	}
	return back.Query()
}

// begin begins a sign-in, and returns the answer of the provider.
func (s *site) begin(r idp.Request) (idp.Flow, url.Values) {
	s.t.Helper()
	flow, location, err := s.provider.Begin(s.t.Context(), r)
	must.OK(s.t, err)
	parsed, err := idp.ParseFlow(flow.Encode())
	must.OK(s.t, err)
	return parsed, s.visit(location)
}

// signIn signs in.
func (s *site) signIn(r idp.Request) (member.Account, error) {
	s.t.Helper()
	flow, answer := s.begin(r)
	return s.provider.Finish(s.t.Context(), flow, answer)
}

// wantRefused checks that a sign-in fails as one that counts, and that its error and the log say why.
func (s *site) wantRefused(what string, err error, want string) {
	s.t.Helper()
	s.wantCode(what, err, ledger.CodeUnauthenticated, want)
}

func (s *site) wantCode(what string, err error, code ledger.Code, want string) {
	s.t.Helper()
	e, _ := errors.AsType[*ledger.Error](err)
	if e == nil || e.Code != code || !strings.Contains(e.Detail+s.log.String(), want) {
		s.t.Errorf("%s: got %v, want the code %s and %q; the log: %s", what, err, code, want, s.log)
	}
	if text := fmt.Sprint(err) + s.log.String(); strings.Contains(text, idptest.ClientSecret) {
		s.t.Errorf("%s: the secret is in the error or the log: %s", what, text)
	}
}

// tryToSignIn is signIn with a provider that may fail.
func (s *site) tryToSignIn() (member.Account, error) {
	s.t.Helper()
	flow, location, err := s.provider.Begin(s.t.Context(), idp.Request{})
	if err != nil {
		return member.Account{}, err
	}
	return s.provider.Finish(s.t.Context(), flow, s.visit(location))
}
