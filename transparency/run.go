package transparency

import (
	"context"
	"time"

	"github.com/ledgerd/ledgerd/store"
)

const (
	// interval is how often a log is signed at most, and checkInterval how often all logs are
	// checked, and sent to the witnesses again.
	interval, checkInterval = time.Second, time.Hour
)

// Run signs the logs that have new events, each at most once a second, until ctx is done. At
// the start and every hour it checks all logs.
func (s *Signer) Run(ctx context.Context) {
	if s.BaseURL == nil {
		return
	}
	tick, check := time.NewTicker(interval), time.NewTicker(checkInterval)
	defer tick.Stop()
	defer check.Stop()
	for due := true; ; {
		if err := s.SignAll(ctx, due); err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "reading the logs to be signed failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			due = s.Cosigner != nil && s.Cosigner.Lagging()
		case <-check.C:
			due = true
		}
	}
}

// SignAll signs all logs that have new events once. With check, it also checks those without
// new events. Logs that cannot be signed are logged, and listed by Problems.
func (s *Signer) SignAll(ctx context.Context, check bool) error {
	s.signing.Lock()
	defer s.signing.Unlock()
	list := func(after string) ([]store.Log, error) { return s.Store.LogsToSign(ctx, check, after, page) }
	err := each(list, func(l store.Log) { s.observe(ctx, l, s.sign(ctx, l)) })
	if err != nil || !s.Shared {
		return err
	}
	return s.takeOver(ctx)
}
