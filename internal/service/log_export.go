package service

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// ExportLog exports the log of an org from the database of the settings, which is not written.
// Without a name, it is the only org.
func ExportLog(ctx context.Context, s config.Settings, e transparency.Export) (done transparency.Exported, err error) {
	db, err := store.OpenSource(ctx, string(s.Database))
	if err != nil {
		return done, err
	}
	e.Store = store.NewReader(db, store.Options{})
	if e.Org == "" {
		e.Org, err = onlyOrg(ctx, e.Store)
	}
	if err == nil {
		done, err = e.Run(ctx)
	}
	return done, errors.Join(err, db.Changed(), db.Close())
}

// onlyOrg returns the name of the only org.
func onlyOrg(ctx context.Context, s *store.Store) (string, error) {
	page, err := s.Orgs(ctx, store.Query{Limit: 2})
	if err != nil {
		return "", err
	}
	if len(page.Data) != 1 {
		return "", errors.New("the database has more orgs than one, or none: name one with --org")
	}
	return page.Data[0].Name, nil
}
