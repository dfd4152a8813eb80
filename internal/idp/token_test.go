package idp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/idp/idptest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
)

// An e-mail address counts only if the provider says that it has verified it.
func TestUnverifiedEmail(t *testing.T) {
	s := newSite(t)
	for name, verified := range map[string]any{"absent": nil, "false": false, "a text": "true", "a number": 1} {
		claims := map[string]any{"sub": "ann", "email": "root@example.com"}
		if verified != nil {
			claims["email_verified"] = verified
		}
		s.idp.SignInAs(idptest.Person{Claims: claims})
		got, err := s.signIn(idp.Request{})
		must.OK(t, err)
		if _, ok := got.Claims["email"]; ok || got.Email != "" {
			t.Errorf("email_verified is %s: got the address %q and the claim %q", name, got.Email, got.Claims["email"])
		}
	}
}

// The claims of an ID token say that it is for this server, this sign-in and this time.
func TestTokenClaims(t *testing.T) {
	s := newSite(t)
	now := s.now().Unix()
	for name, test := range map[string]struct {
		claims map[string]any
		want   string // empty: it counts
	}{
		"as they are":              {nil, ""},
		"a list with the client":   {map[string]any{"aud": []string{"ledgerd"}}, ""},
		"azp":                      {map[string]any{"azp": "ledgerd"}, ""},
		"several clients and azp":  {map[string]any{"aud": []string{"api", "ledgerd"}, "azp": "ledgerd"}, ""},
		"several clients":          {map[string]any{"aud": []string{"api", "ledgerd"}}, "azp does not say"},
		"another azp":              {map[string]any{"azp": "api"}, "its azp is"},
		"an empty azp":             {map[string]any{"azp": ""}, "its azp is"},
		"another client":           {map[string]any{"aud": "api"}, "expected audience"},
		"no client":                {map[string]any{"aud": nil}, "expected audience"},
		"an audience as an object": {map[string]any{"aud": map[string]any{"a": "ledgerd"}}, "unmarshal claims"},
		"another issuer":           {map[string]any{"iss": "https://evil.example"}, "different provider"},
		"no issuer":                {map[string]any{"iss": nil}, "different provider"},
		"no subject":               {map[string]any{"sub": nil}, "its subject"},
		"a long subject":           {map[string]any{"sub": strings.Repeat("x", 256)}, "its subject"},
		"a subject with a line":    {map[string]any{"sub": "a\nb"}, "its subject"},
		"expired":                  {map[string]any{"exp": now - 1}, "expired"},
		"expires now":              {map[string]any{"exp": now}, "expired"},
		"no exp":                   {map[string]any{"exp": nil}, "expired"},
		"exp as a text":            {map[string]any{"exp": "4000000000"}, "claims"},
		"nbf":                      {map[string]any{"nbf": now + 60}, ""},
		"not yet valid":            {map[string]any{"nbf": now + 61}, "not valid before"},
		"iat ahead":                {map[string]any{"iat": now + 60}, ""},
		"issued in the future":     {map[string]any{"iat": now + 61}, "in the future"},
		"issued long ago":          {map[string]any{"iat": now - 661}, "before the sign-in"},
		"no iat":                   {map[string]any{"iat": nil}, "lacks exp or iat"},
		"no nonce":                 {map[string]any{"nonce": nil}, "nonce"},
		"another nonce":            {map[string]any{"nonce": strings.Repeat("x", 43)}, "nonce"},
		"another case":             {map[string]any{"sub": nil, "SUB": "root"}, "its subject"},
		"no auth_time":             {map[string]any{"auth_time": nil}, ""},
		"auth_time ahead":          {map[string]any{"auth_time": now + 61}, "auth_time is in the future"},
		"groups as an object":      {map[string]any{"groups": map[string]any{"a": 1}}, ""},
		"many groups":              {map[string]any{"groups": make([]string, 2001)}, "more than 2000 texts"},
		"many claims":              {many(201), "more than 200 claims"},
		"a large token":            {map[string]any{"x": strings.Repeat("x", 64<<10)}, "ID token of"},
	} {
		s.idp.TokenClaims = test.claims
		_, err := s.signIn(idp.Request{})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v; the log: %s", name, err, s.log)
		case test.want == "":
		case name == "a large token":
			s.wantCode(name, err, ledger.CodeIssuerUnavailable, test.want)
		default:
			s.wantRefused(name, err, test.want)
		}
		s.log.Reset()
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

func many(n int) map[string]any {
	claims := make(map[string]any)
	for i := range n {
		claims[fmt.Sprint("claim", i)] = i
	}
	return claims
}

// With max_age, the token must say when the person was last authenticated, and not too long ago.
func TestMaxAge(t *testing.T) {
	s := newSite(t)
	now := s.now()
	for name, test := range map[string]struct {
		maxAge   int
		authTime any
		want     string
	}{
		"just now":          {0, now.Unix(), ""},
		"clocks differ":     {0, now.Add(-time.Minute).Unix(), ""},
		"not again":         {0, now.Add(-61 * time.Second).Unix(), "although max_age was 0 s"},
		"within max_age":    {900, now.Add(-16 * time.Minute).Unix(), ""},
		"before max_age":    {900, now.Add(-16*time.Minute - time.Second).Unix(), "although max_age was 900 s"},
		"never":             {900, nil, "lacks auth_time"},
		"at the beginning":  {900, 0, "although max_age"},
		"before the epoch":  {900, -1e18, "although max_age"},
		"at the end of all": {900, 1e300, "in the future"},
	} {
		s.idp.TokenClaims = map[string]any{"auth_time": test.authTime}
		account, err := s.signIn(idp.Request{MaxAge: &test.maxAge})
		if test.want != "" {
			s.wantRefused(name, err, test.want)
		} else if err != nil || account.AuthTime == 0 || account.AuthTime > ledger.TimeOf(now) {
			t.Errorf("%s: got %+v, %v", name, account, err)
		}
		asked := s.idp.Asked()
		if asked.Get("max_age") != fmt.Sprint(test.maxAge) || (asked.Get("prompt") == "login") != (test.maxAge == 0) {
			t.Errorf("%s: the provider is asked with %v", name, asked)
		}
	}
}

// The signature of an ID token is that of a key of the provider, with an asymmetric algorithm.
func TestSignatures(t *testing.T) {
	s := newSite(t)
	payload := func(claims map[string]any) string { return marshal(t, claims) }
	twice := func(claims map[string]any) string {
		return s.idp.Raw(strings.TrimSuffix(payload(claims), "}") + `,"sub":"root"}`)
	}
	for name, test := range map[string]struct {
		sign func(claims map[string]any) string
		want string
	}{
		"with the key": {s.idp.Token, ""},
		"with the algorithm none": {func(claims map[string]any) string {
			return oidctest.Encode(`{"alg":"none"}`) + "." + oidctest.Encode(payload(claims)) + "."
		}, "malformed jwt"},
		"without an algorithm": {func(claims map[string]any) string {
			return oidctest.Encode(`{}`) + "." + oidctest.Encode(payload(claims)) + "."
		}, "malformed jwt"},
		"by the client secret": {func(claims map[string]any) string {
			return oidctest.Confused(t, idptest.ClientSecret, claims)
		}, "malformed jwt"},
		"by the public key as a secret": {func(claims map[string]any) string {
			return oidctest.Confused(t, s.idp.JWKS(), claims)
		}, "malformed jwt"},
		"by another key": {func(claims map[string]any) string {
			return oidctest.Sign(t, jose.ES256, oidctest.NewKey(t), "key-1", claims)
		}, "failed to verify"},
		"by another key with no ID": {func(claims map[string]any) string {
			return oidctest.Sign(t, jose.ES256, oidctest.NewKey(t), "", claims)
		}, "failed to verify"},
		"a changed payload": {func(claims map[string]any) string {
			parts := strings.Split(s.idp.Token(claims), ".")
			changed := maps.Clone(claims)
			changed["sub"] = "root"
			return parts[0] + "." + oidctest.Encode(payload(changed)) + "." + parts[2]
		}, "failed to verify"},
		"a claim twice":     {twice, "duplicate"},
		"not a token":       {func(map[string]any) string { return "hello" }, "compact form"},
		"the form in JSON":  {func(map[string]any) string { return `{"payload":"a.b.c"}` }, "compact form"},
		"a list as payload": {func(map[string]any) string { return s.idp.Raw("[]") }, "claims"},
	} {
		s.idp.SignToken = test.sign
		_, err := s.signIn(idp.Request{})
		if test.want == "" {
			must.OK(t, err)
			continue
		}
		s.wantRefused(name, err, test.want)
	}
}

// A key that the provider begins to use is read when a token needs it.
func TestKeyRotation(t *testing.T) {
	s := newSite(t)
	_, err := s.signIn(idp.Request{})
	must.OK(t, err)
	s.idp.Rotate()
	_, err = s.signIn(idp.Request{})
	must.OK(t, err)
}

// A provider's key of small order does not count: anybody could sign ID tokens with it.
func TestKeyOfSmallOrderDoesNotCount(t *testing.T) {
	s := newSite(t)
	neutral := append([]byte{1}, make([]byte, 31)...)
	s.idp.Replace(s.except("/jwks", text(`{"keys":[`+oidctest.KeyOf(t, oidctest.NewKey(t))+
		`,{"kty":"OKP","crv":"Ed25519","x":"`+oidctest.Encode(string(neutral))+`"}]}`)))
	s.idp.SignToken = func(claims map[string]any) string {
		payload := must.Get(json.Marshal(claims))(t)
		forged := append(neutral, make([]byte, 32)...) // of every message
		return oidctest.Encode(`{"alg":"EdDSA"}`) + "." + oidctest.Encode(string(payload)) + "." +
			oidctest.Encode(string(forged))
	}
	_, err := s.signIn(idp.Request{})
	s.wantRefused("a forged token", err, "no key of the issuer has signed it")
}
