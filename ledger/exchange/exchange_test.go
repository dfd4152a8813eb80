package exchange_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

const audience = "https://ledger.example.com/v1/orgs/acme"

// now is the time of the tests.
var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// claims are changes of the claims of a token.
type claims = map[string]any

func TestAudience(t *testing.T) {
	if got := exchange.Audience("https://ledger.example.com", "acme"); got != audience {
		t.Errorf("got %s, want %s", got, audience)
	}
}

// verified returns the claims of a token that a new issuer has signed.
func verified(t *testing.T, p *oidctest.Provider, c claims) exchange.Claims {
	t.Helper()
	verified, err := verify(t, p, c)
	must.OK(t, err)
	return verified
}

func verify(t *testing.T, p *oidctest.Provider, c claims) (exchange.Claims, error) {
	t.Helper()
	keys := must.Get(exchange.ParseKeys([]byte(p.JWKS())))(t)
	token, err := exchange.Parse(p.Token(c))
	if err != nil {
		return exchange.Claims{}, err
	}
	return token.Verify(keys)
}

// A token is for one audience, ours.
func TestAudiences(t *testing.T) {
	p := oidctest.New(t)
	for name, test := range map[string]struct {
		audience any
		want     ledger.Code
	}{
		"ours":             {audience, ""},
		"ours in a list":   {[]string{audience}, ""},
		"ours and another": {[]string{audience, "https://other.example"}, ledger.CodeWrongAudience},
		"ours twice":       {[]string{audience, audience}, ledger.CodeWrongAudience},
		"another":          {"https://ledger.example.com/v1/orgs/globex", ledger.CodeWrongAudience},
		"longer":           {audience + "/", ledger.CodeWrongAudience},
		"an empty list":    {[]string{}, ledger.CodeWrongAudience},
		"none":             {nil, ledger.CodeWrongAudience},
	} {
		c := verified(t, p, p.GitHub(audience, now, claims{"aud": test.audience}))
		wantCode(t, name, c.Check(audience, ledger.TimeOf(now)), test.want)
	}
}

// The times of a token are exact up to a minute.
func TestTimes(t *testing.T) {
	p := oidctest.New(t)
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		change claims
		want   ledger.Code
	}{
		"valid":                      {nil, ""},
		"expired for 59 s":           {claims{"exp": at(-59 * time.Second)}, ""},
		"expired for 60 s":           {claims{"exp": at(-60 * time.Second)}, ledger.CodeTokenExpired},
		"expired long ago":           {claims{"exp": at(-day)}, ledger.CodeTokenExpired},
		"valid in 60 s":              {claims{"nbf": at(60 * time.Second)}, ""},
		"valid in 61 s":              {claims{"nbf": at(61 * time.Second)}, ledger.CodeTokenNotYetValid},
		"issued in 60 s":             {claims{"iat": at(60 * time.Second)}, ""},
		"issued in 61 s":             {claims{"iat": at(61 * time.Second)}, ledger.CodeTokenNotYetValid},
		"issued a day ago":           {claims{"iat": at(-day - 59*time.Second)}, ""},
		"issued more than a day ago": {claims{"iat": at(-day - 60*time.Second)}, ledger.CodeTokenExpired},
		"without nbf":                {claims{"nbf": nil}, ""},
		"without exp":                {claims{"exp": nil}, ledger.CodeInvalidToken},
		"without iat":                {claims{"iat": nil}, ledger.CodeInvalidToken},
		"with a part of a second":    {claims{"iat": float64(at(0)) + 0.25}, ""},
	} {
		c := verified(t, p, p.GitHub(audience, now, test.change))
		wantCode(t, name, c.Check(audience, ledger.TimeOf(now)), test.want)
	}
}

// A use is stored until Check refuses the token for its age.
func TestEndOfAToken(t *testing.T) {
	p := oidctest.New(t)
	for _, expires := range []time.Duration{time.Minute, 1000 * time.Hour} {
		c := verified(t, p, p.GitHub(audience, now, claims{"exp": now.Add(expires).Unix()}))
		wantCode(t, "before its end", c.Check(audience, c.End()-1), "")
		wantCode(t, "at its end", c.Check(audience, c.End()), ledger.CodeTokenExpired)
	}
}

// A claim of the wrong type is refused.
func TestHostileClaims(t *testing.T) {
	p := oidctest.New(t)
	for name, change := range map[string]claims{
		"exp is a text":           {"exp": "1795694400"},
		"exp is not finite":       {"exp": 1e300},
		"exp is zero":             {"exp": 0},
		"exp is negative":         {"exp": -1},
		"aud has a number":        {"aud": []any{audience, 1}},
		"aud is an object":        {"aud": claims{"x": audience}},
		"repository_id is a list": {"repository_id": []string{"1234"}},
		"project_id is true":      {"project_id": true},
		"iss is a list":           {"iss": []string{p.URL}},
		"jti is a number":         {"jti": 7},
	} {
		_, err := verify(t, p, p.GitHub(audience, now, change))
		wantCode(t, name, err, ledger.CodeInvalidToken)
	}
}

// Only a signature with an issuer's key, by an asymmetric algorithm, is valid.
func TestSignatures(t *testing.T) {
	p := oidctest.New(t)
	keys := must.Get(exchange.ParseKeys([]byte(p.JWKS())))(t)
	valid := p.Token(p.GitHub(audience, now))
	parts := strings.Split(valid, ".")
	other := oidctest.NewKey(t)

	for name, test := range map[string]struct {
		token string
		want  ledger.Code
	}{
		"valid":                     {valid, ""},
		"empty":                     {"", ledger.CodeInvalidToken},
		"not a token":               {"ldg_123", ledger.CodeInvalidToken},
		"a header of text":          {oidctest.Encode(`x`) + "." + parts[1] + "." + parts[2], ledger.CodeInvalidToken},
		"without a signature":       {parts[0] + "." + parts[1] + ".", ledger.CodeInvalidToken},
		"alg none":                  {oidctest.Encode(`{"alg":"none"}`) + "." + parts[1] + ".", ledger.CodeInvalidToken},
		"alg None":                  {oidctest.Encode(`{"alg":"None"}`) + "." + parts[1] + ".", ledger.CodeInvalidToken},
		"alg missing":               {oidctest.Encode(`{}`) + "." + parts[1] + "." + parts[2], ledger.CodeInvalidToken},
		"HS256 with the public key": {oidctest.Confused(t, p.JWKS(), p.GitHub(audience, now)), ledger.CodeInvalidToken},
		"another key, its ID": {
			oidctest.Sign(t, jose.ES256, other, "key-1", p.GitHub(audience, now)), ledger.CodeInvalidToken,
		},
		"another key, no ID": {oidctest.Sign(t, jose.ES256, other, "", p.GitHub(audience, now)), ledger.CodeInvalidToken},
		"the key without ID": {p.TokenWithID("", p.GitHub(audience, now)), ""},
		"an unknown key ID":  {p.TokenWithID("key-2", p.GitHub(audience, now)), ledger.CodeInvalidToken},
		"a path as key ID":   {p.TokenWithID("../../etc/passwd", p.GitHub(audience, now)), ledger.CodeInvalidToken},
		"a query as key ID":  {p.TokenWithID("' OR 1=1 --\x00\n", p.GitHub(audience, now)), ledger.CodeInvalidToken},
		"a huge key ID":      {p.TokenWithID(strings.Repeat("k", 5000), p.GitHub(audience, now)), ledger.CodeInvalidToken},
		"a key in the header": {
			oidctest.Encode(`{"alg":"ES256","jwk":`+oidctest.KeyOf(t, other)+`}`) + "." + parts[1] + "." + parts[2],
			ledger.CodeInvalidToken,
		},
		"other claims": {
			parts[0] + "." + oidctest.Encode(`{"iss":"`+p.URL+`"}`) + "." + parts[2], ledger.CodeInvalidToken,
		},
		"duplicate claim": {p.Raw(`{"iss":"` + p.URL + `","aud":"x","aud":"` + audience + `"}`), ledger.CodeInvalidToken},
		"not an object":   {p.Raw(`["iss"]`), ledger.CodeInvalidToken},
		"four parts":      {valid + ".x", ledger.CodeInvalidToken},
		"a line break":    {valid[:20] + "\n" + valid[20:], ledger.CodeInvalidToken},
		"huge": {
			p.Token(p.GitHub(audience, now, claims{"x": strings.Repeat("x", exchange.MaxToken)})), ledger.CodeInvalidToken,
		},
		"JSON form": {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
			ledger.CodeInvalidToken},
	} {
		token, err := exchange.Parse(test.token)
		if err == nil {
			_, err = token.Verify(keys)
		}
		wantCode(t, name, err, test.want)
	}
}

// A valid signature is not enough if the header is ambiguous or has critical extensions.
func TestHeaders(t *testing.T) {
	p := oidctest.New(t)
	keys := must.Get(exchange.ParseKeys([]byte(p.JWKS())))(t)

	for name, test := range map[string]struct {
		header string
		isRaw  bool
		want   ledger.Code
	}{
		"valid":                      {`{"alg":"ES256","kid":"key-1"}`, false, ""},
		"an unknown header":          {`{"alg":"ES256","kid":"key-1","x":1}`, false, ""},
		"an unknown critical header": {`{"alg":"ES256","kid":"key-1","crit":["x"],"x":1}`, false, ledger.CodeInvalidToken},
		"claims that are not encoded": {
			`{"alg":"ES256","kid":"key-1","crit":["b64"],"b64":false}`, true, ledger.CodeInvalidToken,
		},
		"no critical header":         {`{"alg":"ES256","kid":"key-1","crit":[]}`, false, ledger.CodeInvalidToken},
		"two algorithms":             {`{"alg":"none","alg":"ES256","kid":"key-1"}`, false, ledger.CodeInvalidToken},
		"an algorithm in capitals":   {`{"ALG":"ES256","kid":"key-1"}`, false, ledger.CodeInvalidToken},
		"an algorithm of other keys": {`{"alg":"RS256","kid":"key-1"}`, false, ledger.CodeInvalidToken},
		"a list of key IDs":          {`{"alg":"ES256","kid":["key-1"]}`, false, ledger.CodeInvalidToken},
		"two key IDs":                {`{"alg":"ES256","kid":"x","kid":"key-1"}`, false, ledger.CodeInvalidToken},
	} {
		token, err := exchange.Parse(p.WithHeader(test.header, p.GitHub(audience, now), test.isRaw))
		if err == nil {
			_, err = token.Verify(keys)
		}
		wantCode(t, name, err, test.want)
	}
}

// Names of claims are case-sensitive, and a claim that is given twice is refused.
func TestNamesOfClaims(t *testing.T) {
	p := oidctest.New(t)
	c := verified(t, p, p.GitHub(audience, now, claims{"repository_id": nil, "Repository_ID": "1234", "PROJECT_ID": "1"}))
	if c.Subject() != "" {
		t.Errorf("a claim with capitals: the subject is %q", c.Subject())
	}
	c = verified(t, p, p.GitHub(audience, now, claims{"REPOSITORY_ID": "999", "Aud": "x", "ISS": "x", "Exp": 1}))
	if c.Subject() != "1234" || c.Issuer != p.URL || c.Check(audience, ledger.TimeOf(now)) != nil {
		t.Errorf("more claims with capitals: the claims are %+v", c)
	}

	keys := must.Get(exchange.ParseKeys([]byte(p.JWKS())))(t)
	for name, payload := range map[string]string{
		"twice":                `{"iss":"x","repository_id":"999","repository_id":"1234"}`,
		"twice, once escaped":  `{"iss":"x","repository_id":"999","repository\u005fid":"1234"}`,
		"twice in an object":   `{"iss":"x","act":{"sub":"a","sub":"b"}}`,
		"an issuer twice":      `{"iss":"x","iss":"` + p.URL + `"}`,
		"after the object":     `{"iss":"x"}{"repository_id":"1234"}`,
		"JSON that is invalid": `{"iss":"x",}`,
		"text that is invalid": "{\"iss\":\"x\",\"repository_id\":\"\xff\"}",
		"nested too deeply":    `{"iss":"x","x":` + strings.Repeat("[", 11_000) + strings.Repeat("]", 11_000) + `}`,
	} {
		token, err := exchange.Parse(p.Raw(payload))
		if err == nil {
			_, err = token.Verify(keys)
		}
		wantCode(t, name, err, ledger.CodeInvalidToken)
	}
}

// The algorithms that well-known issuers use.
func TestAlgorithms(t *testing.T) {
	for algorithm, key := range oidctest.SigningKeys(t) {
		keys := must.Get(exchange.ParseKeys([]byte(oidctest.KeySet(t, "k", key.Public()))))(t)
		p := &oidctest.Provider{URL: "https://issuer.example"}
		token, err := exchange.Parse(oidctest.Sign(t, algorithm, key, "k", p.GitHub(audience, now)))
		must.OK(t, err)
		if _, err = token.Verify(keys); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		if !token.KnownTo(keys) {
			t.Errorf("%s: the key is not known", algorithm)
		}
	}
}

// A key set has public keys that are strong enough; those of other kinds are left out.
func TestKeySets(t *testing.T) {
	key := oidctest.KeyOf(t, oidctest.NewKey(t))
	weak := oidctest.KeyOf(t, oidctest.NewRSAKey(t, 1024))
	named := strings.Replace(key, "{", `{"kid":"`+strings.Repeat("k", 257)+`",`, 1)
	secret := oidctest.PrivateKeyOf(t, oidctest.NewKey(t))
	for name, test := range map[string]struct {
		set  string
		want string // part of the error; empty: the set has one key
	}{
		"one key":               {`{"keys":[` + key + `]}`, ""},
		"one of a new kind":     {`{"keys":[{"kty":"AKP","alg":"ML-DSA-44","pub":"x"},` + key + `]}`, ""},
		"a weak one":            {`{"keys":[` + weak + `,` + key + `]}`, ""},
		"a shared secret":       {`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`, "not a public key"},
		"a private key":         {`{"keys":[` + secret + `]}`, "not a public key"},
		"only weak ones":        {`{"keys":[` + weak + `]}`, "no RSA key"},
		"for encryption":        {`{"keys":[` + strings.Replace(key, "{", `{"use":"enc",`, 1) + `]}`, "no RSA key"},
		"none":                  {`{"keys":[]}`, "no RSA key"},
		"one key, not a set":    {key, "no RSA key"},
		"not JSON":              {`<html>`, "not a JSON Web Key Set"},
		"too many":              {`{"keys":[` + strings.Repeat(key+",", 50) + key + `]}`, "at most 50"},
		"too large":             {`{"keys":[` + key + `]}` + strings.Repeat(" ", exchange.MaxKeySet), "too large"},
		"a key with a large ID": {`{"keys":[` + named + `]}`, "no RSA key"},
	} {
		keys, err := exchange.ParseKeys([]byte(test.set))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want == "" && keys.Len() != 1:
			t.Errorf("%s: %d keys, want 1", name, keys.Len())
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
		}
	}
}

// Tokens and key sets of the maximum size are accepted.
func TestLargestTokensAndKeys(t *testing.T) {
	p := oidctest.New(t)
	id := strings.Repeat("k", 256)
	key := oidctest.KeySet(t, id, oidctest.NewKey(t).Public())
	largest := key + strings.Repeat(" ", exchange.MaxKeySet-len(key))
	keys := must.Get(exchange.ParseKeys([]byte(largest)))(t)
	token, err := exchange.Parse(p.TokenWithID(id, p.GitHub(audience, now)))
	must.OK(t, err)
	if !token.KnownTo(keys) {
		t.Error("a key with an ID of 256 bytes is not known")
	}
	if token, err = exchange.Parse(p.Token(p.GitHub(audience, now))); err != nil || token.KnownTo(keys) {
		t.Errorf("a token with another key: %v", err)
	}
	_, err = exchange.Parse(p.TokenWithID(id+"k", p.GitHub(audience, now)))
	wantCode(t, "a key ID of 257 bytes", err, ledger.CodeInvalidToken)

	single := oidctest.KeyOf(t, oidctest.NewKey(t))
	fifty, err := exchange.ParseKeys([]byte(`{"keys":[` + strings.Repeat(single+",", 49) + single + `]}`))
	must.OK(t, err)
	if fifty.Len() != 50 {
		t.Errorf("%d keys, want 50", fifty.Len())
	}

	padded := func(n int) string {
		return p.Raw(`{"iss":"` + p.URL + `","x":"` + strings.Repeat("x", n) + `"}`)
	}
	most := (exchange.MaxToken - len(padded(0))) / 4 * 3
	for len(padded(most)) < exchange.MaxToken {
		most++
	}
	if n := len(padded(most)); n == exchange.MaxToken { // three bytes are four characters
		_, err = exchange.Parse(padded(most))
		must.OK(t, err)
	}
	_, err = exchange.Parse(padded(most + 3))
	wantCode(t, "a token that is too large", err, ledger.CodeInvalidToken)
}

// A key verifies only the algorithm that it is for.
func TestAlgorithmOfAKey(t *testing.T) {
	key := oidctest.SigningKeys(t)[jose.PS256]
	set := strings.Replace(oidctest.KeySet(t, "k", key.Public()), `"kty"`, `"alg":"RS256","kty"`, 1)
	keys := must.Get(exchange.ParseKeys([]byte(set)))(t)
	p := &oidctest.Provider{URL: "https://issuer.example"}
	token, err := exchange.Parse(oidctest.Sign(t, jose.PS256, key, "k", p.GitHub(audience, now)))
	must.OK(t, err)
	_, err = token.Verify(keys)
	wantCode(t, "PS256 with a key for RS256", err, ledger.CodeInvalidToken)
}

func TestUses(t *testing.T) {
	p, q := oidctest.New(t), oidctest.New(t)
	digest := func(p *oidctest.Provider, jti string) [32]byte {
		d, err := verified(t, p, p.GitHub(audience, now, claims{"jti": jti})).UseDigest()
		must.OK(t, err)
		return d
	}
	if first := digest(p, "1"); digest(p, "1") != first {
		t.Error("a token is another one the second time")
	}
	if digest(p, "1") == digest(p, "2") || digest(p, "1") == digest(q, "1") {
		t.Error("two tokens are the same")
	}
	_, err := verified(t, p, p.GitHub(audience, now, claims{"jti": nil})).UseDigest()
	wantCode(t, "without jti", err, ledger.CodeInvalidToken)
}

func TestRunURL(t *testing.T) {
	for name, test := range map[string]struct {
		issuer string
		gitlab bool
		change claims
		want   string
	}{
		"GitHub": {"https://token.actions.githubusercontent.com", false, nil, "https://github.com/acme/api/actions/runs/77"},
		"GitHub Enterprise Server": {
			"https://git.example.com/_services/token", false, nil, "https://git.example.com/acme/api/actions/runs/77",
		},
		"Forgejo": {"https://codeberg.org/api/actions", false, nil, "https://codeberg.org/acme/api/actions/runs/7"},
		"GitLab":  {"https://gitlab.com", true, nil, "https://gitlab.com/acme/api/-/jobs/77"},
		"another": {"https://issuer.example", false, nil, ""},
		"no job":  {"https://gitlab.com", true, claims{"job_id": nil}, ""},
		"hostile": {"https://gitlab.com", true, claims{"project_path": "x\n\x1b[31m"}, ""},
	} {
		p := oidctest.New(t)
		p.URL = test.issuer
		c := p.GitHub(audience, now, test.change)
		if test.gitlab {
			c = p.GitLab(audience, now, test.change)
		}
		if got := verified(t, p, c).RunURL(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestIssuers(t *testing.T) {
	set := oidctest.KeySet(t, "k", oidctest.NewKey(t).Public())
	for _, test := range []struct {
		url, jwks, want string
	}{
		{"https://token.actions.githubusercontent.com", "", ""},
		{"https://gitlab.example.com:8443/path", "", ""},
		{"http://gitlab.internal", set, ""},
		{"http://gitlab.internal", "", "url"},
		{"ftp://gitlab.internal", set, "url"},
		{"https://[::1", "", "url"},
		{"https://user@gitlab.com", "", "url"},
		{"https://gitlab.com?x", "", "url"},
		{"https://gitlab.com#x", "", "url"},
		{"gitlab.com", "", "url"},
		{"", "", "url"},
		{"https://gitlab.com/" + strings.Repeat("x", 500-19), "", ""},
		{"https://gitlab.com/" + strings.Repeat("x", 500-18), "", "url"},
		{"https://gitlab.com", `{"keys":[]}`, "jwks"},
	} {
		err := exchange.NewIssuer{URL: test.url, JWKS: test.jwks}.Check()
		wantField(t, test.url, err, test.want)
	}
}

func wantCode(t *testing.T, name string, err error, want ledger.Code) {
	t.Helper()
	e, _ := errors.AsType[*ledger.Error](err)
	if want == "" && err != nil || want != "" && (e == nil || e.Code != want) {
		t.Errorf("%s: got %v, want the code %q", name, err, want)
	}
}

// wantField checks that an error is about a field; empty: that there is no error.
func wantField(t *testing.T, name string, err error, want string) {
	t.Helper()
	e, _ := errors.AsType[*ledger.Error](err)
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (e == nil || len(e.Fields) != 1 || e.Fields[0].Field != want):
		t.Errorf("%s: got %v, want an error about %s", name, err, want)
	}
}

// A weak key of an issuer does not count, as if it were not in the set.
func TestWeakKeysOfIssuersDoNotCount(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	weak := map[string]string{
		"RSA of 1024 bits": `{"kty":"RSA","e":"AQAB","n":"` + encode(bytes.Repeat([]byte{0xff}, 128)) + `"}`,
		"RSA, exponent 1":  `{"kty":"RSA","e":"AQ","n":"` + encode(bytes.Repeat([]byte{0xff}, 256)) + `"}`,
		"RSA, exponent 2":  `{"kty":"RSA","e":"Ag","n":"` + encode(bytes.Repeat([]byte{0xff}, 256)) + `"}`,
		"off the curve": `{"kty":"EC","crv":"P-256","x":"` + encode(make([]byte, 32)) + `","y":"` +
			encode(make([]byte, 32)) + `"}`,
	}
	for _, key := range ledgertest.SmallOrderKeys() {
		weak[fmt.Sprintf("%x", key)] = `{"kty":"OKP","crv":"Ed25519","x":"` + encode(key) + `"}`
	}
	good := oidctest.KeyOf(t, oidctest.NewKey(t))
	for name, key := range weak {
		if _, err := exchange.ParseKeys([]byte(`{"keys":[` + key + `]}`)); err == nil {
			t.Errorf("%s is accepted", name)
		}
		keys, err := exchange.ParseKeys([]byte(`{"keys":[` + key + `,` + good + `]}`))
		if must.OK(t, err); keys.Len() != 1 {
			t.Errorf("%s and another: %d keys", name, keys.Len())
		}
	}
}
