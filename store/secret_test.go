package store_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// secretKeys returns keys that encrypt signing secrets, each made of a number.
func secretKeys(t *testing.T, numbers ...byte) store.SecretKeys {
	t.Helper()
	var file strings.Builder
	for _, n := range numbers {
		fmt.Fprintln(&file, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 32)))
	}
	if len(numbers) == 0 {
		return store.SecretKeys{}
	}
	keys, err := store.ReadSecretKeys(strings.NewReader(file.String()))
	must.OK(t, err)
	return keys
}

// A secretsFile is a database with webhooks, which is opened with different keys.
type secretsFile struct {
	t    *testing.T
	path string
}

func newSecretsFile(t *testing.T) secretsFile {
	f := secretsFile{t, store.NewFile(t)}
	f.with(nil, func(s *store.Store) {
		_, err := s.CreateOrg(t.Context(), "acme")
		must.OK(t, err)
		for n := range 5 {
			_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: fmt.Sprint("api-", n)}, "host")
			must.OK(t, err)
		}
	})
	return f
}

// with opens the database with keys.
func (f secretsFile) with(keys []byte, fn func(*store.Store)) {
	f.t.Helper()
	s := must.Get(store.Open(f.t.Context(), f.path, store.Options{SecretKeys: secretKeys(f.t, keys...)}))(f.t)
	fn(s)
	must.OK(f.t, s.Close())
}

// hook creates the nth webhook, whose secret is named after it.
func (f secretsFile) hook(s *store.Store, n int) outbound.Webhook {
	f.t.Helper()
	hook := outbound.NewWebhook{URL: "https://ci.example.com/ledger", Authorization: authorization}
	must.OK(f.t, hook.Check())
	w, err := s.CreateWebhook(f.t.Context(), "acme", fmt.Sprint("api-", n%5), hook, secretOf(n))
	must.OK(f.t, err)
	return w
}

// authorization is the Authorization header of all webhooks.
const authorization = "Bearer secret"

func secretOf(n int) string { return fmt.Sprintf("whsec_secret-%d", n) }

// run runs a statement on the closed database.
func (f secretsFile) run(statement string, args ...any) {
	f.t.Helper()
	db, err := sql.Open("sqlite", "file:"+f.path)
	must.OK(f.t, err)
	_, err = db.Exec(statement, args...)
	must.OK(f.t, errors.Join(err, db.Close()))
}

// claims checks that a webhook is claimed with its secrets, or why it is not.
func (f secretsFile) claims(s *store.Store, w outbound.Webhook, secret, previous, why string) {
	f.t.Helper()
	e, _, err := s.Claim(f.t.Context(), w.ID, 1, time.Second)
	if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
		f.t.Fatalf("claim: %v, want %q", err, why)
	}
	if err == nil && e.Authorization != authorization {
		f.t.Errorf("claimed with the header %q", e.Authorization)
	}
	if e.Secret != secret || e.PreviousSecret != previous {
		f.t.Errorf("claimed with the secrets %q and %q, want %q and %q", e.Secret, e.PreviousSecret, secret, previous)
	}
}

// TestSecretsAreEncrypted checks what is on disk, and that a key can be replaced.
func TestSecretsAreEncrypted(t *testing.T) {
	f := newSecretsFile(t)
	var plain, rotated outbound.Webhook
	f.with(nil, func(s *store.Store) {
		plain = f.hook(s, 1)
		if n, err := s.EncryptSecrets(t.Context()); n != 0 || err != nil {
			t.Errorf("without keys, %d secrets are encrypted, %v", n, err)
		}
	})

	// A database with plain secrets gets a key.
	f.with([]byte{1}, func(s *store.Store) {
		f.claims(s, plain, secretOf(1), "", "")
		rotated = f.hook(s, 2)
		_, err := s.RotateWebhook(t.Context(), "acme", rotated.Repo, rotated.ID, secretOf(3), time.Hour)
		must.OK(t, err)
		for _, want := range []int{1, 0} { // only the plain one, once
			if n, err := s.EncryptSecrets(t.Context()); n != want || err != nil {
				t.Errorf("%d secrets are encrypted, %v; want %d", n, err, want)
			}
		}
		f.claims(s, plain, secretOf(1), "", "")
		f.claims(s, rotated, secretOf(3), secretOf(2), "")
	})

	// A new key replaces it.
	f.with([]byte{2, 1}, func(s *store.Store) {
		f.claims(s, rotated, secretOf(3), secretOf(2), "")
		if n, err := s.EncryptSecrets(t.Context()); n != 2 || err != nil {
			t.Errorf("%d secrets are encrypted again, %v; want 2", n, err)
		}
	})
	f.with([]byte{2}, func(s *store.Store) {
		must.OK(t, s.CheckSecretKeys(t.Context()))
		f.claims(s, plain, secretOf(1), "", "")
		f.claims(s, rotated, secretOf(3), secretOf(2), "")
	})
}

// TestSecretsThatCannotBeDecrypted checks that nothing is claimed, and nothing is lost.
func TestSecretsThatCannotBeDecrypted(t *testing.T) {
	const moved = "UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE id = 1) WHERE id = 2"
	for _, test := range []struct {
		name      string
		keys      []byte
		change    string // of the file
		claim     string // why the second webhook cannot be claimed
		missing   bool   // whether the check of the keys fails
		encrypted int    // how many webhooks have secrets that are encrypted again
		locked    bool   // whether others should be
	}{
		{name: "nothing is wrong", keys: []byte{1}},
		{name: "no keys", claim: "encrypted with the key 72cd6e84: the key is missing", missing: true},
		{name: "another key", keys: []byte{2}, claim: "the key is missing", missing: true, locked: true},
		{name: "the secret of another webhook", keys: []byte{1}, change: moved, claim: "is not of whk_"},
		{
			name: "the secret of another webhook, when the key is replaced", keys: []byte{2, 1}, change: moved,
			claim: "is not of whk_", encrypted: 2, locked: true,
		},
		{
			name: "cut off", keys: []byte{1}, change: "UPDATE webhooks SET secret = substr(secret, 1, 42) WHERE id = 2",
			claim: "was changed",
		},
		{
			name: "the header is a signing secret", keys: []byte{1}, change: "UPDATE webhooks SET auth_header = secret",
			claim: "decrypt the Authorization header of webhook whk_",
		},
		{
			name: "the previous one is damaged", keys: []byte{1},
			change: "UPDATE webhooks SET previous_secret = 'enc1:x' WHERE id = 2", claim: "names no key", locked: true,
		},
		{
			name: "a previous one that has ended is damaged", keys: []byte{1},
			change: "UPDATE webhooks SET previous_secret = 'enc1:x', previous_until = 1 WHERE id = 2", encrypted: 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newSecretsFile(t)
			var w outbound.Webhook
			f.with([]byte{1}, func(s *store.Store) {
				f.hook(s, 1)
				w = f.hook(s, 2)
				f.hook(s, 3)
				_, err := s.RotateWebhook(t.Context(), "acme", w.Repo, w.ID, secretOf(4), time.Hour)
				must.OK(t, err)
				_, err = s.PingWebhook(t.Context(), "acme", w.Repo, w.ID)
				must.OK(t, err)
			})
			if test.change != "" {
				f.run(test.change)
			}

			f.with(test.keys, func(s *store.Store) {
				if err := s.CheckSecretKeys(t.Context()); (err != nil) != test.missing {
					t.Errorf("the check of the keys returned %v", err)
				} else if err != nil && !strings.HasSuffix(err.Error(), "the key is missing (and 2 more)") {
					t.Errorf("the check of the keys returned %q", err)
				}
				n, err := s.EncryptSecrets(t.Context())
				if n != test.encrypted || (err != nil) != test.locked {
					t.Errorf("%d secrets are encrypted, %v; want %d", n, err, test.encrypted)
				}
				if test.claim != "" {
					f.claims(s, w, "", "", test.claim)
				}
				due, err := s.DueWebhooks(t.Context())
				if err != nil || len(due) != 1 || due[0] != w.ID {
					t.Errorf("due are %v, %v; want the webhook", due, err)
				}

				// A new secret and a new header need none of the old keys.
				_, err = s.RotateWebhook(t.Context(), "acme", w.Repo, w.ID, secretOf(5), 0)
				must.OK(t, err)
				change := outbound.WebhookChange{Authorization: new(authorization)}
				_, err = s.ChangeWebhook(t.Context(), "acme", w.Repo, w.ID, change)
				must.OK(t, err)
				f.claims(s, w, secretOf(5), "", "")
			})
		})
	}
}

// TestManySecrets checks that more webhooks than a batch has are all encrypted.
func TestManySecrets(t *testing.T) {
	f := newSecretsFile(t)
	var hooks []outbound.Webhook
	f.with(nil, func(s *store.Store) {
		for n := range 202 {
			hooks = append(hooks, f.hook(s, n))
		}
		must.OK(t, s.DeleteWebhook(t.Context(), "acme", hooks[99].Repo, hooks[99].ID))
	})

	f.with([]byte{1}, func(s *store.Store) {
		if n, err := s.EncryptSecrets(t.Context()); n != 201 || err != nil {
			t.Errorf("%d secrets are encrypted, %v; want 201", n, err)
		}
		for n, w := range hooks {
			if n != 99 {
				f.claims(s, w, secretOf(n), "", "")
			}
		}
	})
	f.with(nil, func(s *store.Store) {
		if err := s.CheckSecretKeys(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "(and 200 more)") {
			t.Errorf("the check of the keys returned %v", err)
		}
	})
}

// TestBackupHasNoPlainSecret checks that a database which had a key from the start, and its
// backups, do not contain the secrets.
func TestBackupHasNoPlainSecret(t *testing.T) {
	for _, test := range []struct {
		name string
		keys []byte
		want bool // whether the secrets are found
	}{
		{"with a key", []byte{1}, false},
		{"without", nil, true}, // so the search finds what is there
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newSecretsFile(t)
			copied := filepath.Join(t.TempDir(), "backup.db")
			f.with(test.keys, func(s *store.Store) {
				w := f.hook(s, 1)
				_, err := s.RotateWebhook(t.Context(), "acme", w.Repo, w.ID, secretOf(2), time.Hour)
				must.OK(t, err)
				_, err = sqlite.Backup{From: f.path, To: copied}.Run(t.Context())
				must.OK(t, err)

				for _, file := range []string{copied, f.path, f.path + "-wal"} {
					content := must.Read(t, file)
					found := bytes.Contains(content, []byte(secretOf(1))) || bytes.Contains(content, []byte(secretOf(2)))
					if found != test.want && (file == copied || !test.want) {
						t.Errorf("%s: the secrets are found: %t", filepath.Base(file), found)
					}
				}
			})
		})
	}
}
