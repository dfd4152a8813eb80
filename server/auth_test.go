package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

func TestAuthentication(t *testing.T) {
	b := newBackend(t)
	b.host("POST", "/v1/orgs/acme/tokens",
		fmt.Sprintf(`{"name":"brief","scope":"read","expires_at":%q}`, b.clock.time().Add(time.Hour))).want(201)
	expiring := decode[ledger.Token](b.host("POST", "/v1/orgs/acme/tokens",
		fmt.Sprintf(`{"name":"brief","scope":"read","expires_at":%q}`, b.clock.time().Add(time.Minute))).want(201))
	revoked := decode[ledger.Token](b.host("POST", "/v1/orgs/acme/tokens", `{"name":"gone","scope":"admin"}`).want(201))
	for _, secret := range []string{expiring.Secret, revoked.Secret} {
		b.send(request{method: "GET", path: "/v1/token", token: secret}).want(200)
	}
	b.clock.advance(time.Minute)
	b.delete("/v1/orgs/acme/tokens/" + revoked.ID).want(204)

	mistyped := "ldg_A" + b.reader[5:]
	if mistyped == b.reader {
		mistyped = "ldg_B" + b.reader[5:]
	}
	for name, test := range map[string]struct{ authorization, detail string }{
		"no token":            {"", "Authorization: Bearer"},
		"no secret":           {"Bearer", "begin with ldg_"},
		"another scheme":      {"Basic " + b.reader, "use Bearer <token>"},
		"no scheme":           {b.reader, "use Bearer <token>"},
		"other kind of token": {"Bearer ghp_abc", "begin with ldg_"},
		"truncated":           {"Bearer " + b.reader[:40], "copy it again in full"},
		"mistyped":            {"Bearer " + mistyped, "checksum is wrong"},
		"never created":       {"Bearer " + ledger.NewSecret(), "unknown API token"},
		"expired":             {"Bearer " + expiring.Secret, "expired at 2026-11-30T09:01:00.000Z"},
		"revoked":             {"Bearer " + revoked.Secret, "revoked at 2026-11-30T09:01:00.000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			header := map[string]string{}
			if test.authorization != "" {
				header["Authorization"] = test.authorization
			}
			resp := b.send(request{method: "GET", path: "/v1/orgs/acme", header: header})
			p := resp.wantProblem(401, ledger.CodeUnauthenticated)
			if !strings.Contains(p.Detail, test.detail) {
				t.Errorf("detail %q, want it to contain %q", p.Detail, test.detail)
			}
			if got := resp.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("WWW-Authenticate: %q", got)
			}
		})
	}
	t.Run("two Authorization headers", func(t *testing.T) {
		b := b.in(t)
		req := must.Get(http.NewRequestWithContext(t.Context(), "GET", b.url+"/v1/orgs/acme", nil))(t)
		req.Header["Authorization"] = []string{"Bearer " + b.reader, "Bearer " + b.admin}
		resp, err := b.client.Do(req)
		must.OK(t, err)
		resp.Body.Close()
		if resp.StatusCode != 401 {
			t.Errorf("%d, want 401", resp.StatusCode)
		}
	})
	t.Run("lower-case scheme", func(t *testing.T) {
		b := b.in(t)
		b.send(request{method: "GET", path: "/v1/orgs/acme",
			header: map[string]string{"Authorization": "bearer " + b.reader}}).want(200)
	})
}

// example returns a path that matches a pattern, with names and ids that do not exist.
func example(pattern string) string {
	return strings.NewReplacer(
		":org", "acme",
		":repo", "nowhere",
		":sha", commitID(1),
		"tokens/:id", "tokens/tok_01KAJ8Q0M6R4YB0J3X5T9ZC2DE",
		"identities/:id", "identities/idn_01KAJ8Q0M6R4YB0J3X5T9ZC2DE",
		"webhooks/:id", "webhooks/whk_01KAJ8Q0M6R4YB0J3X5T9ZC2DE",
		":delivery", "dlv_01KAJ8Q0M6R4YB0J3X5T9ZC2DE",
		"*path", "checkpoint",
		":hash", "00",
		":id", "att_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").Replace(pattern)
}

func TestScopes(t *testing.T) {
	b := newBackend(t)
	secrets := map[ledger.Scope]string{0: "", ledger.Read: b.reader, ledger.Write: b.writer, ledger.Admin: b.admin}
	for _, rt := range b.server.routes() {
		for scope, secret := range secrets {
			// If the caller is authorized, the query is rejected.
			resp := b.send(request{method: rt.method, path: example(rt.pattern) + "?nonsense=1", token: secret})
			want := 400
			switch {
			case rt.scope == public:
			case scope == 0:
				want = 401
			case scope < rt.scope:
				want = 403
			}
			if resp.status != want {
				t.Errorf("%s with scope %q: %d, want %d: %s", resp.what, scope, resp.status, want, resp.body)
			}
		}
	}
}

// The response to a token of another org does not reveal whether the org exists.
func TestTokenOfAnotherOrg(t *testing.T) {
	b := newBackend(t)
	b.host("POST", "/v1/orgs", `{"name":"umbrella"}`).want(201)
	otherToken := b.token("umbrella", "admin")
	for _, rt := range b.server.routes() {
		if !strings.Contains(rt.pattern, ":org") || rt.scope == public {
			continue
		}
		var bodies [2]string
		for i, org := range []string{"acme", "none"} {
			path := strings.Replace(example(rt.pattern), "acme", org, 1)
			resp := b.send(request{method: rt.method, path: path, token: otherToken,
				header: map[string]string{wire.HeaderRequestID: "same"}})
			resp.wantProblem(403, ledger.CodeForbidden)
			bodies[i] = strings.ReplaceAll(string(resp.body), "for org "+org, "for org X")
		}
		if bodies[0] != bodies[1] {
			t.Errorf("%s %s reveals whether an org exists:\n%s\n%s", rt.method, rt.pattern, bodies[0], bodies[1])
		}
	}
}

// The order of checks: path, method, token, org and scope, query, body.
func TestOrderOfChecks(t *testing.T) {
	b := newBackend(t)
	b.send(request{method: "POST", path: "/v1/nowhere?nonsense=1", body: "{"}).wantProblem(404, ledger.CodeNotFound)
	b.send(request{method: "PATCH", path: attestationsPath + "?nonsense=1", body: "{"}).wantProblem(405,
		ledger.CodeMethodNotAllowed)
	b.send(request{method: "POST", path: attestationsPath + "?nonsense=1", body: "{"}).wantProblem(401,
		ledger.CodeUnauthenticated)
	b.send(request{method: "POST", path: attestationsPath + "?nonsense=1", body: "{", token: b.reader}).wantProblem(403,
		ledger.CodeForbidden)
	b.send(request{method: "POST", path: attestationsPath + "?nonsense=1", body: "{", token: b.writer}).wantProblem(400,
		ledger.CodeUnknownParameter)
	b.send(request{method: "POST", path: attestationsPath, body: "{", token: b.writer}).wantProblem(400,
		ledger.CodeInvalidJSON)
}

func TestHostNeedsNoToken(t *testing.T) {
	b := newBackend(t)
	b.host("POST", "/v1/orgs", `{"name":"umbrella"}`).want(201)
	b.host("POST", "/v1/orgs/umbrella/repos", `{"name":"rain"}`).want(201)
	if got := decode[policy.Policy](b.host("GET", "/v1/orgs/umbrella/policies/rain", "").want(200)).CreatedBy; got !=
		"host" {
		t.Errorf("created_by %q, want host", got)
	}
	if got := string(b.host("GET", "/v1/token", "").want(200).body); got != `{"name":"host","scope":"host"}` {
		t.Errorf("/v1/token: %s", got)
	}
	orgs := decode[ledger.Page[ledger.Org]](b.host("GET", "/v1/orgs", "").want(200))
	if len(orgs.Data) != 2 || orgs.Data[0].Name != "acme" || orgs.Data[1].Name != "umbrella" {
		t.Errorf("orgs: %+v", orgs)
	}
	b.host("GET", "/v1/orgs/none/repos", "").wantProblem(404, ledger.CodeNotFound)
	b.host("POST", "/v1/orgs", `{"name":"acme"}`).wantProblem(409, ledger.CodeAlreadyExists)
	b.host("POST", "/v1/orgs", `{"name":"Acme"}`).wantFields(422, ledger.CodeInvalidField, "name")
}

func TestTokens(t *testing.T) {
	b := newBackend(t)
	expires := b.clock.time().Add(time.Hour)
	resp := b.post("/v1/orgs/acme/tokens",
		fmt.Sprintf(`{"name":"deploy bot","scope":"write","expires_at":%q}`, expires)).want(201)
	created := decode[ledger.Token](resp)
	if resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control: %q, want no-store", resp.header.Get("Cache-Control"))
	}
	if created.Org != "acme" || created.Name != "deploy bot" || created.Scope != ledger.Write ||
		created.ExpiresAt != expires ||
		created.Secret == "" {
		t.Errorf("created %+v", created)
	}

	own := b.send(request{method: "GET", path: "/v1/token", token: created.Secret}).want(200)
	if got := decode[ledger.Token](own); got.ID != created.ID || got.Scope != ledger.Write || got.Secret != "" {
		t.Errorf("/v1/token: %+v", got)
	}
	list := b.get("/v1/orgs/acme/tokens").want(200)
	if strings.Contains(string(list.body), "ldg_") {
		t.Errorf("the list contains secrets: %s", list.body)
	}

	b.delete("/v1/orgs/acme/tokens/" + created.ID).want(204)
	b.delete("/v1/orgs/acme/tokens/" + created.ID).want(204)
	b.send(request{method: "GET", path: "/v1/token", token: created.Secret}).wantProblem(401, ledger.CodeUnauthenticated)
	b.delete("/v1/orgs/acme/tokens/tok_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantProblem(404, ledger.CodeNotFound)

	for name, test := range map[string]struct{ body, field string }{
		"no name":         {`{"scope":"read"}`, "name"},
		"no scope":        {`{"name":"x"}`, "scope"},
		"tab in the name": {`{"name":"\t","scope":"read"}`, "name"},
		"already expired": {fmt.Sprintf(`{"name":"x","scope":"read","expires_at":%q}`, b.clock.time()), "expires_at"},
		"long name":       {fmt.Sprintf(`{"name":%q,"scope":"read"}`, strings.Repeat("x", 101)), "name"},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.post("/v1/orgs/acme/tokens", test.body).wantFields(422, ledger.CodeInvalidField, test.field)
		})
	}
	// DecodeStrict reports a value of the wrong type, with its field.
	b.post("/v1/orgs/acme/tokens", `{"name":"x","scope":"host"}`).wantFields(400, ledger.CodeInvalidJSON, "scope")
}

func TestCreatedBy(t *testing.T) {
	b := newBackend(t)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	own := decode[ledger.Token](b.send(request{method: "GET", path: "/v1/token", token: b.admin}))
	policy := decode[policy.Policy](b.get("/v1/orgs/acme/policies/web").want(200))
	if want := fmt.Sprintf("admin of acme (%s)", own.ID); policy.CreatedBy != want {
		t.Errorf("created_by %q, want %q", policy.CreatedBy, want)
	}
}
