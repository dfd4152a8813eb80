package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// TestFaultClockJumps checks that a jump of the system clock ends no token and no session
// before it has held for a minute, and that none lives on after a jump back.
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
	jump := func(d time.Duration) {
		wall = wall.Add(d)
		must.OK(t, db.Settle(t.Context()))
	}

	_, err = db.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	secret := ledger.NewSecret()
	hash, err := ledger.ParseSecret(secret)
	must.OK(t, err)
	token := ledger.NewToken{Name: "me", Scope: ledger.Read, ExpiresAt: db.Now().Add(9 * 24 * time.Hour)}
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

	wantClock := func(want string) {
		t.Helper()
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if body := w.Body.String(); w.Code != 200 || body != want {
			t.Errorf("/readyz returns %d %s, want %s", w.Code, body, want)
		}
	}

	want("before", 200, 200)
	wantClock(`{"status":"ok"}`)
	for _, d := range []time.Duration{10 * 24 * time.Hour, 40 * 24 * time.Hour, -40 * 24 * time.Hour} {
		jump(d)
		pass(50 * time.Second)
		want("a brief jump by "+d.String(), 200, 200)
		wantClock(fmt.Sprintf(`{"status":"ok","clock":{"jumped":true,"lead_ms":%d,"id_lead_ms":0}}`, -d.Milliseconds()))
		jump(-d)
		pass(time.Second)
	}
	wantClock(`{"status":"ok"}`)
	jump(-time.Hour)
	wantClock(`{"status":"ok","clock":{"jumped":false,"lead_ms":3600000,"id_lead_ms":0}}`)
	pass(12*time.Hour - time.Minute)
	want("12 hours later, an hour back", 200, 200)
	pass(2 * time.Hour)
	want("the session has ended", 200, 401)

	jump(40 * 24 * time.Hour)
	pass(59 * time.Second)
	want("the jump has not held", 200, 401)
	pass(time.Second)
	want("the jump has held", 401, 401)
	jump(-40 * 24 * time.Hour)
	pass(time.Minute)
	want("put right", 200, 401)
	pass(9 * 24 * time.Hour)
	want("nine days later", 401, 401)
}
