package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// TestFaultClockJumps checks that a jump of the system clock ends no token and no session before the
// clock is accepted, that nothing is recorded in the meantime, and that /readyz says why.
func TestFaultClockJumps(t *testing.T) {
	wall, monotonic := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), time.Duration(0)
	db, err := store.Open(t.Context(), storetest.NewFile(t), store.Options{
		Now: func() time.Time { return wall }, Monotonic: func() time.Duration { return monotonic },
	})
	must.OK(t, err)
	defer db.Close()
	s := New(Config{Store: db})
	pass := func(d time.Duration) {
		wall, monotonic = wall.Add(d), monotonic+d
		must.OK(t, db.Settle(t.Context()))
	}
	jumps := func(d time.Duration) {
		wall = wall.Add(d)
		must.OK(t, db.Settle(t.Context()))
	}

	storetest.CreateAcme(t, db)
	secret := ledger.NewSecret()
	hash, err := ledger.ParseSecret(secret)
	must.OK(t, err)
	token := ledger.NewToken{Name: "me", Scope: ledger.Write, ExpiresAt: db.Now().Add(9 * 24 * time.Hour)}
	_, err = db.CreateToken(t.Context(), "acme", token, hash)
	must.OK(t, err)
	session, _, err := s.SignIn(t.Context(), secret)
	must.OK(t, err)

	want := func(what string, status, statusOfSession int) {
		t.Helper()
		get := func(handler http.Handler, r *http.Request) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code
		}
		r := httptest.NewRequest("GET", "/v1/token", nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		if got := get(s.Handler(), r); got != status {
			t.Errorf("%s: the token gets %d, want %d", what, got, status)
		}
		r = httptest.NewRequest("GET", "/v1/token", http.NoBody)
		if got := get(s.Sessions(), r.WithContext(s.WithSession(r.Context(), session))); got != statusOfSession {
			t.Errorf("%s: the session gets %d, want %d", what, got, statusOfSession)
		}
	}

	wantReady := func(status int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if body := w.Body.String(); w.Code != status || !strings.Contains(body, want) {
			t.Errorf("/readyz returns %d %s, want %d %s", w.Code, body, status, want)
		}
	}
	wantRefused := func(want string) {
		t.Helper()
		r := httptest.NewRequest("PUT", "/v1/orgs/acme/repos/api/commits/"+strings.Repeat("1", 40), strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if body := w.Body.String(); w.Code != 503 || !strings.Contains(body, `"code":"clock_jumped"`) ||
			!strings.Contains(body, want) || w.Header().Get("Retry-After") == "" {
			t.Errorf("a write returns %d %s %v, want 503 %s", w.Code, body, w.Header(), want)
		}
	}

	want("before", 200, 200)
	wantReady(200, `{"status":"ok"}`)
	for jump, reason := range map[time.Duration]string{
		10 * 24 * time.Hour: "the system clock has jumped ahead: it shows 2026-11-30T09:0",
		-3 * time.Hour:      "the system clock is behind: it shows 2026-11-20T06:0",
	} {
		jumps(jump)
		pass(50 * time.Second)
		want("a brief jump by "+jump.String(), 200, 200)
		wantReady(503, `"detail":"not ready: `+reason)
		wantReady(503, `"code":"clock_jumped"`)
		wantRefused(`"detail":"` + reason)
		jumps(-jump)
		pass(time.Second)
	}
	wantReady(200, `{"status":"ok"}`)
	jumps(-time.Hour)
	wantReady(200, `{"status":"ok","clock":{"lead_ms":3600000,"id_lead_ms":0}}`)
	pass(12*time.Hour - 2*time.Minute)
	want("12 hours later, an hour back", 200, 200)
	pass(2 * time.Hour)
	want("the session has ended", 200, 401)
}
