package store

import (
	"context"
	"log/slog"
)

// A series logs the failures of a repeated task: the first of consecutive failures, and
// when the task works again. It does not log failures of the storage, which the engine
// reports. Only one goroutine may use it.
type series struct {
	log   *slog.Logger
	task  string
	count int // of consecutive failures
}

// observe records the outcome of one run of the task.
func (s *series) observe(ctx context.Context, err error) {
	switch {
	case err == nil && s.count > 0:
		s.log.InfoContext(ctx, s.task+" works again", "failures", s.count)
		s.count = 0
	case err == nil || isUnavailable(err):
	case s.count == 0:
		s.log.ErrorContext(ctx, s.task+" failed", "error", err)
		s.count++
	default:
		s.count++
	}
}
