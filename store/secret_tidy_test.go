package store

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store/txn"
)

// TestTidyEncryptsSecrets checks that a secret which another process has stored in plain text is
// encrypted within a minute, and what is logged of it.
func TestTidyEncryptsSecrets(t *testing.T) {
	keys, err := ReadSecretKeys(strings.NewReader(base64.StdEncoding.EncodeToString(make([]byte, 32))))
	must.OK(t, err)
	var log bytes.Buffer
	path := NewFile(t)
	s, err := Open(t.Context(), path, Options{SecretKeys: keys, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must.OK(t, err)
	defer s.Close()
	createAcme(t, s)
	other, err := Open(t.Context(), path, Options{})
	must.OK(t, err)
	defer other.Close()
	hook := outbound.NewWebhook{URL: "https://ci.example.com/ledger"}
	must.OK(t, hook.Check())

	for _, step := range []struct {
		name    string
		store   *Store // creates a webhook
		changed string // in the log
	}{
		{"by this process", s, ""},
		{"by another process", other, "changed=1"},
		{"by nobody", nil, ""},
	} {
		log.Reset()
		if step.store != nil {
			_, err := step.store.CreateWebhook(t.Context(), "acme", "api", hook, outbound.NewWebhookSecret())
			must.OK(t, err)
		}
		s.TidyOnce(t.Context(), 0)

		secrets, err := txn.Read(t.Context(), s.db, txn.ForWrite(""), func(rd txn.Reader) ([]string, error) {
			return txn.All(rd, txn.ScanText, "SELECT secret FROM webhooks")
		})
		must.OK(t, err)
		for _, secret := range secrets {
			if !keys.IsSealed(secret) {
				t.Errorf("%s: a secret is in plain text", step.name)
			}
		}
		if got := log.String(); (got == "") != (step.changed == "") || !strings.Contains(got, step.changed) {
			t.Errorf("%s: the log has %q, want %q", step.name, got, step.changed)
		}
	}
}
