package txn

import (
	"context"
	"log/slog"
)

// A Series logs the failures of a repeated task: the first of consecutive failures, and
// when the task works again. It does not log failures of the storage, which the engine
// reports. Only one goroutine may use it.
type Series struct {
	Log   *slog.Logger
	Task  string
	count int // of consecutive failures
}

// Observe records the outcome of one run of the task.
func (s *Series) Observe(ctx context.Context, err error) {
	switch {
	case err == nil && s.count > 0:
		s.Log.InfoContext(ctx, s.Task+" works again", "failures", s.count)
		s.count = 0
	case err == nil || IsUnavailable(err):
	case s.count == 0:
		s.Log.ErrorContext(ctx, s.Task+" failed", "error", err)
		s.count++
	default:
		s.count++
	}
}
