package upkeep

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
func (u *Upkeep) Tidy(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	u.webhooks.TidySecrets(ctx, true)
	var page int64 // position of the next page
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			page = u.TidyOnce(ctx, page)
		}
	}
}

// TidyOnce prunes once, and looks for closed overlaps in the page of tips that begins at a position. It returns that of
// the next page. It logs errors.
func (u *Upkeep) TidyOnce(ctx context.Context, page int64) (next int64) {
	u.webhooks.TidySecrets(ctx, false)
	if u.db.Clock.Refusal() != nil { // by another one, it may be too early
		return page
	}
	for _, p := range u.pruners() {
		if err := p.prune(ctx); err != nil && ctx.Err() == nil && !txn.IsUnavailable(err) {
			u.db.Log.ErrorContext(ctx, "pruning "+p.what+" failed", "error", err)
		}
	}

	next, err := u.radar.PruneClosedOverlaps(ctx, page)
	if err != nil && ctx.Err() == nil && !txn.IsUnavailable(err) {
		u.db.Log.ErrorContext(ctx, "pruning overlaps failed", "error", err)
	}
	return next
}

// Prune deletes what is no longer needed: deliveries that finished more than
// Options.KeepDeliveries ago, or as long as their repo keeps them, deleted webhooks with their
// deliveries, the overlaps of tips that are out of flight, and expired sessions, exchanged tokens, used tokens, drafts
// and sign-ins.
// While the clock is wrong, it deletes nothing.
func (u *Upkeep) Prune(ctx context.Context) error {
	if u.db.Clock.Refusal() != nil {
		return nil
	}
	var errs []error
	for _, p := range u.pruners() {
		errs = append(errs, p.prune(ctx))
	}
	for page, more := int64(0), true; more; more = page != 0 {
		var err error
		if page, err = u.radar.PruneClosedOverlaps(ctx, page); err != nil {
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
func (u *Upkeep) pruners() []pruner {
	return []pruner{
		{"the delivery log", u.webhooks.PruneDeliveries},
		{"tips", u.radar.PruneTips},
		{"sessions", u.access.PruneSessions},
		{"drafts of reviews", u.access.PruneDrafts}, // before sign-ins, which they name
		{"challenges of passkeys", u.access.PrunePasskeyChallenges},
		{"exchanged tokens", u.access.PruneExchanged},
		{"used tokens", u.access.PruneUsed},
		{"sign-ins", u.access.PruneSignIns}, // after their sessions and drafts
	}
}
