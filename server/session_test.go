package server

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// as sends a request with a session, in process.
func (b *backend) as(session, method, path string) response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.server.WithSession(b.t.Context(), session), method, "http://localhost"+path,
		nil)
	must.OK(b.t, err)
	req.Body = http.NoBody // as a server sets it
	client := &http.Client{Transport: &inProcess{b.server.Sessions()}}
	resp, err := client.Do(req)
	must.OK(b.t, err)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(b.t)
	return response{b.t, method + " " + path, resp.StatusCode, resp.Header, body}
}

// A session has exactly the permissions of its token, and ends with it.
func TestSessions(t *testing.T) {
	b := newBackend(t)
	session, expires, err := b.server.SignIn(t.Context(), b.reader)
	must.OK(t, err)
	if want := b.clock.time().Add(12 * time.Hour); expires != want {
		t.Errorf("session expires %s, want %s", expires, want)
	}
	if got := decode[ledger.Token](b.as(session, "GET", "/v1/token").want(200)); got.Scope != ledger.Read ||
		got.Org != "acme" {
		t.Errorf("token of the session: %+v", got)
	}
	b.as(session, "GET", "/v1/orgs/acme/tokens").wantProblem(403, ledger.CodeForbidden)
	b.as(session, "GET", "/v1/orgs/umbrella").wantProblem(403, ledger.CodeForbidden)
	b.as("", "GET", "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
	b.as(session+"A", "GET", "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)

	for name, bad := range map[string]string{"empty": "", "malformed": "hello", "unknown": ledger.NewSecret()} {
		if _, _, err := b.server.SignIn(t.Context(), bad); err == nil {
			t.Errorf("signed in with a token that is %s", name)
		}
	}

	t.Run("signed out", func(t *testing.T) {
		b := b.in(t)
		other, _, err := b.server.SignIn(t.Context(), b.reader)
		must.OK(t, err)
		must.OK(t, b.server.SignOut(t.Context(), other))
		must.OK(t, b.server.SignOut(t.Context(), other))
		b.as(other, "GET", "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
		b.as(session, "GET", "/v1/token").want(200)
	})
	t.Run("token revoked", func(t *testing.T) {
		b := b.in(t)
		writer, _, err := b.server.SignIn(t.Context(), b.writer)
		must.OK(t, err)
		token := decode[ledger.Token](b.as(writer, "GET", "/v1/token").want(200))
		b.delete("/v1/orgs/acme/tokens/" + token.ID).want(204)
		b.as(writer, "GET", "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
		if _, _, err := b.server.SignIn(t.Context(), b.writer); err == nil {
			t.Error("signed in with a revoked token")
		}
	})
	t.Run("expired", func(t *testing.T) {
		b := b.in(t)
		b.clock.advance(12*time.Hour - time.Millisecond)
		b.as(session, "GET", "/v1/token").want(200)
		b.clock.advance(time.Millisecond)
		b.as(session, "GET", "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
	})
}

// No header of a request from the network authenticates a session. A session is not
// valid for the API with tokens, or a token for the API with sessions.
func TestSessionsAreOnlyInProcess(t *testing.T) {
	b := newBackend(t)
	session, _, err := b.server.SignIn(t.Context(), b.admin)
	must.OK(t, err)
	for _, header := range []map[string]string{
		{"Cookie": "ledgerd=" + session},
		{"Cookie": "__Host-ledgerd=" + session},
		{"Authorization": "Bearer " + session},
		{"Authorization": "Session " + session},
		{"X-Session": session},
	} {
		b.send(request{method: "GET", path: "/v1/token", header: header}).wantProblem(401, ledger.CodeUnauthenticated)

		req := must.Get(http.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/token", nil))(t)
		for name, value := range header {
			req.Header.Set(name, value)
		}
		req.Header.Add("Authorization", "Bearer "+b.admin)
		req.Body = http.NoBody
		resp, err := (&inProcess{b.server.Sessions()}).RoundTrip(req)
		must.OK(t, err)
		if resp.StatusCode != 401 {
			t.Errorf("the API for sessions accepts %v: %d", header, resp.StatusCode)
		}
	}

	// The handler for the network ignores the session in the context.
	req, err := http.NewRequestWithContext(b.server.WithSession(t.Context(), session), "GET", "http://localhost/v1/token",
		nil)
	must.OK(t, err)
	req.Body = http.NoBody
	resp, err := (&inProcess{b.server.Handler()}).RoundTrip(req)
	must.OK(t, err)
	if resp.StatusCode != 401 {
		t.Errorf("the API for the network accepts a session: %d", resp.StatusCode)
	}
}
