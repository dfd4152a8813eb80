package idp_test

import (
	"bytes"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/idp/idptest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
)

func TestSignIn(t *testing.T) {
	s := newSite(t)
	s.idp.SignInAs(idptest.Person{AuthTime: s.now().Add(-time.Hour), Claims: map[string]any{
		"sub": "00u1", "name": "Ann Smith", "email": "ann@example.com", "email_verified": true,
		"groups": []string{"dev", "ops"}, "admin": true, "number": 12345678901234567, "none": nil, "empty": []string{},
		"mixed": []any{"a", 1}, "object": map[string]any{"a": "b"}, "long": strings.Repeat("x", 1025),
	}})
	got, err := s.signIn(idp.Request{})
	must.OK(t, err)
	for _, name := range []string{"iss", "aud", "iat", "exp", "nonce", "auth_time"} {
		if len(got.Claims[name]) != 1 {
			t.Errorf("the claim %s has %q", name, got.Claims[name])
		}
		delete(got.Claims, name)
	}
	want := member.Account{Issuer: s.idp.URL, Subject: "00u1", Name: "Ann Smith", Email: "ann@example.com",
		AuthTime: ledger.TimeOf(s.now().Add(-time.Hour)), Claims: map[string][]string{
			"sub": {"00u1"}, "name": {"Ann Smith"}, "email": {"ann@example.com"}, "email_verified": {"true"},
			"groups": {"dev", "ops"}, "admin": {"true"}, "number": {"12345678901234567"}, "empty": {}, "long": {},
		}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	asked := s.idp.Asked()
	for name, want := range map[string]string{"response_type": "code", "response_mode": "query", "scope": "openid",
		"client_id": idptest.ClientID, "code_challenge_method": "S256", "redirect_uri": callback + "/okta", "max_age": "",
		"prompt": ""} {
		if asked.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, asked.Get(name), want)
		}
	}
}

// State, nonce and challenge have 256 bits each. They are new for each sign-in and differ from each
// other, and the cookie with the key does not contain them.
func TestFlowsDiffer(t *testing.T) {
	s := newSite(t)
	seen := make(map[string]bool)
	for range 3 {
		flow, answer := s.begin(idp.Request{})
		if answer.Get("state") != s.idp.Asked().Get("state") {
			t.Fatal("the provider does not answer with the state")
		}
		for _, name := range []string{"state", "nonce", "code_challenge"} {
			value := s.idp.Asked().Get(name)
			if len(value) != 43 || seen[value] || strings.Contains(flow.Encode(), value) {
				t.Errorf("the %s is %q", name, value)
			}
			seen[value] = true
		}
	}
}

// An answer counts only for the flow and the provider that it is for.
func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(url.Values)
		want   string // empty: it counts
	}{
		"as it is":            {func(url.Values) {}, ""},
		"another parameter":   {func(v url.Values) { v.Set("session_state", "x") }, ""},
		"no state":            {func(v url.Values) { v.Del("state") }, "another sign-in"},
		"an empty state":      {func(v url.Values) { v.Set("state", "") }, "another sign-in"},
		"a wrong state":       {func(v url.Values) { v.Set("state", v.Get("state")+"x") }, "another sign-in"},
		"two states":          {func(v url.Values) { v.Add("state", v.Get("state")) }, "another sign-in"},
		"no code":             {func(v url.Values) { v.Del("code") }, "no code"},
		"two codes":           {func(v url.Values) { v.Add("code", "x") }, "no code"},
		"a long code":         {func(v url.Values) { v.Set("code", strings.Repeat("x", 4097)) }, "no code"},
		"an unknown code":     {func(v url.Values) { v.Set("code", "x") }, "does not accept the code"},
		"another issuer":      {func(v url.Values) { v.Set("iss", "https://evil.example") }, "the answer is not from Okta"},
		"an issuer with /":    {func(v url.Values) { v.Set("iss", v.Get("iss")+"/") }, "the answer is not from Okta"},
		"two issuers":         {func(v url.Values) { v.Add("iss", "https://evil.example") }, "the answer is not from Okta"},
		"no issuer":           {func(v url.Values) { v.Del("iss") }, "does not name Okta as its issuer"},
		"declined":            {func(v url.Values) { v.Del("code"); v.Set("error", "access_denied") }, "access_denied"},
		"an error and a code": {func(v url.Values) { v.Set("error", "login_required") }, "(login_required)"},
		"an error as a text":  {func(v url.Values) { v.Set("error", "Call 555-1234") }, "(unknown error)"},
		"another issuer's error": {func(v url.Values) {
			v.Set("error", "access_denied")
			v.Set("iss", "https://evil.example")
		}, "the answer is not from Okta"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			flow, answer := s.begin(idp.Request{})
			test.change(answer)
			_, err := s.provider.Finish(t.Context(), flow, answer)
			if test.want == "" {
				must.OK(t, err)
				return
			}
			s.wantRefused(name, err, test.want)
		})
	}
}

// A provider that does not know RFC 9207 does not name itself, but no other issuer counts.
func TestProviderWithoutIssuerInAnswers(t *testing.T) {
	s := newSite(t)
	s.idp.Metadata = map[string]any{"authorization_response_iss_parameter_supported": nil}
	s.idp.ChangeAnswer = func(v url.Values) { v.Del("iss") }
	_, err := s.signIn(idp.Request{})
	must.OK(t, err)
	s.idp.ChangeAnswer = func(v url.Values) { v.Set("iss", "https://evil.example") }
	_, err = s.signIn(idp.Request{})
	s.wantRefused("another issuer", err, "the answer is not from Okta")
}

// A flow counts for ten minutes, and only as it was begun.
func TestFlows(t *testing.T) {
	s := newSite(t)
	flow, answer := s.begin(idp.Request{Next: "/orgs/acme", Org: "acme"})
	for name, change := range map[string]func(*idp.Flow){
		"next":    func(f *idp.Flow) { f.Next = "/orgs/evil" },
		"org":     func(f *idp.Flow) { f.Org = "evil" },
		"max_age": func(f *idp.Flow) { f.MaxAge = new(900) },
		"begun":   func(f *idp.Flow) { f.Begun++ },
		"key":     func(f *idp.Flow) { f.Key = bytes.Clone(f.Key); f.Key[0]++ },
	} {
		changed := flow
		change(&changed)
		_, err := s.provider.Finish(t.Context(), changed, answer)
		s.wantRefused("a flow with another "+name, err, "another sign-in")
	}
	_, err := s.open("keycloak").Finish(t.Context(), flow, answer)
	s.wantRefused("another provider of the same issuer", err, "began with another provider")

	s.advance(10*time.Minute - time.Millisecond)
	s.idp.TokenClaims = map[string]any{"iat": s.now().Unix()}
	_, err = s.provider.Finish(t.Context(), flow, answer)
	must.OK(t, err)
	_, err = s.provider.Finish(t.Context(), flow, answer)
	s.wantRefused("a code that was used", err, "does not accept the code")

	flow, answer = s.begin(idp.Request{})
	s.advance(10 * time.Minute)
	_, err = s.provider.Finish(t.Context(), flow, answer)
	s.wantRefused("after ten minutes", err, "more than 10 minutes ago")
}

func TestParseFlow(t *testing.T) {
	s := newSite(t)
	flow, _ := s.begin(idp.Request{Next: strings.Repeat("/<>", 1000), Org: "acme"})
	if text := flow.Encode(); len(text) > idp.MaxFlow || flow.Next != "" || flow.Org != "acme" {
		t.Errorf("a flow with a long path has %d bytes: %+v", len(text), flow)
	}
	for _, text := range []string{"", "x", "e30", flow.Encode() + "x", flow.Encode()[2:]} {
		_, err := idp.ParseFlow(text)
		if e, _ := errors.AsType[*ledger.Error](err); e == nil || e.Code != ledger.CodeUnauthenticated {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// If an attacker puts the code of another sign-in into their own, it is refused.
func TestCodeInjection(t *testing.T) {
	s := newSite(t)
	_, victim := s.begin(idp.Request{})
	flow, answer := s.begin(idp.Request{})
	answer.Set("code", victim.Get("code"))
	_, err := s.provider.Finish(t.Context(), flow, answer)
	s.wantRefused("PKCE", err, "does not accept the code")

	// At a provider that ignores PKCE, the nonce refuses it.
	s.idp.IgnorePKCE = true
	_, victim = s.begin(idp.Request{})
	flow, answer = s.begin(idp.Request{})
	answer.Set("code", victim.Get("code"))
	_, err = s.provider.Finish(t.Context(), flow, answer)
	s.wantRefused("the nonce", err, "its nonce is that of another sign-in")
}
