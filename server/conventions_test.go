package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

func TestUnknownPaths(t *testing.T) {
	b := newBackend(t)
	for _, path := range []string{"/", "/v1", "/v1/orgs/acme/", "/v1/orgs/acme/repo", "/v2/orgs", "/V1/orgs", "/v1//orgs",
		"/v1/orgs/acme/repos/a%2Fb", "/v1/orgs/%ff/x"} {
		b.get(path).wantProblem(404, ledger.CodeNotFound)
	}
}

func TestMethods(t *testing.T) {
	b := newBackend(t)
	for _, test := range []struct{ method, path, allow string }{
		{"PUT", "/v1/orgs/acme", "DELETE, GET, HEAD, PATCH"},
		{"PUT", "/v1/orgs/acme/repos", "GET, HEAD, POST"},
		{"PUT", "/v1/orgs/acme/repos/api", "DELETE, GET, HEAD, PATCH"},
		{"POST", commitPath(commitID(1)), "GET, HEAD, PATCH, PUT"},
		{"GET", "/v1/orgs/acme/policies/api/simulate", "POST"},
		{"GET", "/v1/orgs/acme/tokens/tok_x", "DELETE"},
		{"OPTIONS", attestationsPath, "GET, HEAD, POST"},
		{"BREW", "/healthz", "GET, HEAD"},
	} {
		resp := b.send(request{method: test.method, path: test.path, token: b.admin})
		resp.wantProblem(405, ledger.CodeMethodNotAllowed)
		if got := resp.header.Get("Allow"); got != test.allow {
			t.Errorf("%s: Allow: %q, want %q", resp.what, got, test.allow)
		}
	}
}

// Endpoints that an earlier release had say what to use instead, to everybody.
func TestRemovedEndpoints(t *testing.T) {
	b := newBackend(t)
	for _, r := range []request{
		{method: "POST", path: "/v1/witness/add-checkpoint", body: "old 0\n\n",
			header: map[string]string{"Content-Type": "text/plain"}},
		{method: "GET", path: "/v1/witness/x/checkpoint", token: b.reader},
		{method: "HEAD", path: "/v1/witness/x/checkpoint"},
	} {
		resp := b.send(r).want(410)
		if r.method == "HEAD" {
			continue
		}
		resp.wantProblem(410, ledger.CodeEndpointRemoved)
		if detail := decode[ledger.Problem](resp).Detail; !strings.Contains(detail, "use a witness such as litewitness") {
			t.Errorf("%s: got the detail %q", resp.what, detail)
		}
	}
}

// HEAD returns the headers of an uncompressed GET.
func TestHeadIsGetWithoutBody(t *testing.T) {
	b := newBackend(t)
	id := decode[ledger.AttestationRecord](
		b.attest(b.signer("cn=ci,ou=build,o=acme").statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)).ID
	for _, path := range []string{"/v1/orgs/acme", "/v1/orgs/acme/repos", commitPath(commitID(1)), attestationsPath,
		attestationsPath + "/" + id, attestationsPath + "/" + id + "/envelope",
		"/v1/orgs/acme/policies/api", "/v1/orgs/acme/tokens", "/v1/orgs/acme/events", "/v1/token", "/v1/openapi.yaml",
		"/healthz", "/readyz", "/v1/orgs/acme/repos/none", "/v1/none"} {
		get := b.send(request{method: "GET", path: path, token: b.reader,
			header: map[string]string{"Accept-Encoding": "identity", wire.HeaderRequestID: "same"}})
		get.header.Del("Date")
		for _, encoding := range []string{"identity", "gzip"} {
			head := b.send(request{method: "HEAD", path: path, token: b.reader,
				header: map[string]string{"Accept-Encoding": encoding, wire.HeaderRequestID: "same"}})
			head.header.Del("Date")
			if len(head.body) != 0 || head.status != get.status || fmt.Sprint(get.header) != fmt.Sprint(head.header) {
				t.Errorf("%s, %s:\nGET  %d %v\nHEAD %d %v and %d bytes", path, encoding, get.status, get.header, head.status,
					head.header, len(head.body))
			}
		}
	}
}

func TestRequestID(t *testing.T) {
	b := newBackend(t)
	for name, test := range map[string]struct {
		sent     string
		accepted bool
	}{
		"UUID":           {"7e57d004-2b97-0e7a-b45f-5387367791cd", true},
		"id of a proxy":  {"Root=1-67891233-abcdef/012:+_.", true},
		"128 characters": {strings.Repeat("a", 128), true},
		"129 characters": {strings.Repeat("a", 129), false},
		"space":          {"a b", false},
		"needs escaping": {`a"<script>`, false},
		"none":           {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			header := map[string]string{}
			if test.sent != "" {
				header[wire.HeaderRequestID] = test.sent
			}

			resp := b.send(request{method: "GET", path: "/v1/orgs/none", token: b.reader, header: header})
			got := resp.header.Get(wire.HeaderRequestID)
			if test.accepted != (got == test.sent) || got == "" {
				t.Errorf("sent %q, got %q", test.sent, got)
			}
			resp.wantProblem(403, ledger.CodeForbidden) // with the same id in the body
		})
	}
}

func TestParameters(t *testing.T) {
	b := newBackend(t)
	deliveries := webhooksPath + "/" + b.webhook(`{"url":"https://ci.example.com"}`).ID + "/deliveries"

	for _, test := range []struct {
		path   string
		code   ledger.Code
		fields []string
	}{
		{"/v1/orgs/acme?x=1", ledger.CodeUnknownParameter, []string{"x"}},
		{"/v1/orgs/acme/repos?b=1&limit=2&a=", ledger.CodeUnknownParameter, []string{"a", "b"}},
		{"/healthz?verbose", ledger.CodeUnknownParameter, []string{"verbose"}},
		{"/v1/orgs/acme/repos?limit=1&limit=2", ledger.CodeInvalidParameter, []string{"limit"}},
		{"/v1/orgs/acme/repos?limit=", ledger.CodeInvalidParameter, []string{"limit"}},
		{"/v1/orgs/acme/repos?limit=0", ledger.CodeInvalidParameter, []string{"limit"}},
		{"/v1/orgs/acme/repos?limit=501", ledger.CodeInvalidParameter, []string{"limit"}},
		{"/v1/orgs/acme/repos?limit=ten", ledger.CodeInvalidParameter, []string{"limit"}},
		{"/v1/orgs/acme/repos?limit=%zz", ledger.CodeInvalidParameter, nil},
		{"/v1/orgs/acme/repos?limit=5;cursor=x", ledger.CodeInvalidParameter, nil},
		{"/v1/orgs/acme/repos/api/commits?state=attested", ledger.CodeInvalidParameter, []string{"state"}},
		{"/v1/orgs/acme/repos/api/commits?text=" + strings.Repeat("x", 201), ledger.CodeInvalidParameter, []string{"text"}},
		{attestationsPath + "?since=yesterday", ledger.CodeInvalidParameter, []string{"since"}},
		{attestationsPath + "?since=2026-13-01", ledger.CodeInvalidParameter, []string{"since"}},
		{attestationsPath + "?status=PASSED", ledger.CodeInvalidParameter, []string{"status"}},
		{attestationsPath + "?order=up", ledger.CodeInvalidParameter, []string{"order"}},
		{attestationsPath + "?predicate=*:go", ledger.CodeInvalidParameter, []string{"predicate"}},
		{attestationsPath + "?predicate_type=*://x", ledger.CodeInvalidParameter, []string{"predicate_type"}},
		{attestationsPath + "?identity=cn%3D", ledger.CodeInvalidParameter, []string{"identity"}},
		{attestationsPath + "?identity=ou%3Dbuild", ledger.CodeInvalidParameter, []string{"identity"}},
		{attestationsPath + "?commit=abc", ledger.CodeInvalidParameter, []string{"commit"}},
		{attestationsPath + "?commit=HEAD", ledger.CodeInvalidParameter, []string{"commit"}},
		{"/v1/orgs/acme/policies/api?version=0", ledger.CodeInvalidParameter, []string{"version"}},
		{"/v1/orgs/acme/policies/api?version=v1", ledger.CodeInvalidParameter, []string{"version"}},
		{"/v1/orgs/acme/events?types=attestation,stat", ledger.CodeInvalidParameter, []string{"types"}},
		{"/v1/orgs/acme/events?after=evt_none", ledger.CodeInvalidParameter, []string{"after"}},
		{"/v1/orgs/acme/repos?cursor=!", ledger.CodeInvalidCursor, nil},
		{"/v1/orgs/acme/tokens?cursor=bm9uZQ", ledger.CodeInvalidCursor, nil},
		{"/v1/orgs/acme/identities?cursor=MS4y", ledger.CodeInvalidCursor, nil},
		{"/v1/orgs/acme/predicates?cursor=x", ledger.CodeInvalidCursor, nil},
		{"/v1/orgs/acme/events?cursor=x", ledger.CodeInvalidCursor, nil},
		{"/v1/orgs/acme/policies/api/versions?cursor=x", ledger.CodeInvalidCursor, nil},
		{"/v1/orgs/acme/repos/api/commits?cursor=x", ledger.CodeInvalidCursor, nil},
		{attestationsPath + "?cursor=MQ", ledger.CodeInvalidCursor, nil},
		{webhooksPath + "?cursor=x", ledger.CodeInvalidCursor, nil},
		{deliveries + "?cursor=MQ", ledger.CodeInvalidCursor, nil},
		{deliveries + "?status=delivered", ledger.CodeInvalidParameter, []string{"status"}},
		{deliveries + "?event=1", ledger.CodeInvalidParameter, []string{"event"}},
		{deliveries + "?event=" + commitID(1), ledger.CodeInvalidParameter, []string{"event"}},
		{deliveries + "?type=state", ledger.CodeUnknownParameter, []string{"type"}},
	} {
		b.get(test.path).wantFields(400, test.code, test.fields...)
	}
}

func TestBodies(t *testing.T) {
	b := newBackend(t)
	mediaType := func(value string) map[string]string { return map[string]string{"Content-Type": value} }
	repo := `{"name":"x"}`

	for name, test := range map[string]struct {
		body   string
		header map[string]string
		status int
		code   ledger.Code
		fields []string
	}{
		"empty":                    {"", mediaType(typeJSON), 400, ledger.CodeInvalidJSON, nil},
		"white space":              {" \n", nil, 400, ledger.CodeInvalidJSON, nil},
		"truncated":                {`{"name":"x"`, nil, 400, ledger.CodeInvalidJSON, nil},
		"not JSON":                 {`name: x`, nil, 400, ledger.CodeInvalidJSON, nil},
		"two documents":            {repo + repo, nil, 400, ledger.CodeInvalidJSON, nil},
		"not an object":            {`["x"]`, nil, 400, ledger.CodeInvalidJSON, nil},
		"number instead of a name": {`{"name":1}`, nil, 400, ledger.CodeInvalidJSON, []string{"name"}},
		"repeated name":            {`{"name":"x","name":"y"}`, nil, 400, ledger.CodeInvalidJSON, []string{"name"}},
		"unknown field":            {`{"name":"x","nmae":"y"}`, nil, 400, ledger.CodeUnknownField, []string{"nmae"}},
		"wrong case":               {`{"Name":"x"}`, nil, 400, ledger.CodeUnknownField, []string{"Name"}},
		"not UTF-8":                {"{\"name\":\"\xff\"}", nil, 400, ledger.CodeInvalidJSON, nil},
		"UTF-16":                   {"\xff\xfe{\x00}\x00", nil, 400, ledger.CodeInvalidJSON, nil},
		"over 1 MiB": {`{"name":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, ledger.CodePayloadTooLarge,
			nil},
		"no media type": {repo, mediaType(""), 415, ledger.CodeUnsupportedMediaType, nil},
		"form": {repo, mediaType("application/x-www-form-urlencoded"), 415,
			ledger.CodeUnsupportedMediaType, nil},
		"type of an envelope": {repo, mediaType(typeDSSE), 415, ledger.CodeUnsupportedMediaType, nil},
		"another charset": {repo, mediaType("application/json; charset=latin1"), 415, ledger.CodeUnsupportedMediaType,
			nil},
		"compressed": {repo, map[string]string{"Content-Encoding": "gzip"}, 415, ledger.CodeUnsupportedMediaType,
			nil},
		"invalid name": {`{"name":"a b"}`, nil, 422, ledger.CodeInvalidField, []string{"name"}},
		"invalid branch": {`{"name":"x","default_branch":"a..b"}`, nil, 422, ledger.CodeInvalidField,
			[]string{"default_branch"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			resp := b.send(request{method: "POST", path: "/v1/orgs/acme/repos", token: b.admin, body: test.body,
				header: test.header})
			p := resp.wantProblem(test.status, test.code)
			var fields []string
			for _, e := range p.Errors {
				fields = append(fields, e.Field)
			}
			if test.fields != nil && !slices.Equal(fields, test.fields) {
				t.Errorf("fields %q, want %q", fields, test.fields)
			}
		})
	}

	b.get("/v1/orgs/acme/repos/x").wantProblem(404, ledger.CodeNotFound)
	b.send(request{method: "POST", path: "/v1/orgs/acme/repos", token: b.admin,
		body: "\ufeff" + `{"name":"marked"}`}).want(201)
	for i, contentType := range []string{"application/json; charset=utf-8", "Application/JSON;charset=UTF-8",
		"application/json"} {
		b.send(request{method: "POST", path: "/v1/orgs/acme/repos", token: b.admin, body: fmt.Sprintf(`{"name":"x%d"}`, i),
			header: map[string]string{
				"Content-Type": contentType, "Content-Encoding": "identity"}}).want(201)
	}
	b.post("/v1/orgs/acme/repos", `{"name":"X0"}`).wantProblem(409, ledger.CodeAlreadyExists)
}

func TestMaxBody(t *testing.T) {
	const limit = 10_000
	b := newBackend(t, func(c *Config) { c.Limits.MaxBody = limit })
	registration := func(size int) string {
		const before, after = `{"message":"`, `"}`
		return before + strings.Repeat("m", size-len(before)-len(after)) + after
	}
	b.put(commitPath(commitID(1)), registration(limit)).want(201)
	p := b.put(commitPath(commitID(2)), registration(limit+1)).wantProblem(413, ledger.CodePayloadTooLarge)
	if !strings.Contains(p.Detail, "10000 bytes") || !strings.Contains(p.Detail, "max_body") {
		t.Errorf("detail %q, want it to name the limit and max_body", p.Detail)
	}
	b.get(commitPath(commitID(2))).wantProblem(404, ledger.CodeNotFound)

	// A chunked body has no Content-Length.
	req, err := http.NewRequestWithContext(t.Context(), "PUT", b.url+commitPath(commitID(3)),
		io.MultiReader(strings.NewReader(registration(limit+1))))
	must.OK(t, err)
	req.Header.Set("Authorization", "Bearer "+b.writer)
	req.Header.Set("Content-Type", typeJSON)
	resp, err := http.DefaultClient.Do(req)
	must.OK(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("chunked: %s", resp.Status)
	}
}

func TestETags(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	sha := commitID(1)
	id := decode[ledger.AttestationRecord](b.attest(ci.statement(t, sha, "test:go", ledger.Pass, 1)).want(201)).ID
	b.get("/v1/token").want(200) // now the token is already marked as used in this minute

	for _, path := range []string{"/v1/orgs/acme", "/v1/orgs/acme/repos/api", commitPath(sha), attestationsPath + "/" + id,
		attestationsPath + "/" + id + "/envelope",
		"/v1/orgs/acme/policies/api", "/v1/orgs/acme/policies/api?version=1", "/v1/orgs/acme/identities/" + ci.id,
		"/v1/openapi.yaml"} {
		for _, encoding := range []string{"identity", "gzip"} {
			ifNoneMatch := func(method, tags string) response {
				return b.send(request{method: method, path: path, token: b.reader,
					header: map[string]string{"Accept-Encoding": encoding, "If-None-Match": tags}})
			}
			fresh := ifNoneMatch("GET", `"other"`).want(200)
			tag := fresh.header.Get("ETag")
			compressed := fresh.header.Get("Content-Encoding") == "gzip"
			if tag == "" || compressed != strings.HasSuffix(tag, `-gzip"`) {
				t.Errorf("%s: ETag %s, compressed: %t", path, tag, compressed)
			}
			bare := strings.Replace(tag, "-gzip", "", 1)
			for _, tags := range []string{tag, bare, "W/" + tag, `"x", ` + tag + `, "y"`} {
				for _, method := range []string{"GET", "HEAD"} {
					unchanged := ifNoneMatch(method, tags).want(304)
					if len(unchanged.body) != 0 || !strings.Contains(tags, unchanged.header.Get("ETag")) ||
						unchanged.header.Get("Cache-Control") == "" {
						t.Errorf("%s with %s: 304 with %d bytes and ETag %s", path, tags, len(unchanged.body),
							unchanged.header.Get("ETag"))
					}
				}
			}
			ifNoneMatch("GET", "*").want(304)
		}
	}
	if got := b.get("/v1/orgs/acme/repos").header.Get("ETag"); got != "" {
		t.Errorf("a list has the ETag %s", got)
	}

	// A change of the record changes the ETag.
	before := b.get(commitPath(sha)).header.Get("ETag")
	b.attest(ci.statement(t, sha, "test:go", ledger.Fail, 2)).want(201)
	b.send(request{method: "GET", path: commitPath(sha), token: b.reader,
		header: map[string]string{"If-None-Match": before}}).want(200)
}

func TestCompression(t *testing.T) {
	b := newBackend(t)
	get := func(path, accept string) response {
		return b.send(request{method: "GET", path: path, token: b.reader,
			header: map[string]string{"Accept-Encoding": accept}})
	}
	plain := get("/v1/orgs/acme/repos", "identity").want(200)
	for i := range 10 {
		b.post("/v1/orgs/acme/repos", fmt.Sprintf(`{"name":"r%d"}`, i)).want(201)
	}

	for _, test := range []struct {
		path, accept string
		compressed   bool
	}{
		{"/v1/orgs/acme/repos", "gzip", true},
		{"/v1/openapi.yaml", "br;q=1.0, gzip;q=0.8, *;q=0.1", true},
		{"/v1/orgs/acme/repos", "gzip;q=0", false},
		{"/v1/orgs/acme/repos", "zstd", false},
		{"/v1/orgs/acme/repos", "identity", false},
		{"/v1/orgs/acme", "gzip", false},      // too small
		{"/v1/orgs/acme/none", "gzip", false}, // a problem
	} {
		resp := get(test.path, test.accept)
		if got := resp.header.Get("Content-Encoding") == "gzip"; got != test.compressed {
			t.Errorf("%s for %q: compressed: %t, want %t", test.path, test.accept, got, test.compressed)
		}
		if vary := resp.header.Values("Vary"); !slices.Contains(vary, "Accept-Encoding") {
			t.Errorf("%s for %q: Vary: %q", test.path, test.accept, vary)
		}
		if test.compressed {
			zipped := must.Get(gzip.NewReader(bytes.NewReader(resp.body)))(t)
			body := must.Get(io.ReadAll(zipped))(t)
			if want := get(test.path, "identity").body; !bytes.Equal(body, want) {
				t.Errorf("%s: unzipped to %d bytes, want %d", test.path, len(body), len(want))
			}
		}
	}
	if plain.header.Get("Content-Encoding") != "" {
		t.Errorf("compressed without Accept-Encoding")
	}
}

func TestHealth(t *testing.T) {
	b := newBackend(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := string(b.send(request{method: "GET", path: path}).want(200).body); got != `{"status":"ok"}` {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// failing returns the backend with a GET /v1/orgs/acme that fails.
func (b *backend) failing(fail func() error) *backend {
	b.t.Helper()
	routes := []route{{http.MethodGet, "/v1/orgs/:org", access{scope: ledger.Read}, nil, func(*call) (*reply, error) {
		return nil, fail()
	}}}
	network := httptest.NewServer(b.server.framed(b.server.router(routes, "", b.server.byToken, unobserved)))
	b.t.Cleanup(network.Close)
	other := *b
	other.url = network.URL
	return &other
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		fail   func() error
		status int
		code   ledger.Code
		detail string // part of it
		logged string
	}{
		"full disk": {func() error {
			return ledger.Errorf(ledger.CodeStorageUnavailable, "the disk is full: nothing was written")
		}, 503, ledger.CodeStorageUnavailable, "the disk is full", ""},
		"wrapped": {func() error { return fmt.Errorf("x: %w", ledger.Errorf(ledger.CodeNotFound, "repo x not found")) },
			404, ledger.CodeNotFound, "repo x not found", ""},
		"timeout": {func() error { return fmt.Errorf("read: %w", context.DeadlineExceeded) }, 503,
			ledger.CodeStorageUnavailable, "nothing was changed", ""},
		"other error": {func() error { return errors.New("SELECT secret: no such column") }, 500, ledger.CodeInternal,
			"request ID", "no such column"},
		"unknown code": {func() error { return ledger.Errorf("made_up", "something private") }, 500, ledger.CodeInternal,
			"request ID", "something private"},
		"panic": {func() error { panic("out of cheese") }, 500, ledger.CodeInternal, "request ID", "out of cheese"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t).failing(test.fail)
			resp := b.get("/v1/orgs/acme")
			p := resp.wantProblem(test.status, test.code)
			if !strings.Contains(p.Detail, test.detail) {
				t.Errorf("detail %q, want it to contain %q", p.Detail, test.detail)
			}
			if retry := resp.header.Get("Retry-After"); (retry != "") != (test.status == 503) {
				t.Errorf("Retry-After: %q", retry)
			}

			log := b.log.String()
			if test.logged == "" && log != "" || !strings.Contains(log, test.logged) || test.logged != "" &&
				!strings.Contains(log, p.RequestID) {
				t.Errorf("log %q, want it to contain %q and the request id", log, test.logged)
			}
			if strings.Count(log, "\n") > 1 {
				t.Errorf("logged more than once: %s", log)
			}
		})
	}
}

// The log line of a panic has the stack and nothing that the client has sent but the path.
func TestPanicLogHasNoSecret(t *testing.T) {
	b := newBackend(t)
	routes := []route{{http.MethodPost, "/v1/orgs/:org", access{scope: ledger.Admin}, nil, func(c *call) (*reply, error) {
		body, err := c.body(smallBody, typeJSON)
		if len(body) > 0 {
			panic("out of cheese")
		}
		return nil, err
	}}}
	handler := b.server.framed(b.server.router(routes, "", b.server.byToken, unobserved))
	r := httptest.NewRequest("POST", "/v1/orgs/acme", strings.NewReader(`{"secret":"hunter2"}`))
	r.Header.Set("Authorization", "Bearer "+b.admin)
	r.Header.Set("Cookie", "ledgerd=opensesame")
	r.Header.Set("Content-Type", typeJSON)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)

	log := b.log.String()
	for _, want := range []string{"path=/v1/orgs/acme", "out of cheese", "runtime/debug.Stack", "token=tok_"} {
		if w.Code != http.StatusInternalServerError || !strings.Contains(log, want) {
			t.Errorf("status %d, and a log without %s: %s", w.Code, want, log)
		}
	}
	for _, secret := range []string{b.admin, "hunter2", "opensesame"} {
		if strings.Contains(log+w.Body.String(), secret) {
			t.Errorf("%s is in the log or the response:\n%s\n%s", secret, log, w.Body)
		}
	}
}

// A server whose database is unavailable is alive, but not ready.
func TestReadiness(t *testing.T) {
	b := newBackend(t)
	must.OK(t, b.store.Close())
	b.send(request{method: "GET", path: "/healthz"}).want(200)
	p := b.send(request{method: "GET", path: "/readyz"}).wantProblem(503, ledger.CodeStorageUnavailable)
	if !strings.HasPrefix(p.Detail, "not ready: ") || b.log.Len() > 0 {
		t.Errorf("detail %q, log %q", p.Detail, b.log)
	}
}

func TestAccessLogHasNoSecret(t *testing.T) {
	var log bytes.Buffer
	b := newBackend(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	log.Reset()
	r := httptest.NewRequest("GET", "/v1/orgs/acme?token="+b.reader, nil)
	r.Header.Set("Authorization", "Bearer "+b.reader)
	r.Header.Set(wire.HeaderRequestID, "the-id")
	b.server.Handler().ServeHTTP(httptest.NewRecorder(), r)
	for _, want := range []string{
		"method=GET", "path=/v1/orgs/acme ", "status=400", "request=the-id token=tok_", "org=acme",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), b.reader[:10]) {
		t.Errorf("the log contains a token: %s", log.String())
	}
}
