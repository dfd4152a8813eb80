package dispatch_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/webhook"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestFaultClockGoesBack checks that a retry does not wait until the clock shows again what
// it showed before, and that signatures have the time of the system clock, also while nothing is recorded
// because of it.
func TestFaultClockGoesBack(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]time.Duration{"an hour": time.Hour, "40 days": 40 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			attempts := make(chan error, 100)
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err == nil {
					err = webhook.Verify(hookSecret, r.Header, body, f.now())
				}
				attempts <- err
				w.WriteHeader(500)
			}))
			defer receiver.Close()
			f.start(func(c *dispatch.Config) {
				c.Schedule = []time.Duration{3 * time.Second, time.Second, time.Second, time.Second}
			})
			f.ping(f.webhook(receiver.URL))
			wantAttempt(t, attempts)

			time.Sleep(500 * time.Millisecond) // until the outcome is recorded
			f.advance(-back)
			wantAttempt(t, attempts)
		})
	}
}

// wantAttempt waits for an attempt with a valid signature.
func wantAttempt(t *testing.T, attempts <-chan error) {
	t.Helper()
	select {
	case err := <-attempts:
		must.OK(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("no attempt within 30 s")
	}
}
