package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// BeginEpoch replaces the log of an org, in the database of the settings, with one that has a
// new key. A server that uses the database signs the new log within a second.
func BeginEpoch(
	ctx context.Context, s config.Settings, n transparency.NewEpoch,
) (b transparency.Begun, err error) {
	if _, err := os.Stat(s.Database); err != nil {
		return b, fmt.Errorf("open the database: %w", err)
	}
	if err := CheckDatabase(s.Database); err != nil {
		return b, err
	}
	db, err := store.Open(ctx, s.Database, store.Options{NoCopy: s.NoCopy, ExternalCheckpoints: s.ExternalCheckpoints})
	if err != nil {
		return b, err
	}
	signer, err := newSigner(s, db, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return b, errors.Join(err, db.Close())
	}
	b, err = signer.Begin(store.WithActor(ctx, HostActor()), n)
	return b, errors.Join(err, db.Close())
}
