package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ledgerd/ledgerd/internal/oidc"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

const (
	exchangePath  = "/v1/orgs/acme/token/exchange"
	issuersPath   = "/v1/orgs/acme/issuers"
	rulesPath     = "/v1/orgs/acme/exchange-rules"
	audienceOfOrg = "https://ledger.example.com/v1/orgs/acme"
)

// An exchanging is a backend whose org accepts tokens of a provider.
type exchanging struct {
	*backend
	provider *oidctest.Provider
	issuer   exchange.Issuer
}

func newExchanging(t *testing.T, changes ...func(*Config)) *exchanging {
	t.Helper()
	p := oidctest.New(t)
	b := newBackend(t, append(changes, accepting(p))...)
	issuer := decode[exchange.Issuer](b.post(issuersPath, fmt.Sprintf(`{"url":%q}`, p.URL)).want(201))
	return &exchanging{b, p, issuer}
}

// accepting changes a Config so that the server can read the keys of a provider.
func accepting(p *oidctest.Provider) func(*Config) {
	return func(c *Config) {
		c.BaseURL = "https://ledger.example.com"
		c.Issuers = oidc.New(oidc.Config{RootCAs: p.Roots(), Now: c.Now})
	}
}

// rule creates a rule for the repository 1234 with further fields.
func (b *exchanging) rule(fields string) exchange.Rule {
	b.t.Helper()
	return decode[exchange.Rule](b.post(rulesPath, b.newRule(fields)).want(201))
}

func (b *exchanging) newRule(fields string) string {
	if !strings.Contains(fields, "_id\"") {
		fields += `,"repository_id":"1234"`
	}
	if !strings.Contains(fields, "scope") {
		fields += `,"scope":"write"`
	}
	return fmt.Sprintf(`{"name":"ci","issuer":%q,"repos":["api"]%s}`, b.provider.URL, fields)
}

// github returns a token for a push to main, with changes of its claims.
func (b *exchanging) github(changes ...map[string]any) string {
	return b.provider.Token(b.provider.GitHub(audienceOfOrg, b.clock.now(), changes...))
}

func (b *exchanging) gitlab(changes ...map[string]any) string {
	return b.provider.Token(b.provider.GitLab(audienceOfOrg, b.clock.now(), changes...))
}

// form returns a request for an exchange of a token, with further fields.
func form(token string, more ...string) string {
	f := url.Values{"grant_type": {exchange.GrantType}, "subject_token_type": {exchange.TypeIDToken},
		"subject_token": {token}}
	for i := 0; i < len(more); i += 2 {
		f[more[i]] = append(f[more[i]], more[i+1])
		if more[i+1] == "" {
			delete(f, more[i])
		}
	}
	return f.Encode()
}

func (b *backend) exchange(form string) response {
	b.t.Helper()
	return b.send(request{method: "POST", path: exchangePath, body: form,
		header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
}

// exchanged exchanges a token for an API token.
func (b *exchanging) exchanged(token string) exchange.Response {
	b.t.Helper()
	return decode[exchange.Response](b.exchange(form(token)).want(200))
}

// A CI job gets an API token for the token of its run, and records with it.
func TestTokenExchange(t *testing.T) {
	b := newExchanging(t)
	rule := b.rule(`,"refs":["main"],"lifetime":"10m"`)
	resp := b.exchange(form(b.github())).want(200)
	if cache := resp.header.Get("Cache-Control"); cache != "no-store" {
		t.Errorf("Cache-Control is %q", cache)
	}
	got := decode[exchange.Response](resp)
	if got.ExpiresIn != 600 || got.Scope != ledger.Write || got.TokenType != "Bearer" || got.Token.Rule != rule.ID ||
		got.Token.Secret != "" || got.Token.ExpiresAt != b.clock.time().Add(10*time.Minute) {
		t.Errorf("the response is %+v", got)
	}

	own := decode[ledger.Token](b.send(request{method: "GET", path: "/v1/token", token: got.AccessToken}).want(200))
	if own.ID != got.Token.ID || own.Rule != rule.ID || fmt.Sprint(own.Repos) != "[api]" || own.Name != "ci" {
		t.Errorf("the own token is %+v", own)
	}
	listed := decode[ledger.Page[ledger.Token]](b.get("/v1/orgs/acme/tokens").want(200)).Data
	if last := listed[len(listed)-1]; last.ID != own.ID || last.Rule != rule.ID || fmt.Sprint(last.Repos) != "[api]" {
		t.Errorf("the listed token is %+v", last)
	}
	path := commitPath(commitID(1))
	b.send(request{method: "PUT", path: path, token: got.AccessToken, body: `{"branch":"main"}`}).want(201)

	b.clock.advance(10 * time.Minute)
	b.send(request{method: "GET", path: path, token: got.AccessToken}).wantProblem(401, ledger.CodeUnauthenticated)
}

// Each invalid token is refused with its code, also in the form of OAuth.
func TestTokensThatAreRefused(t *testing.T) {
	b := newExchanging(t)
	b.rule(`,"refs":["main"]`)
	b.rule(`,"refs":["main"],"project_id":"1234"`)
	type change = map[string]any
	at := func(d time.Duration) int64 { return b.clock.now().Add(d).Unix() }
	github := func(changes ...map[string]any) map[string]any {
		return b.provider.GitHub(audienceOfOrg, b.clock.now(), changes...)
	}
	valid := strings.Split(b.github(), ".")
	other := oidctest.NewKey(t)

	for name, test := range map[string]struct {
		token string
		want  ledger.Code
	}{
		"two audiences": {
			b.github(change{"aud": []string{audienceOfOrg, "https://other.example"}}), ledger.CodeWrongAudience,
		},
		"the audience of another org": {b.github(change{"aud": audienceOfOrg + "2"}), ledger.CodeWrongAudience},
		"an unknown issuer":           {b.github(change{"iss": "https://gitlab.com"}), ledger.CodeNoMatchingRule},
		"no issuer":                   {b.github(change{"iss": nil}), ledger.CodeNoMatchingRule},
		"expired":                     {b.github(change{"exp": at(-time.Minute)}), ledger.CodeTokenExpired},
		"not yet valid":               {b.github(change{"nbf": at(2 * time.Minute)}), ledger.CodeTokenNotYetValid},
		"of the future":               {b.github(change{"iat": at(2 * time.Minute)}), ledger.CodeTokenNotYetValid},
		"too old":                     {b.github(change{"iat": at(-25 * time.Hour)}), ledger.CodeTokenExpired},
		"without an end":              {b.github(change{"exp": nil}), ledger.CodeInvalidToken},
		"alg none":                    {oidctest.Encode(`{"alg":"none"}`) + "." + valid[1] + ".", ledger.CodeInvalidToken},
		"HS256 with the public key":   {oidctest.Confused(t, b.provider.JWKS(), github()), ledger.CodeInvalidToken},
		"an unknown kid":              {b.provider.TokenWithID("key-99", github()), ledger.CodeNoMatchingRule},
		"a hostile kid": {b.provider.TokenWithID("../../../etc/passwd\x00", github()),
			ledger.CodeNoMatchingRule},
		"a huge kid":  {b.provider.TokenWithID(strings.Repeat("k", 4000), github()), ledger.CodeInvalidToken},
		"another key": {oidctest.Sign(t, jose.ES256, other, "key-1", github()), ledger.CodeNoMatchingRule},
		"not a token": {b.admin, ledger.CodeInvalidToken},
		"huge":        {b.github(change{"x": strings.Repeat("x", 12<<10)}), ledger.CodeInvalidToken},

		"a pull request":          {b.github(change{"event_name": "pull_request"}), ledger.CodeNoMatchingRule},
		"pull_request_target":     {b.github(change{"event_name": "pull_request_target"}), ledger.CodeNoMatchingRule},
		"a fork":                  {b.github(change{"repository_id": "666"}), ledger.CodeNoMatchingRule},
		"a branch":                {b.github(change{"ref": "refs/heads/x"}), ledger.CodeNoMatchingRule},
		"a tag named as a branch": {b.gitlab(change{"ref_type": "tag"}), ledger.CodeNoMatchingRule},
		"a merge request": {
			b.gitlab(change{"pipeline_source": "merge_request_event"}), ledger.CodeNoMatchingRule,
		},
		"both kinds": {b.github(change{"project_id": "1234"}), ledger.CodeNoMatchingRule},
	} {
		p := b.exchange(form(test.token)).wantProblem(400, test.want)
		if p.Error != "invalid_request" || p.ErrorDescription == "" {
			t.Errorf("%s: error is %q, error_description %q", name, p.Error, p.ErrorDescription)
		}
		if strings.Contains(p.Detail, valid[2]) {
			t.Errorf("%s: the detail has the token: %s", name, p.Detail)
		}
	}

	for name, token := range map[string]string{
		"GitHub": b.github(), "GitLab": b.gitlab(),
		"one audience in a list": b.github(change{"aud": []string{audienceOfOrg}}),
	} {
		if resp := b.exchange(form(token)); resp.status != 200 {
			t.Errorf("%s: %s", name, resp.body)
		}
	}
}

// A request has the fields of RFC 8693, and its errors the codes of RFC 6749.
func TestExchangeRequests(t *testing.T) {
	b := newExchanging(t)
	b.rule(``)
	token := b.github()
	for name, test := range map[string]struct {
		form   string
		status int
		code   ledger.Code
		err    string
	}{
		"minimal":    {form(token), 200, "", ""},
		"a JWT":      {form(token, "subject_token_type", ""), 400, ledger.CodeInvalidExchange, "invalid_request"},
		"no token":   {form(""), 400, ledger.CodeInvalidExchange, "invalid_request"},
		"nothing":    {"", 400, ledger.CodeUnsupportedGrantType, "unsupported_grant_type"},
		"not a form": {"%zz", 400, ledger.CodeInvalidExchange, "invalid_request"},
		"another grant": {
			"grant_type=client_credentials", 400, ledger.CodeUnsupportedGrantType, "unsupported_grant_type",
		},
		"a repeated token": {form(token, "subject_token", "x"), 400, ledger.CodeInvalidExchange, "invalid_request"},
		"an actor":         {form(token, "actor_token", "x"), 400, ledger.CodeInvalidExchange, "invalid_request"},
		"an access token":  {form(token, "requested_token_type", exchange.TypeAccessToken), 200, "", ""},
		"an ID token": {
			form(token, "requested_token_type", exchange.TypeIDToken), 400, ledger.CodeInvalidExchange, "invalid_request",
		},
		"the audience":     {form(token, "audience", audienceOfOrg, "resource", audienceOfOrg), 200, "", ""},
		"another audience": {form(token, "audience", "https://x.org"), 400, ledger.CodeInvalidTarget, "invalid_target"},
		"another resource": {
			form(token, "resource", audienceOfOrg, "resource", "https://x.org"), 400, ledger.CodeInvalidTarget, "invalid_target",
		},
		"a smaller scope":     {form(token, "scope", "read"), 200, "", ""},
		"a larger scope":      {form(token, "scope", "admin"), 400, ledger.CodeNoMatchingRule, "invalid_request"},
		"an unknown scope":    {form(token, "scope", "root"), 400, ledger.CodeInvalidScope, "invalid_scope"},
		"the scope of a host": {form(token, "scope", "host"), 400, ledger.CodeInvalidScope, "invalid_scope"},
		"an unknown field":    {form(token, "client_id", "x"), 200, "", ""},
		"an empty field":      {form(token) + "&scope=", 200, "", ""},
		"too large":           {form(strings.Repeat("x", 40<<10)), 413, ledger.CodePayloadTooLarge, "invalid_request"},
	} {
		resp := b.exchange(test.form)
		if test.status == 200 {
			got := decode[exchange.Response](resp.want(200))
			if want := strings.Contains(test.form, "scope=read"); want != (got.Scope == ledger.Read) {
				t.Errorf("%s: the scope is %s", name, got.Scope)
			}
			continue
		}
		if p := resp.wantProblem(test.status, test.code); p.Error != test.err {
			t.Errorf("%s: error is %q, want %q", name, p.Error, test.err)
		}
	}

	p := b.send(request{method: "POST", path: exchangePath, body: "{}"}).wantProblem(415, ledger.CodeUnsupportedMediaType)
	if p.Error != "invalid_request" {
		t.Errorf("error is %q", p.Error)
	}
	b.send(request{method: "POST", path: exchangePath + "?x=1", body: form(token),
		header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
	).wantProblem(400, ledger.CodeUnknownParameter)
}

// With a rule that permits signing, a token counts once.
func TestReplayedToken(t *testing.T) {
	b := newExchanging(t)
	b.rule(`,"dn":"cn=api,ou=ci-build,o=acme","refs":["main"]`)
	token := b.github()
	if got := b.exchanged(token); got.Token.DN != "cn=api,ou=ci-build,o=acme" {
		t.Errorf("the token is %+v", got.Token)
	}
	b.exchange(form(token)).wantProblem(400, ledger.CodeTokenUsed)
	b.exchange(form(b.github(map[string]any{"jti": nil}))).wantProblem(400, ledger.CodeInvalidToken)
	b.exchanged(b.github(map[string]any{"jti": rand.Text()}))
}

// A server without a base URL accepts no token. If the issuer is down, the error says so.
func TestExchangeThatIsNotPossible(t *testing.T) {
	b := newExchanging(t)
	b.rule(``)
	b.provider.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	p := b.exchange(form(b.github())).wantProblem(503, ledger.CodeIssuerUnavailable)
	if p.Error != "temporarily_unavailable" {
		t.Errorf("error is %q", p.Error)
	}

	plain := newBackend(t)
	plain.exchange(form(b.github())).wantProblem(400, ledger.CodeInvalidTarget)
}

// Failures are limited by address; tokens that are accepted are not among them.
func TestFailedExchangesAreLimited(t *testing.T) {
	b := newExchanging(t, func(c *Config) { c.Limits.FailedSignIns = 3 })
	b.rule(``)
	for range 4 { // no token is refused here
		b.exchange("").wantProblem(400, ledger.CodeUnsupportedGrantType)
	}
	for range 3 {
		b.exchange(form(b.github(map[string]any{"event_name": "pull_request"}))).wantProblem(400, ledger.CodeNoMatchingRule)
	}
	p := b.exchange(form("x.y.z")).wantProblem(429, ledger.CodeTooManyRequests)
	if p.Error != "temporarily_unavailable" {
		t.Errorf("error is %q", p.Error)
	}
	b.exchanged(b.github())
}

// All exchanges of an address are limited, like requests with a token.
func TestExchangesAreLimited(t *testing.T) {
	b := newExchanging(t, func(c *Config) { c.Limits.Requests = 1 })
	for range rateWindow {
		b.exchange("").wantProblem(400, ledger.CodeUnsupportedGrantType)
	}
	b.exchange("").wantProblem(429, ledger.CodeTooManyRequests)
}

// An exchanged token sees its own repos, and nothing else of the org.
func TestExchangedTokensAreLimitedToTheirRepos(t *testing.T) {
	b := newExchanging(t)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	b.rule(`,"scope":"admin"`)
	token := b.exchanged(b.github()).AccessToken

	allowed := map[string]bool{"/v1/token": true, "/v1/orgs/:org/repos/:repo": true}
	for _, rt := range b.server.routes() {
		if rt.scope == public || rt.scope == ledger.Host || rt.kind == ofPublicLog {
			continue
		}
		for _, repo := range []string{"api", "API", "web"} {
			path := strings.NewReplacer(":org", "acme", ":repo", repo, ":id", "x", ":sha", commitID(1), ":digest", "x",
				":delivery", "x").Replace(rt.pattern)
			resp := b.send(request{method: rt.method, path: path, token: token,
				header: map[string]string{"X-Undescribed": "1"}})
			ofRepo := strings.Contains(rt.pattern, ":repo") && repo != "web"
			isRefused := resp.status == 403 && strings.Contains(string(resp.body), "the API token is only for api")
			if want := ofRepo || allowed[rt.pattern] && repo != "web" || rt.kind == ofToken; want == isRefused {
				t.Errorf("%s %s: %d %s", rt.method, path, resp.status, resp.body)
			}
			if rt.method == http.MethodDelete || rt.method == http.MethodPatch {
				break
			}
		}
	}
}

// The events of one repo are for its tokens; the query cannot name two.
func TestEventsForExchangedTokens(t *testing.T) {
	b := newExchanging(t)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	b.rule(`,"scope":"read"`)
	token := b.exchanged(b.github()).AccessToken
	for query, want := range map[string]int{
		"": 403, "?repo=api": 200, "?repo=web": 403, "?repo=api&repo=web": 400, "?repo=web&repo=api": 403, "?repo=": 403,
		"?repo=api;repo=web": 403,
	} {
		b.send(request{method: "GET", path: "/v1/orgs/acme/events" + query, token: token}).want(want)
	}
	p := b.send(request{method: "GET", path: "/v1/orgs/acme/identities", token: token}).
		wantProblem(403, ledger.CodeForbidden)
	if !strings.HasPrefix(p.Detail, "the API token is only for api: it was exchanged by the rule rul_") {
		t.Errorf("the detail is %q", p.Detail)
	}
	if _, _, err := b.server.SignIn(t.Context(), token); !isCode(err, ledger.CodeUnauthenticated) {
		t.Errorf("a CI job signs in to the pages: %v", err)
	}
}

// Issuers and rules are managed by admins.
func TestIssuersAndRules(t *testing.T) {
	b := newExchanging(t, func(c *Config) { c.CheckIssuer = refuse })
	b.post(issuersPath, fmt.Sprintf(`{"url":%q}`, b.provider.URL)).wantProblem(409, ledger.CodeAlreadyExists)
	b.post(issuersPath, `{"url":"http://gitlab.internal"}`).wantFields(422, ledger.CodeInvalidField, "url")
	b.post(issuersPath, `{"url":"https://10.0.0.1"}`).wantFields(422, ledger.CodeInvalidField, "url")
	pasted := fmt.Sprintf(`{"url":"https://10.0.0.1","jwks":%q}`, b.provider.JWKS())
	second := decode[exchange.Issuer](b.post(issuersPath, pasted).want(201))
	page := decode[ledger.Page[exchange.Issuer]](b.send(request{method: "GET", path: issuersPath + "?limit=1",
		token: b.admin}).want(200))
	if len(page.Data) != 1 || page.Data[0] != b.issuer || page.NextCursor == "" {
		t.Errorf("the first page is %+v", page)
	}
	b.delete(issuersPath + "/" + second.ID).want(204)
	b.delete(issuersPath+"/"+second.ID).wantProblem(404, ledger.CodeNotFound)

	b.post(rulesPath, b.newRule(`,"dn":"cn=Alice,ou=review"`)).wantFields(422, ledger.CodeInvalidField, "dn")
	b.post(rulesPath, `{"name":"x","issuer":"https://gitlab.com","scope":"read","repos":["api"],"project_id":"1"}`).
		wantFields(422, ledger.CodeInvalidField, "issuer")
	b.post(rulesPath, strings.Replace(b.newRule(``), `"api"`, `"none"`, 1)).wantProblem(404, ledger.CodeNotFound)
	rule := b.rule(`,"events":["pull_request_target"]`)
	if len(rule.Warnings) != 1 {
		t.Errorf("the warnings are %q", rule.Warnings)
	}
	rules := decode[ledger.Page[exchange.Rule]](b.send(request{method: "GET", path: rulesPath, token: b.admin}).want(200))
	if len(rules.Data) != 1 || rules.Data[0].ID != rule.ID {
		t.Errorf("the rules are %+v", rules)
	}

	token := b.exchanged(b.github(map[string]any{"event_name": "pull_request_target"})).AccessToken
	b.delete(rulesPath + "/" + rule.ID).want(204)
	b.delete(rulesPath+"/"+rule.ID).wantProblem(404, ledger.CodeNotFound)
	b.send(request{method: "GET", path: "/v1/token", token: token}).wantProblem(401, ledger.CodeUnauthenticated)
	for _, path := range []string{issuersPath, rulesPath} {
		b.send(request{method: "GET", path: path, token: b.writer}).wantProblem(403, ledger.CodeForbidden)
	}
}

// refuse is a Config.CheckIssuer that refuses one URL.
func refuse(_ context.Context, url string) error {
	if url == "https://10.0.0.1" {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "url", "not public")
	}
	return nil
}
