package store

import (
	"context"
	"errors"
	"time"

	"github.com/ledgerd/ledgerd/store/txn"
)

// pruneInterval is how often Tidy prunes, and how often a repo is pruned at most.
const pruneInterval = time.Minute

// Tidy prunes every minute until ctx is done. Errors are logged, and retried a minute
// later. It looks for closed overlaps in one page of the tips each time. At the start and
// every minute, it also encrypts the signing secrets that are not encrypted with the first
// of Options.SecretKeys.
func (s *Store) Tidy(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	s.TidySecrets(ctx, true)
	var page int64 // position of the next page
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			page = s.tidy(ctx, page)
		}
	}
}

func (s *Store) tidy(ctx context.Context, page int64) (next int64) {
	s.TidySecrets(ctx, false)
	if s.CheckClock() != nil { // by another one, it may be too early
		return page
	}
	for _, p := range s.pruners() {
		if err := p.prune(ctx); err != nil && ctx.Err() == nil && !txn.IsUnavailable(err) {
			s.db.Log.ErrorContext(ctx, "pruning "+p.what+" failed", "error", err)
		}
	}

	next, err := s.PruneClosedOverlaps(ctx, page)
	if err != nil && ctx.Err() == nil && !txn.IsUnavailable(err) {
		s.db.Log.ErrorContext(ctx, "pruning overlaps failed", "error", err)
	}
	return next
}

// Prune deletes what is no longer needed: deliveries that finished more than
// Options.KeepDeliveries ago, or as long as their repo keeps them, deleted webhooks with their
// deliveries, the overlaps of tips that are out of flight, and expired sessions, exchanged tokens, used tokens, drafts
// and sign-ins.
// While the clock is wrong, it deletes nothing.
func (s *Store) Prune(ctx context.Context) error {
	if s.CheckClock() != nil {
		return nil
	}
	var errs []error
	for _, p := range s.pruners() {
		errs = append(errs, p.prune(ctx))
	}
	for page, more := int64(0), true; more; more = page != 0 {
		var err error
		if page, err = s.PruneClosedOverlaps(ctx, page); err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(errs...)
}

// A pruner prunes something.
type pruner struct {
	what  string
	prune func(context.Context) error
}

// pruners returns what is pruned as a whole each time.
func (s *Store) pruners() []pruner {
	return []pruner{
		{"the delivery log", s.Outbox.PruneDeliveries},
		{"tips", s.PruneTips},
		{"sessions", s.PruneSessions},
		{"drafts of reviews", s.PruneDrafts}, // before sign-ins, which they name
		{"challenges of passkeys", s.PrunePasskeyChallenges},
		{"exchanged tokens", s.PruneExchanged},
		{"used tokens", s.PruneUsed},
		{"sign-ins", s.PruneSignIns}, // after their sessions and drafts
	}
}
