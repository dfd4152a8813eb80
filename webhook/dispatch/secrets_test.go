package dispatch_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/webhook"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestEncryptedSecrets checks that deliveries are signed, whichever key the secret is encrypted
// with, and that they wait if the key is missing.
func TestEncryptedSecrets(t *testing.T) {
	const first, second, third = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
		"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=", "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="
	r := receive(t, nil)
	path := storetest.NewFile(t)
	var w outbound.Webhook
	var waiting []string // deliveries that were not sent

	for _, step := range []struct {
		name string
		keys string
		fail bool
	}{
		{name: "without a key"},
		{name: "with the first key", keys: first},
		{name: "with a new key before the first", keys: second + "\n" + first},
		{name: "with the new key alone", keys: second},
		{name: "with another key", keys: third, fail: true},
		{name: "without a key again", fail: true},
		{name: "with the right key again", keys: second},
	} {
		t.Run(step.name, func(t *testing.T) {
			f := openWith(t, path, step.keys)
			if w.ID == "" {
				storetest.CreateAcme(t, f.Store)
				w = f.webhook(r.URL)
			}
			if _, err := f.EncryptSecrets(t.Context()); (err != nil) != (step.fail && step.keys != "") {
				t.Errorf("encrypt: %v", err)
			}
			var logged testenv.Buffer
			f.start(func(c *dispatch.Config) { c.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
			waiting = append(waiting, f.ping(w).ID)

			if step.fail {
				eventually(t, func() bool { return strings.Contains(logged.String(), "the key is missing") })
				if d := f.delivery(w, waiting[0]); d.Status != outbound.DeliveryPending || d.Attempts != 0 {
					t.Errorf("the delivery is %s after %d attempts, want pending", d.Status, d.Attempts)
				}
				return
			}
			for _, id := range waiting {
				f.attempted(w, id, 1)
			}
			waiting = nil
		})
	}

	if r.count() != 7 {
		t.Errorf("%d deliveries, want 7", r.count())
	}
	for _, got := range r.all() {
		must.OK(t, webhook.Verify(hookSecret, got.header, got.body, time.Now()))
	}
}

// openWith opens a store whose signing secrets are encrypted with keys, until the test ends.
func openWith(t *testing.T, path, keys string) *fixture {
	t.Helper()
	f := &fixture{t: t}
	o := store.Options{Now: f.now}
	var err error
	if keys != "" {
		o.SecretKeys, err = store.ReadSecretKeys(strings.NewReader(keys))
		must.OK(t, err)
	}
	f.Store = must.Get(store.Open(t.Context(), path, o))(t)
	t.Cleanup(func() { f.Close() })
	return f
}
