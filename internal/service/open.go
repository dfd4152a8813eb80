package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/store"
)

// openStore opens the database of the settings. A server needs the keys of all signing secrets in
// it, while commands can do without. It ends the sign-ins of orgs that may no longer use a provider.
func openStore(ctx context.Context, s config.Settings, o store.Options) (*store.Store, error) {
	keys, err := s.Webhooks.LoadSecretKeys()
	if err != nil {
		return nil, err
	}
	providers, err := s.SignIn.LoadProviders(s.BaseURL)
	if err != nil {
		return nil, err
	}
	o.Providers, o.ParseRoot = idp.Orgs(providers), sigstore.ParseRoot
	o.SecretKeys, o.NoCopy, o.ExternalCheckpoints = keys, s.NoCopy, s.ExternalCheckpoints
	db, err := store.Open(ctx, string(s.Database), o)
	if err != nil || !o.Serve {
		return db, err
	}
	if err := errors.Join(CheckSecretKeys(ctx, db), db.EndSignInsOfProviders(ctx)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// CheckSecretKeys returns an error if the secrets of webhooks are encrypted with keys that
// are not in the file of the settings.
func CheckSecretKeys(ctx context.Context, db *store.Store) error {
	if err := db.CheckSecretKeys(ctx); err != nil {
		return fmt.Errorf("webhooks.secrets_key: %w (add the key to its file, or give these webhooks new secrets "+
			"with 'ledgerd webhook rotate --overlap 0s')", err)
	}
	return nil
}
