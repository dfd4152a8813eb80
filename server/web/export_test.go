package web

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/turns"
)

// A Route is a route, for tests.
type Route = page.Route

// OccupyLimiter occupies the limiter, as if as many pages as possible were being rendered. If
// full, it fills the queue too. end frees both.
func (s *Site) OccupyLimiter(full bool) (end func()) {
	for range runtime.GOMAXPROCS(0) {
		s.limiter.Acquire(context.Background())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	var refused atomic.Bool
	for full && !refused.Load() {
		waiting.Go(func() {
			if errors.Is(s.limiter.Acquire(ctx), turns.ErrBusy) {
				refused.Store(true)
			}
		})
	}
	return func() {
		cancel()
		waiting.Wait()
		for range runtime.GOMAXPROCS(0) {
			s.limiter.Release()
		}
	}
}
