package turns

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestDo has viewers ask for a page before and during a rendering of a second. Each sees a
// rendering that began after its request, and each rendering serves all who waited.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string, time.Time]
		var renderings, own atomic.Int64
		var viewers sync.WaitGroup

		for i := range 100 {
			time.Sleep(50 * time.Millisecond)
			asked := time.Now()

			viewers.Go(func() {
				began, mine, err := g.Do(t.Context(), "page", func(context.Context) (time.Time, error) {
					renderings.Add(1)
					began := time.Now()
					time.Sleep(time.Second)
					return began, nil
				})
				if err != nil || began.Before(asked) {
					t.Errorf("viewer %d got a rendering that began %v before, %v", i, asked.Sub(began), err)
				}
				if mine {
					own.Add(1)
				}
				if took := time.Since(asked); took > 2*time.Second+maxRest {
					t.Errorf("viewer %d waited %v", i, took)
				}
			})
		}
		viewers.Wait()

		// Viewers come for 5 s. A rendering and a rest take 2 s.
		if n := renderings.Load(); n != 4 || own.Load() != n {
			t.Errorf("%d renderings, %d of them for their own viewers; want 4", n, own.Load())
		}

		time.Sleep(maxRest)
		synctest.Wait()
		if len(g.pages) > 0 || g.waiting > 0 {
			t.Errorf("%d pages and %d waiting viewers are left", len(g.pages), g.waiting)
		}
	})
}

// TestRest checks how long pages rest between two renderings.
func TestRest(t *testing.T) {
	for pages, test := range map[int]struct{ took, want time.Duration }{
		1: {10 * time.Millisecond, 40 * time.Millisecond}, 3: {10 * time.Millisecond, 120 * time.Millisecond},
		50: {10 * time.Millisecond, maxRest}, 2: {time.Minute, maxRest},
	} {
		g := Group[int, int]{pages: make(map[int]*page[int])}
		for i := range pages {
			g.pages[i] = nil
		}
		if got := g.rest(test.took); got != test.want {
			t.Errorf("%d pages, rendered in %v: rest of %v, want %v", pages, test.took, got, test.want)
		}
	}
}

// TestKeysAreSeparate checks that a page does not wait for another one.
func TestKeysAreSeparate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[int, int]
		var viewers sync.WaitGroup
		for key := range 10 {
			viewers.Go(func() {
				start := time.Now()
				got, own, err := g.Do(t.Context(), key, func(context.Context) (int, error) {
					time.Sleep(time.Second)
					return key, nil
				})
				if got != key || !own || err != nil || time.Since(start) != time.Second {
					t.Errorf("page %d: got %d, own %t, %v after %v", key, got, own, err, time.Since(start))
				}
			})
		}
		viewers.Wait()
	})
}

// TestViewersLeave has the viewer who started a rendering leave: it goes on for the
// others, and ends when the last one has left. The next viewer gets a new one.
func TestViewersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string, int]
		var ended atomic.Bool
		render := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			ended.Store(true)
			return 0, ctx.Err()
		}
		ask := func() (leave context.CancelFunc) {
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				if _, _, err := g.Do(ctx, "page", render); !errors.Is(err, context.Canceled) {
					t.Errorf("left with %v", err)
				}
			}()
			return leave
		}

		blocker := ask()
		synctest.Wait()
		first, second := ask(), ask() // both wait for the next round
		synctest.Wait()
		blocker()
		time.Sleep(maxRest)
		ended.Store(false)
		first()
		synctest.Wait()
		if ended.Load() {
			t.Error("the rendering ended before the last viewer left")
		}
		third := ask() // waits for its turn
		synctest.Wait()
		second()
		third()
		synctest.Wait()
		if !ended.Load() {
			t.Error("the rendering did not end")
		}

		if v, own, err := g.Do(t.Context(), "page", func(context.Context) (int, error) { return 7, nil }); v != 7 || !own ||
			err != nil {
			t.Errorf("the next viewer got %d, own %t, %v", v, own, err)
		}
		time.Sleep(maxRest)
		synctest.Wait()
		if len(g.pages) > 0 || g.waiting > 0 {
			t.Errorf("%d pages and %d waiting viewers are left", len(g.pages), g.waiting)
		}
	})
}

// TestErrors checks that all viewers get an error, and that they panic together.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string, int]
		failed := errors.New("failed")

		for range 3 {
			go func() {
				if _, _, err := g.Do(t.Context(), "error", func(context.Context) (int, error) {
					time.Sleep(time.Second)
					return 0, failed
				}); !errors.Is(err, failed) {
					t.Errorf("got %v", err)
				}
			}()
			go func() {
				defer func() {
					if recover() != "broken" {
						t.Error("no panic")
					}
				}()
				_, _, _ = g.Do(t.Context(), "panic", func(context.Context) (int, error) { panic("broken") })
			}()
		}
		time.Sleep(time.Minute)
	})
}

// TestTooManyViewers checks that the number of waiting requests is bounded.
func TestTooManyViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[int, int]
		ctx, leave := context.WithCancel(t.Context())
		wait := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, nil
		}
		for i := range maxRefreshes {
			go func() { _, _, _ = g.Do(ctx, i%7, wait) }()
		}
		synctest.Wait()
		if _, _, err := g.Do(ctx, 0, wait); !errors.Is(err, ErrManyWaiting) {
			t.Errorf("one more viewer: %v, want ErrManyWaiting", err)
		}
		leave()
		synctest.Wait()
		if g.waiting > 0 {
			t.Errorf("%d viewers are left", g.waiting)
		}
	})
}
