package service

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// BeginEpoch replaces the log of an org, in the database of the settings, with one that has a
// new key. A server that uses the database signs the new log within a second.
func BeginEpoch(
	ctx context.Context, s config.Settings, n transparency.NewEpoch,
) (b transparency.Begun, err error) {
	if err := CheckExists(string(s.Database), "--server"); err != nil {
		return b, err
	}
	if err := s.CheckForServer(); err != nil {
		return b, err
	}
	o := store.Options{NoCopy: s.NoCopy, ExternalCheckpoints: s.ExternalCheckpoints}
	db, err := store.Open(ctx, string(s.Database), o)
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
