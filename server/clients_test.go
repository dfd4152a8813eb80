package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

// The ledger knows the oldest version of ledgerd that has used a token in the last 30 days.
func TestOldestClientOfAToken(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		oldest := func(than string) (version string) {
			t.Helper()
			glance, err := b.store.Glance(t.Context(), than, 10)
			must.OK(t, err)
			for _, c := range glance.OldClients {
				if c.Org != "acme" || len(glance.OldClients) > 1 {
					t.Errorf("old clients: %+v", glance.OldClients)
				}
				version = c.Version
			}
			return version
		}

		for _, step := range []struct {
			after     time.Duration
			userAgent string
			want      string // of those before v1.9.0
		}{
			{0, "curl/8.0", ""},
			{time.Minute, "ledgerd/(devel)", ""},
			{time.Minute, "ledgerd/v1.9.0", ""},
			{time.Minute, "ledgerd/v1.8.0", "v1.8.0"},
			{time.Second, "ledgerd/v1.6.0", "v1.8.0"}, // once a minute
			{time.Minute, "ledgerd/v1.7.0-rc.1", "v1.7.0-rc.1"},
			{time.Minute, "ledgerd/v1.10.0", "v1.7.0-rc.1"},
			{29 * 24 * time.Hour, "ledgerd/v1.9.0", "v1.7.0-rc.1"},
			{24 * time.Hour, "curl/8.0", ""},
			{time.Minute, "ledgerd/v1.9.0", ""},
		} {
			b.clock.advance(step.after)
			b.send(request{method: "GET", path: "/v1/token", token: b.admin,
				header: map[string]string{"User-Agent": step.userAgent}}).want(200)
			synctest.Wait()

			if got := oldest("v1.9.0"); got != step.want {
				t.Errorf("after %s: the oldest is %q, want %q", step.userAgent, got, step.want)
			}
		}
	})
}
