package turns

import (
	"context"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// maxRefreshes is the maximum number of requests that wait, for all pages together.
	maxRefreshes = 2048
	// restFactor is the time for which a page rests after a rendering, as a multiple of
	// the time that the rendering took, for each page in use. So all pages together take
	// a fifth of a core.
	restFactor = 4
	// maxRest bounds the rest, so that a request does not wait for longer.
	maxRest = time.Second
)

// ErrManyWaiting is returned if too many requests wait in a Group already.
var ErrManyWaiting = ledger.Errorf(ledger.CodeServerBusy,
	"server busy: too many page requests (try again in a few seconds)")

// A Group renders pages, each identified by a key. No result is cached: a rendering
// always begins after the requests that get its result, so that nobody sees a page
// that is older than the request. The zero value is ready to use.
type Group[K comparable, V any] struct {
	mu      sync.Mutex
	pages   map[K]*page[V]
	waiting int // number of requests
}

// A page is a page in use: somebody waits for it, or it rests.
type page[V any] struct {
	rounds int           // waiting, rendering or resting; guarded by Group.mu
	next   *round[V]     // the one that waits for its turn; guarded by Group.mu
	turn   chan struct{} // capacity 1: full while a round has its turn
	rested time.Time     // when the next rendering may begin; guarded by turn
}

// A round is one rendering for all requests that came before it began.
type round[V any] struct {
	viewers int // requests that wait for it; guarded by Group.mu
	stop    context.CancelFunc
	done    chan struct{} // closed when the fields below are set
	value   V
	err     error
	panic   any
}

// Do returns the result of render, which runs once for all concurrent calls with the
// same key. own reports whether it was the render of this call. The context of render
// has the values of ctx, and ends when all callers that wait for the result have left.
// If too many calls are waiting already, Do returns ErrManyWaiting at once.
func (g *Group[K, V]) Do(
	ctx context.Context, key K, render func(context.Context) (V, error),
) (v V, own bool, err error) {
	r, own, err := g.join(ctx, key, render)
	if err != nil {
		return v, own, err
	}
	defer g.leave()

	select {
	case <-r.done:
	case <-ctx.Done():
		if g.abandon(key, r) {
			<-r.done
		}
		return v, own, ctx.Err()
	}
	if r.panic != nil {
		panic(r.panic)
	}
	return r.value, own, r.err
}

// join adds a request to the next round of a page. The first request starts the round.
func (g *Group[K, V]) join(
	ctx context.Context, key K, render func(context.Context) (V, error),
) (r *round[V], own bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting >= maxRefreshes {
		return nil, false, ErrManyWaiting
	}

	p := g.pages[key]
	if p == nil {
		p = &page[V]{turn: make(chan struct{}, 1)}
		if g.pages == nil {
			g.pages = make(map[K]*page[V])
		}
		g.pages[key] = p
	}
	if own = p.next == nil; own {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		p.next = &round[V]{stop: stop, done: make(chan struct{})}
		p.rounds++
		go g.run(running, key, p, p.next, render) // ends before the last viewer of the round returns
	}
	p.next.viewers++
	g.waiting++
	return p.next, own, nil
}

func (g *Group[K, V]) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
}

// abandon removes a viewer from a round before its end. If it was the last one, abandon
// stops the round and returns true.
func (g *Group[K, V]) abandon(key K, r *round[V]) (last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.viewers--; r.viewers > 0 {
		return false
	}
	if p := g.pages[key]; p != nil && p.next == r {
		p.next = nil // nobody may join it any more
	}
	r.stop()
	return true
}

// run waits for the round's turn, renders the page, and lets it rest.
func (g *Group[K, V]) run(
	ctx context.Context, key K, p *page[V], r *round[V], render func(context.Context) (V, error),
) {
	defer close(r.done)
	defer r.stop()
	rest := time.Duration(0)
	defer func() { time.AfterFunc(rest, func() { g.forget(key, p) }) }()

	if r.err = p.await(ctx); r.err != nil {
		return
	}
	defer func() { <-p.turn }()
	g.begin(p, r)

	start := time.Now()
	defer func() {
		r.panic = recover()
		end := time.Now()
		rest = g.rest(end.Sub(start))
		p.rested = end.Add(rest)
	}()
	r.value, r.err = render(ctx)
}

// await waits until no other round of the page has its turn and the page has rested.
// After it returned nil, the caller must receive from p.turn.
func (p *page[V]) await(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(time.Until(p.rested)):
		return nil
	case <-ctx.Done():
		<-p.turn
		return ctx.Err()
	}
}

// begin ends the time in which requests can join a round.
func (g *Group[K, V]) begin(p *page[V], r *round[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.next == r {
		p.next = nil
	}
}

// rest returns how long a page rests after a rendering.
func (g *Group[K, V]) rest(took time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return min(restFactor*took*time.Duration(len(g.pages)), maxRest)
}

// forget ends the rest after a round. It drops the page if nobody uses it any more.
func (g *Group[K, V]) forget(key K, p *page[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.rounds--; p.rounds == 0 {
		delete(g.pages, key)
	}
}
