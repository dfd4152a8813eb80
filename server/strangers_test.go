package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

// A place is an org that a stranger asks for. Nobody is to learn which of them exist.
type place struct{ what, org string }

// newPlaces returns orgs next to acme: one that does not exist, and those that do, in every form.
func newPlaces(b *backend) []place {
	b.t.Helper()
	for _, org := range []string{"globex", "archived", "deleted", "former"} {
		b.host("POST", "/v1/orgs", fmt.Sprintf(`{"name":%q}`, org)).want(201)
		b.host("POST", "/v1/orgs/"+org+"/repos", `{"name":"api"}`).want(201)
	}
	b.host("PATCH", "/v1/orgs/archived", `{"archived":true}`).want(200)
	b.host("DELETE", "/v1/orgs/deleted?confirm=deleted", "").want(204)
	b.host("PATCH", "/v1/orgs/former", `{"name":"present"}`).want(200)
	deleted := decode[ledger.Page[ledger.Org]](b.host("GET", "/v1/orgs?deleted=true", "").want(200))
	return []place{{"an org that does not exist", "none"}, {"an org that exists", "globex"},
		{"an archived org", "archived"}, {"a deleted org", "deleted"}, {"the name of a deleted org", deleted.Data[0].Name},
		{"the former name of an org", "former"}, {"the present name of an org", "present"}}
}

// seen returns what a caller sees of a response, without the id of the request. The name of the org,
// which the caller has given, is replaced.
func (a response) seen(org string) string {
	header := a.header.Clone()
	var lines []string
	for name, values := range header {
		if !slices.Contains([]string{"Date", "X-Request-Id", "Content-Length"}, name) {
			lines = append(lines, fmt.Sprintf("%s: %q", name, values))
		}
	}
	slices.Sort(lines)
	body := strings.ReplaceAll(string(a.body), a.header.Get("X-Request-Id"), "ID")
	return strings.ReplaceAll(fmt.Sprintf("%d\n%s\n\n%s", a.status, strings.Join(lines, "\n"), body), org, "ORG")
}

// A token of acme gets the same response for an org, whether or not it exists, from every route.
// Without a token, so does everybody.
func TestEveryRouteAnswersStrangersAlike(t *testing.T) {
	b := newBackend(t)
	places := newPlaces(b)
	for _, rt := range b.server.routes() {
		if !rt.inOrg() || rt.scope == public {
			continue // TestExchangesAnswerStrangersAlike tests the public ones
		}
		for who, token := range map[string]string{"an admin of acme": b.admin, "a reader of acme": b.reader, "nobody": ""} {
			for _, accept := range []string{typeJSON, "text/event-stream"} {
				answer := func(org string) response {
					path := strings.NewReplacer(":org", org, ":repo", "api", ":id", "whk_1", ":sha", commitID(1), ":digest", "x",
						":delivery", "x", ":name", "x", ":hash", "x", "*path", "checkpoint").Replace(rt.pattern)
					return b.send(request{method: rt.method, path: path, token: token, header: map[string]string{
						"Accept": accept, "X-Undescribed": "1"}})
				}

				first := answer(places[0].org)
				if want := map[bool]int{true: http.StatusUnauthorized,
					false: http.StatusForbidden}[token == ""]; first.status != want {
					t.Errorf("%s: %s gets %d, want %d: %s", first.what, who, first.status, want, first.body)
				}
				for _, p := range places[1:] {
					if got := answer(p.org); got.seen(p.org) != first.seen(places[0].org) {
						t.Errorf("%s: of %s, %s sees\n%s\nand of %s\n%s", first.what, p.what, who, got.seen(p.org),
							places[0].what, first.seen(places[0].org))
					}
				}
			}
		}
	}
}

// Who has no token of a repository with a rule gets the same response from every org.
func TestExchangesAnswerStrangersAlike(t *testing.T) {
	j := newJobs(t)
	places := append(newPlaces(j.backend), place{"an org with a rule for another repository", "acme"})
	for _, p := range places[1 : len(places)-1] {
		if p.org == "globex" { // has the issuer, and no rules
			_, err := j.store.AddIssuer(t.Context(), p.org, exchange.NewIssuer{URL: j.provider.URL, JWKS: j.provider.JWKS()})
			must.OK(t, err)
		}
	}

	claims := func(org string, changes ...map[string]any) map[string]any {
		return j.provider.GitHub("https://ledger.example/v1/orgs/"+org, j.clock.now(), changes...)
	}
	other := map[string]any{"repository_id": "666"}
	key := oidctest.NewKey(t)
	for name, token := range map[string]func(org string) string{
		"a token of another repository": func(org string) string { return j.provider.Token(claims(org, other)) },
		"one that expired": func(org string) string {
			return j.provider.Token(claims(org, other, map[string]any{"exp": j.clock.now().Unix() - 3600}))
		},
		"one for another audience": func(string) string { return j.provider.Token(claims("x", other)) },
		"one with the key of a stranger": func(org string) string {
			return oidctest.Sign(t, jose.ES256, key, "key-1", claims(org))
		},
		"one with an unknown key": func(org string) string { return j.provider.TokenWithID("key-99", claims(org)) },
		"one of an unknown issuer": func(org string) string {
			return j.provider.Token(claims(org,
				map[string]any{"iss": "https://x.org"}))
		},
		"one without a repository": func(org string) string {
			return j.provider.Token(claims(org,
				map[string]any{"repository_id": nil}))
		},
		"one of two kinds of issuer": func(org string) string {
			return j.provider.Token(claims(org,
				map[string]any{"project_id": "1"}))
		},
	} {
		for what, send := range map[string]func(org string) response{
			"exchange": func(org string) response {
				return j.send(request{method: "POST", path: "/v1/orgs/" + org + "/token/exchange", body: form(token(org)),
					header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
			},
			"certificate": func(org string) response {
				return j.send(request{method: "POST", path: "/v1/orgs/" + org + "/certificates",
					body: toJSON(t, j.request(token(org), 0))})
			},
		} {
			first := send(places[0].org)
			first.wantProblem(400, ledger.CodeNoMatchingRule)
			for _, p := range places[1:] {
				if got := send(p.org); got.seen(p.org) != first.seen(places[0].org) {
					t.Errorf("%s with %s: of %s, a stranger sees\n%s\nand of %s\n%s", what, name, p.what, got.seen(p.org),
						places[0].what, first.seen(places[0].org))
				}
			}
		}
	}
}
