package store

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Glance is what a look at a database shows of its surroundings, without a server.
type Glance struct {
	Last ledger.Time // the latest time in the ids of the database; zero if it has none
	// WebhookURLs are those of active webhooks, at most as many as were asked for.
	WebhookURLs []string
}

// Glance returns the latest time of the database, and the URLs of active webhooks.
func (s *Store) Glance(ctx context.Context, maxURLs int) (Glance, error) {
	return read(ctx, s, forWrite(""), func(rd reader) (g Glance, err error) {
		if g.Last, err = rd.lastStamp(); err != nil {
			return g, err
		}
		g.WebhookURLs, err = all(rd, scanText,
			"SELECT url FROM webhooks WHERE active = 1 AND deleted_at = 0 ORDER BY id LIMIT ?", maxURLs)
		return g, err
	})
}
