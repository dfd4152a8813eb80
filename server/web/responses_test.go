package web_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/server/web"
)

// Pages, the style and the script are compressed for browsers that accept gzip.
func TestCompression(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	style := attribute(w.get("/orgs/acme").elements("link", "rel", "stylesheet")[0], "href")
	for _, test := range []struct {
		path, accept string
		status       int
		compressed   bool
	}{
		{"/orgs/acme", "gzip", 200, true},
		{"/orgs/acme", "br;q=1.0, gzip;q=0.8, *;q=0.1", 200, true},
		{"/nowhere", "gzip", 404, true},
		{style, "gzip", 200, true},
		{"/orgs/acme", "gzip;q=0", 200, false},
		{"/orgs/acme", "zstd", 200, false},
		{"/orgs/acme", "identity", 200, false},
		{"/", "gzip", 303, false}, // too small to be worth it
	} {
		w.header = map[string]string{"Accept-Encoding": test.accept}
		p := w.get(test.path).want(test.status)
		if got := p.header.Get("Content-Encoding") == "gzip"; got != test.compressed {
			t.Errorf("%s for %q: compressed: %t, want %t", p.what, test.accept, got, test.compressed)
		}
		if vary := p.header.Values("Vary"); !slices.Contains(vary, "Accept-Encoding") {
			t.Errorf("%s for %q: Vary: %q", p.what, test.accept, vary)
		}

		if test.compressed {
			w.header["Accept-Encoding"] = "identity"
			if want := w.get(test.path).body; unzip(t, p.body) != want {
				t.Errorf("%s: the decompressed page differs from the uncompressed one", p.what)
			}
		}
	}
}

func unzip(t *testing.T, text string) string {
	t.Helper()
	zipped := must.Get(gzip.NewReader(strings.NewReader(text)))(t)
	plain := must.Get(io.ReadAll(zipped))(t)
	return string(plain)
}

// HEAD has the headers of an uncompressed GET.
func TestHead(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	for _, path := range []string{"/orgs/acme", apiPath, "/nowhere", tokensPath} {
		w.header = map[string]string{"Accept-Encoding": "identity"}
		get := w.get(path)
		ignored := []string{"Date", "X-Request-Id"}
		for _, name := range ignored {
			get.header.Del(name)
		}

		for _, encoding := range []string{"identity", "gzip"} {
			w.header = map[string]string{"Accept-Encoding": encoding}
			head := w.send("HEAD", path, nil)
			for _, name := range ignored {
				head.header.Del(name)
			}
			if head.body != "" || head.status != get.status || fmt.Sprint(head.header) != fmt.Sprint(get.header) {
				t.Errorf("%s, %s:\nGET  %d %v\nHEAD %d %v and %d bytes", path, encoding, get.status, get.header, head.status,
					head.header, len(head.body))
			}
		}
	}
}

// A faultyAPI is the real API, except that tests can replace SignIn and the stream.
type faultyAPI struct {
	*server.Server
	signIn func() error
	stream http.HandlerFunc
}

func (f faultyAPI) SignIn(ctx context.Context, token string) (string, ledger.Time, error) {
	if f.signIn == nil {
		return f.Server.SignIn(ctx, token)
	}
	return "", 0, f.signIn()
}

func (f faultyAPI) Sessions() http.Handler {
	real := f.Server.Sessions()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.stream != nil && r.Header.Get("Accept") == "text/event-stream" {
			f.stream(w, r)
		} else {
			real.ServeHTTP(w, r)
		}
	})
}

// withAPI returns a copy of the env whose site uses the API.
func (e *env) withAPI(api web.API) *env {
	e.t.Helper()
	site, err := web.New(web.Config{API: api, Logger: slog.New(slog.NewTextHandler(e.log, nil)), Now: e.clock.now})
	must.OK(e.t, err)
	network := httptest.NewServer(site.Handler())
	e.t.Cleanup(network.Close)
	other := *e
	other.site, other.url = site, network.URL
	return &other
}

// Internal errors are logged. Their page has no details.
func TestInternalErrors(t *testing.T) {
	e := newEnv(t)
	for name, test := range map[string]struct {
		fault  func() error
		status int
		has    string
		logged string
	}{
		"panic": {func() error { panic("out of cheese") }, 500,
			"look up the request ID in the server log", "out of cheese"},
		"unexpected error": {func() error { return io.ErrUnexpectedEOF }, 500,
			"look up the request ID in the server log", "unexpected EOF"},
		"timeout": {func() error { return context.DeadlineExceeded }, 503,
			"the request was cancelled or timed out", ""},
		"full disk": {func() error { return ledger.Errorf(ledger.CodeStorageUnavailable, "the disk is full") }, 503,
			"the disk is full", ""},
		"limit reached": {func() error { return ledger.Errorf(ledger.CodeLimitReached, "enough") }, 422, "enough", ""},
		"internal code": {func() error { return ledger.Errorf(ledger.CodeInternal, "something private") }, 500,
			"look up the request ID in the server log", "something private"},
	} {
		t.Run(name, func(t *testing.T) {
			e := e.in(t).withAPI(faultyAPI{Server: e.api, signIn: test.fault})
			e.log.Reset()
			p := e.browser().post("/login", url.Values{"token": {e.reader}}).want(test.status).has(test.has).hasNot(
				"something private").checkHeaders(false)

			checkHTML(t, "signed out", p)
			if retry := p.header.Get("Retry-After"); (retry != "") != (test.status == 503) {
				t.Errorf("Retry-After: %q", retry)
			}
			log := e.log.String()
			if test.logged == "" && log != "" || !strings.Contains(log, test.logged) || strings.Contains(log, e.reader) {
				t.Errorf("log: %q, want %q, and not the token of the form", log, test.logged)
			}
		})
	}
}

// A panic after the start of a response is logged, and the status stays.
func TestPanicDuringResponse(t *testing.T) {
	e := newEnv(t)
	e = e.withAPI(faultyAPI{Server: e.api, stream: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "the beginning")
		panic("out of cheese")
	}})
	w := e.signIn(e.reader)
	w.header = map[string]string{"Accept": "text/event-stream"}
	if p := w.get("/orgs/acme/events").want(202); !strings.HasPrefix(p.body, "the beginning") {
		t.Errorf("the body starts with %q", p.body)
	}
	at := must.Get(url.Parse(e.url))(t)
	session := w.client.Jar.Cookies(at)[0].Value
	if log := e.log.String(); strings.Contains(log, session) || !strings.Contains(log, "out of cheese") {
		t.Errorf("log: %q, want the panic without the session %q", log, session)
	}
	w.header = nil
	w.get("/orgs/acme").want(200)
}
