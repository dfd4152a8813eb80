package budget

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

var (
	errShare = errors.New("the share is in use")
	errTotal = errors.New("the total is in use")
)

func newTestBudget(total, share int64) *Budget {
	return New(Config{Total: total, Share: share, Wait: 10 * time.Second, Waiting: 8, ShareWaiting: 4,
		ShareFull: errShare, TotalFull: errTotal})
}

// growth is a call of Grow in its own goroutine.
type growth struct{ done chan error }

func grow(ctx context.Context, l *Lease, n int64) growth {
	g := growth{make(chan error, 1)}
	go func() { g.done <- l.Grow(ctx, n) }()
	synctest.Wait()
	return g
}

// want checks the state of the call: an error, nil, or that it waits.
func (g growth) want(t *testing.T, want error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-g.done:
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("grow: %v, want %v", err, want)
		}
	default:
		if !errors.Is(want, errWaits) {
			t.Errorf("grow waits, want %v", want)
		}
	}
}

var errWaits = errors.New("waits")

func TestFaultBudgetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(100, 40)
		ada, bob, cyd := b.Lease("ada"), b.Lease("bob"), b.Lease("cyd")
		grow(t.Context(), ada, 40).want(t, nil)

		second := grow(t.Context(), b.Lease("ada"), 1)
		second.want(t, errWaits) // beyond the share
		grow(t.Context(), bob, 30).want(t, nil)
		grow(t.Context(), cyd, 30).want(t, nil)
		third := grow(t.Context(), b.Lease("dan"), 1)
		third.want(t, errWaits) // beyond the total

		time.Sleep(9 * time.Second)
		second.want(t, errWaits)
		time.Sleep(2 * time.Second)
		second.want(t, errShare)
		third.want(t, errTotal)

		ada.Release()
		bob.Release()
		cyd.Release()
		if b.used != 0 || len(b.accounts) != 0 || len(b.queue) != 0 {
			t.Errorf("after all releases: %d used, %d accounts, %d waiting", b.used, len(b.accounts), len(b.queue))
		}
	})
}

// A lease that has begun may exceed the limits, one at a time, so that those that
// have begun never all wait for each other.
func TestFaultBudgetDoesNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(100, 40)
		first, second := b.Lease("ada"), b.Lease("ada")
		grow(t.Context(), first, 20).want(t, nil)
		grow(t.Context(), second, 20).want(t, nil)

		grow(t.Context(), first, 10).want(t, nil)
		waits := grow(t.Context(), second, 10)
		waits.want(t, errWaits)
		grow(t.Context(), first, 10).want(t, nil)
		grow(t.Context(), first, 1000).want(t, nil) // never more than a share
		if first.held != 40 || b.used != 60 {
			t.Errorf("the lease holds %d of %d, want 40 of 60", first.held, b.used)
		}

		first.Release()
		waits.want(t, nil)
		third := b.Lease("ada")
		grow(t.Context(), third, 10).want(t, nil)
		grow(t.Context(), second, 10).want(t, nil) // now second may exceed the share
		second.Release()
		third.Release()
	})
}

// After a lease that exceeded the total has ended, another one may.
func TestFaultBudgetExceedsTheTotalAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(10, 10)
		ada, bob, cyd := b.Lease("ada"), b.Lease("bob"), b.Lease("cyd")
		grow(t.Context(), ada, 5).want(t, nil)
		grow(t.Context(), bob, 5).want(t, nil)
		grow(t.Context(), ada, 1).want(t, nil)
		ada.Release()
		grow(t.Context(), cyd, 5).want(t, nil)
		grow(t.Context(), bob, 1).want(t, nil)
		bob.Release()
		cyd.Release()
	})
}

// If nothing else decides, the lease that has waited longest is next.
func TestFaultBudgetKeepsTheOrder(t *testing.T) {
	for _, begun := range []int64{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			b := newTestBudget(10, 10)
			holder, over := b.Lease("holder"), b.Lease("over")
			first, second := b.Lease("first"), b.Lease("second")
			for _, l := range []*Lease{first, second} {
				grow(t.Context(), l, begun).want(t, nil)
			}
			grow(t.Context(), over, 4).want(t, nil)
			grow(t.Context(), holder, 6-2*begun).want(t, nil)
			grow(t.Context(), over, 1).want(t, nil) // exceeds the total, so that no other lease may

			one, other := grow(t.Context(), first, 3), grow(t.Context(), second, 3)
			holder.Shrink(4)
			one.want(t, nil)
			other.want(t, errWaits)
			over.Release()
			other.want(t, nil)
		})
	}
}

func TestFaultBudgetIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(4, 3)
		ada := []*Lease{b.Lease("ada"), b.Lease("ada"), b.Lease("ada"), b.Lease("ada")}
		grow(t.Context(), ada[0], 1).want(t, nil)
		grow(t.Context(), ada[1], 1).want(t, nil)
		grow(t.Context(), ada[2], 1).want(t, nil)
		bob := []*Lease{b.Lease("bob"), b.Lease("bob")}
		grow(t.Context(), bob[0], 1).want(t, nil)

		fourth := grow(t.Context(), ada[3], 1)
		later := grow(t.Context(), b.Lease("cyd"), 1)
		ada[0].Release()
		fourth.want(t, errWaits)
		later.want(t, nil) // uses less than the account that has waited longer
		ada[1].Release()
		fourth.want(t, nil)
	})
}

// Leases that have begun precede others, which have waited longer.
func TestFaultBudgetFinishesWhatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(10, 10)
		ada, bob, cyd := b.Lease("ada"), b.Lease("bob"), b.Lease("cyd")
		grow(t.Context(), ada, 5).want(t, nil)
		grow(t.Context(), bob, 5).want(t, nil)
		grow(t.Context(), ada, 1).want(t, nil) // exceeds the total
		starts := grow(t.Context(), cyd, 3)
		continues := grow(t.Context(), bob, 3)
		starts.want(t, errWaits)
		continues.want(t, errWaits)

		ada.Shrink(4)
		continues.want(t, nil)
		starts.want(t, errWaits)
		bob.Release()
		starts.want(t, nil)
	})
}

func TestFaultBudgetQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(10, 10)
		holder := b.Lease("ada")
		grow(t.Context(), holder, 10).want(t, nil)
		var waiting []growth
		for range 4 {
			waiting = append(waiting, grow(t.Context(), b.Lease("ada"), 1))
		}
		grow(t.Context(), b.Lease("ada"), 1).want(t, errShare)
		for i := range 4 {
			waiting = append(waiting, grow(t.Context(), b.Lease(fmt.Sprint(i)), 1))
		}
		grow(t.Context(), b.Lease("bob"), 1).want(t, errTotal)
		if len(b.accounts) != 5 {
			t.Errorf("%d accounts, want the 5 that use something or wait", len(b.accounts))
		}

		holder.Release()
		for _, g := range waiting {
			g.want(t, nil)
		}
	})
}

func TestFaultBudgetWaitEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(10, 10)
		holder := b.Lease("ada")
		grow(t.Context(), holder, 10).want(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		g := grow(ctx, b.Lease("ada"), 1)
		g.want(t, errWaits)
		cancel()
		g.want(t, context.Canceled)
		holder.Release()
		if b.used != 0 || len(b.accounts) != 0 {
			t.Errorf("%d used, %d accounts", b.used, len(b.accounts))
		}
	})
}

// A lease that gets its amount just when it stops waiting has it.
func TestFaultBudgetGrantsAtTheLastMoment(t *testing.T) {
	b := newTestBudget(10, 10)
	holder, late := b.Lease("ada"), b.Lease("bob")
	must.OK(t, holder.Grow(t.Context(), 10))
	w, err := b.request(late, 1)
	if w == nil {
		t.Fatalf("the lease does not wait: %v", err)
	}
	holder.Release()
	if err := b.cancel(w, context.Canceled); err != nil || late.held != 1 {
		t.Errorf("%v, %d held, want 1", err, late.held)
	}
}

func TestResize(t *testing.T) {
	b := newTestBudget(100, 40)
	l := b.Lease("ada")
	for _, n := range []int64{10, 30, 5, 0, 40, 40} {
		if err := l.Resize(t.Context(), n); err != nil || l.held != n || b.used != n {
			t.Errorf("resized to %d: %v, %d held of %d in use", n, err, l.held, b.used)
		}
	}
	l.Release()
}

func TestNilLeaseIsUnlimited(t *testing.T) {
	var l *Lease
	if err := l.Grow(t.Context(), 1<<60); err != nil {
		t.Error(err)
	}
	if err := l.Resize(t.Context(), 1<<60); err != nil {
		t.Error(err)
	}
	l.Shrink(1)
	l.Release()
}

// In any order of calls, the amounts add up and stay within the limits, and everyone
// is served in the end.
func TestFaultBudgetModel(t *testing.T) {
	testenv.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			const total, share = 20, 8
			b := New(Config{Total: total, Share: share, Wait: time.Hour, Waiting: 100, ShareWaiting: 100,
				ShareFull: errShare, TotalFull: errTotal})
			var leases []*Lease
			var waiting []growth // by lease; nil channel: none
			for range rapid.IntRange(1, 12).Draw(rt, "leases") {
				leases = append(leases, b.Lease(rapid.SampledFrom([]string{"ada", "bob", "cyd"}).Draw(rt, "account")))
			}
			waiting = make([]growth, len(leases))

			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				i := rapid.IntRange(0, len(leases)-1).Draw(rt, "lease")
				switch {
				case isWaiting(waiting[i]):
				case rapid.Bool().Draw(rt, "grow"):
					waiting[i] = grow(t.Context(), leases[i], rapid.Int64Range(1, 5).Draw(rt, "n"))
				case rapid.Bool().Draw(rt, "shrink"):
					leases[i].Shrink(rapid.Int64Range(0, 5).Draw(rt, "n"))
				default:
					leases[i].Release()
				}
				synctest.Wait()
				checkSums(t, b, leases)
			}

			// Those that hold something without waiting finish, again and again.
			for range leases {
				for i, l := range leases {
					if !isWaiting(waiting[i]) {
						l.Release()
					}
				}
				synctest.Wait()
			}
			if len(b.queue) > 0 {
				t.Errorf("%d leases still wait", len(b.queue))
			}
			for _, l := range leases {
				l.Release()
			}
			checkSums(t, b, leases)
		})
	})
}

func isWaiting(g growth) bool { return g.done != nil && len(g.done) == 0 }

func checkSums(t *testing.T, b *Budget, leases []*Lease) {
	t.Helper()
	sum, byAccount := int64(0), map[string]int64{}
	for _, l := range leases {
		sum += l.held
		byAccount[l.account] += l.held
		if l.held > b.config.Share {
			t.Errorf("a lease holds %d, more than the share", l.held)
		}
	}
	if sum != b.used || sum > b.config.Total+b.config.Share {
		t.Errorf("the leases hold %d, the budget has %d in use", sum, b.used)
	}
	for name, held := range byAccount {
		if a := b.accounts[name]; held > 0 && a.used != held || held > 2*b.config.Share {
			t.Errorf("the leases of %s hold %d", name, held)
		}
	}
}
