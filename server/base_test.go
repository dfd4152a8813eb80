package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Below a base path, the API has nothing at the root, and the URLs in its headers have the base
// path. In process, there is no base path.
func TestBasePath(t *testing.T) {
	b := newBackend(t, func(c *Config) { c.Base = "/tools/ledger" })
	const repos = "/tools/ledger/v1/orgs/acme/repos"
	get := func(path string, status int) (http.Header, string) {
		return b.plain(t, "GET", path, "", status)
	}

	header, _ := b.plain(t, "POST", repos, `{"name":"billing"}`, 201)
	if got := header.Get("Location"); got != repos+"/billing" {
		t.Errorf("Location: %s, want %s", got, repos+"/billing")
	}
	get(header.Get("Location"), 200)
	header, _ = get(repos+"?limit=1", 200)
	next, isNext := strings.CutSuffix(strings.TrimPrefix(header.Get("Link"), "<"), `>; rel="next"`)
	if !isNext || !strings.HasPrefix(next, repos+"?") {
		t.Errorf("Link: %s, want one below %s", header.Get("Link"), repos)
	}
	if _, body := get(next, 200); !strings.Contains(body, "billing") {
		t.Errorf("the next page is %s", body)
	}

	_, body := b.plain(t, "PUT", repos+"/billing/commits/"+strings.Repeat("a", 40), `{}`, 201)
	for _, name := range []string{"attestations_url", "transitions_url"} {
		_, after, _ := strings.Cut(body, `"`+name+`":"`)
		link, _, _ := strings.Cut(after, `"`)
		if get(link, 200); !strings.HasPrefix(link, repos+"/billing/") {
			t.Errorf("%s is %s", name, link)
		}
	}

	get("/tools/ledger/healthz", 200)
	get("/v1/orgs/acme/repos", 404)
	get("/tools/ledger", 404)
	if _, body := get("/tools/ledger/v2", 404); !strings.Contains(body, "GET /tools/ledger/v1/openapi.yaml") {
		t.Errorf("the problem of a path without an endpoint is %s", body)
	}
	b.host("GET", "/v1/orgs/acme/repos", "").want(200)
}

// plain sends a request as an administrator of acme, which openapi.yaml does not describe.
func (b *backend) plain(t *testing.T, method, path, body string, status int) (http.Header, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer "+b.admin)
	r.Header.Set("Content-Type", "application/json")
	response, err := b.stream.Do(r)
	must.OK(t, err)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(t)
	if response.StatusCode != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, response.StatusCode, status, text)
	}
	return response.Header, string(text)
}
