package webhooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/internal/sealed"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// hookSecrets are the secrets of a webhook: its signing secrets and the Authorization header.
type hookSecrets struct {
	secret, previous string
	authorization    authorization
}

// An authorization is the value of an Authorization header after random text and a space, or empty. The
// random text prevents that the value is guessed from its digest in events.
type authorization string

// newAuthorization returns the authorization with the value of a header, which may be empty.
func newAuthorization(header string) authorization {
	if header == "" {
		return ""
	}
	return authorization(rand.Text() + " " + header)
}

// header returns the value of the header.
func (a authorization) header() string {
	_, header, _ := strings.Cut(string(a), " ")
	return header
}

// sealedSecrets are the secrets of a webhook as they are stored.
type sealedSecrets struct {
	id                              int64
	public                          string
	secret, previous, authorization string
	previousUntil                   ledger.Time
}

// open decrypts the secrets. A previous secret that has ended is empty.
func (h sealedSecrets) open(keys SecretKeys, now ledger.Time) (opened hookSecrets, err error) {
	opened.secret, err = keys.Open(h.secret, h.public)
	if err == nil && h.previousUntil > now {
		opened.previous, err = keys.Open(h.previous, h.public)
	}
	if err != nil {
		return hookSecrets{}, fmt.Errorf("decrypt the signing secret of webhook %s: %w", h.public, err)
	}
	if opened.authorization, err = openAuthorization(keys, h.authorization, h.public); err != nil {
		return hookSecrets{}, err
	}
	return opened, nil
}

// sealAuthorization encrypts the authorization of a webhook. It cannot be opened as a signing secret.
func sealAuthorization(keys SecretKeys, a authorization, webhook string) string {
	return keys.Seal(string(a), webhook+" authorization")
}

// openAuthorization is the inverse of sealAuthorization.
func openAuthorization(keys SecretKeys, stored, webhook string) (authorization, error) {
	a, err := keys.Open(stored, webhook+" authorization")
	if err != nil {
		return "", fmt.Errorf("decrypt the Authorization header of webhook %s: %w", webhook, err)
	}
	return authorization(a), nil
}

// areSealed reports whether the secrets are encrypted with the first key.
func (h sealedSecrets) areSealed(keys SecretKeys) bool {
	return keys.IsSealed(h.secret) && keys.IsSealed(h.previous) && keys.IsSealed(h.authorization)
}

// secretsBatch is the number of webhooks whose secrets are read, and encrypted, at once.
const secretsBatch = 100

// secretsAfter reads the secrets of the next webhooks.
func secretsAfter(rd txn.Reader, id int64) ([]sealedSecrets, error) {
	list, err := txn.All(rd, func(row txn.Scanner) (h sealedSecrets, err error) {
		return h, row.Scan(&h.id, &h.public, &h.secret, &h.previous, &h.previousUntil, &h.authorization)
	}, `
SELECT id, webhook_id, secret, previous_secret, previous_until, auth_header FROM webhooks
WHERE id > ? ORDER BY id LIMIT ?`, id, secretsBatch)
	if err != nil {
		return nil, fmt.Errorf("read the secrets of webhooks: %w", err)
	}
	return list, nil
}

// eachSecrets calls fn with the secrets of all webhooks, in batches. after is the id before the
// batch.
func (ob *Outbox) eachSecrets(ctx context.Context, fn func(batch []sealedSecrets, after int64) error) error {
	for after := int64(0); ; {
		batch, err := txn.Read(ctx, ob.db, txn.ForWrite(""), func(rd txn.Reader) ([]sealedSecrets, error) {
			return secretsAfter(rd, after)
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		if err := fn(batch, after); err != nil {
			return err
		}
		after = batch[len(batch)-1].id
	}
}

// failures counts webhooks whose secrets cannot be decrypted.
type failures struct {
	count int
	first error
}

func (f *failures) add(other failures) {
	f.count, f.first = f.count+other.count, cmp.Or(f.first, other.first)
}

// err returns the first failure with their number, or nil.
func (f *failures) err() error {
	if f.count > 1 {
		return fmt.Errorf("%w (and %d more)", f.first, f.count-1)
	}
	return f.first
}

// CheckSecretKeys returns an error if the secrets of webhooks are encrypted with keys that the
// store does not have.
func (ob *Outbox) CheckSecretKeys(ctx context.Context) error {
	var locked failures
	err := ob.eachSecrets(ctx, func(batch []sealedSecrets, _ int64) error {
		for _, h := range batch {
			if _, err := h.open(ob.keys, ob.db.Clock.Now()); errors.Is(err, sealed.ErrNoKey) {
				locked.add(failures{1, err})
			}
		}
		return nil
	})
	return cmp.Or(err, locked.err())
}

// EncryptSecrets encrypts the secrets of webhooks that are in plain text, or encrypted with
// another key than the first. It returns how many webhooks have changed. The error also names a
// webhook whose secrets cannot be decrypted; they stay as they are. Without keys it does nothing.
func (ob *Outbox) EncryptSecrets(ctx context.Context) (changed int, err error) {
	if !ob.keys.Any() {
		return 0, nil
	}
	var locked failures
	err = ob.eachSecrets(ctx, func(batch []sealedSecrets, after int64) error {
		if !slices.ContainsFunc(batch, func(h sealedSecrets) bool { return !h.areSealed(ob.keys) }) {
			return nil
		}
		done, err := txn.Write(ctx, ob.db, sqldb.Write{Yields: true}, func(t *txn.Tx) (encrypted, error) {
			return ob.encryptSecrets(t, after)
		})
		changed += done.changed
		locked.add(done.locked)
		return err
	})
	return changed, cmp.Or(err, locked.err())
}

// encrypted is the result of encrypting a batch of secrets.
type encrypted struct {
	changed int
	locked  failures
}

// encryptSecrets encrypts the secrets of a batch of webhooks. It reads them again, since they may
// have been rotated.
func (ob *Outbox) encryptSecrets(t *txn.Tx, after int64) (done encrypted, err error) {
	batch, err := secretsAfter(t.Reader, after)
	if err != nil {
		return done, err
	}
	for _, h := range batch {
		if h.areSealed(ob.keys) {
			continue
		}

		opened, err := h.open(ob.keys, t.Now)
		if err != nil {
			done.locked.add(failures{1, err})
			continue
		}
		_, err = t.Exec("UPDATE webhooks SET secret = ?, previous_secret = ?, auth_header = ? WHERE id = ?",
			ob.keys.Seal(opened.secret, h.public), ob.keys.Seal(opened.previous, h.public),
			sealAuthorization(ob.keys, opened.authorization, h.public), h.id)
		if err != nil {
			return done, fmt.Errorf("encrypt the secrets of webhook %s: %w", h.public, err)
		}
		done.changed++
	}
	return done, nil
}

// TidySecrets encrypts secrets and logs the result; at the start also if nothing has changed,
// because from then on only the first key is needed.
func (ob *Outbox) TidySecrets(ctx context.Context, start bool) {
	changed, err := ob.EncryptSecrets(ctx)
	if err != nil {
		if ctx.Err() == nil && !txn.IsUnavailable(err) {
			ob.db.Log.ErrorContext(ctx, "encrypting the secrets of webhooks failed", "error", err)
		}
		return
	}
	if changed > 0 || start && ob.keys.Any() {
		ob.db.Log.InfoContext(ctx, "the secrets of all webhooks are encrypted with the first key", "changed", changed)
	}
}
