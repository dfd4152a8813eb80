package server

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A token may send so many requests per second; other tokens are not affected.
func TestRequestsOfOneToken(t *testing.T) {
	b := newBackend(t, func(c *Config) { c.Limits.Requests = 2 })
	burst := 2 * rateWindow
	for i := range burst {
		r := getAs(b, b.reader, "/v1/token").want(200)
		if got := r.header.Get("RateLimit-Policy"); got != `"requests";q=20;w=10` {
			t.Fatalf("RateLimit-Policy is %s", got)
		}
		if got := r.header.Get("RateLimit"); i == 0 && got != `"requests";r=19;t=1` {
			t.Errorf("the first response has RateLimit %s", got)
		}
	}
	// A request may have come back in the meantime.
	refused := getAs(b, b.reader, "/v1/token")
	for refused.status == 200 {
		refused = getAs(b, b.reader, "/v1/token")
	}
	refused.wantProblem(429, ledger.CodeTooManyRequests)
	if refused.header.Get("RateLimit") == "" || refused.header.Get("Retry-After") != "1" {
		t.Errorf("the refusal has the headers %v", refused.header)
	}

	getAs(b, b.writer, "/v1/token").want(200)
	if got := getAs(b, "", "/healthz").want(200).header.Get("RateLimit"); got != "" {
		t.Errorf("/healthz has RateLimit %s", got)
	}
}

// After so many tokens from an address that are not accepted, the next ones are answered with
// 429. Valid tokens from there are accepted, and requests without a token are not counted.
func TestFailedSignIns(t *testing.T) {
	b := newBackend(t, func(c *Config) { c.Limits.FailedSignIns = 3 })
	for range 5 {
		getAs(b, "", "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
	}
	for _, bad := range []string{"hello", ledger.NewSecret(), ledger.NewSecret()} {
		getAs(b, bad, "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
	}
	refused := getAs(b, ledger.NewSecret(), "/v1/token")
	refused.wantProblem(429, ledger.CodeTooManyRequests)
	if after, err := strconv.Atoi(refused.header.Get("Retry-After")); err != nil || after < 15 || after > 20 {
		t.Errorf("Retry-After is %q, want at most 20 s", refused.header.Get("Retry-After"))
	}
	getAs(b, b.reader, "/v1/token").want(200)

	elsewhere := b.server.CountFailure(http.Header{}, "192.0.2.1:1", ledger.Errorf(ledger.CodeUnauthenticated, ""))
	if !isCode(elsewhere, ledger.CodeUnauthenticated) {
		t.Errorf("the first failure from another address is answered with %v", elsewhere)
	}
	other := b.server.CountFailure(http.Header{}, "127.0.0.1:1", ledger.Errorf(ledger.CodeForbidden, ""))
	if !isCode(other, ledger.CodeForbidden) {
		t.Errorf("another error became %v", other)
	}
}

// Without settings, nothing is limited, and no header says so.
func TestNoRates(t *testing.T) {
	b := newBackend(t)
	for range 200 {
		getAs(b, ledger.NewSecret(), "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
	}
	if got := getAs(b, b.reader, "/v1/token").want(200).header.Get("RateLimit"); got != "" {
		t.Errorf("RateLimit is %s", got)
	}
}

// getAs gets a path with a token.
func getAs(b *backend, token, path string) response {
	b.t.Helper()
	return b.send(request{method: "GET", path: path, token: token})
}
