// Package budget divides a limited amount, such as memory or concurrent reads, among
// the requests of many callers: each has a share of it, and waits in a bounded queue.
package budget

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Config configures a Budget.
type Config struct {
	// Total is the amount of all accounts together, and Share that of one account.
	Total, Share int64
	// Wait is how long a lease waits at most for others to be released.
	Wait time.Duration
	// Waiting and ShareWaiting are the maximum numbers of leases that wait at the same
	// time, of all accounts and of one account.
	Waiting, ShareWaiting int
	// ShareFull and TotalFull are the errors if the account's share or the total is in
	// use and does not become available in time.
	ShareFull, TotalFull error
}

// A Budget limits what the leases hold in total and per account. What is released
// goes first to leases that already hold something, then to the account that uses
// least, so that no account keeps out others.
//
// A lease that holds something may exceed the limits if no other lease does. So the
// requests that have begun never all wait for each other. At most Total and one Share
// are in use.
type Budget struct {
	config Config

	mu        sync.Mutex
	used      int64
	overdrawn *Lease              // the lease that may exceed Total; nil if none does
	accounts  map[string]*account // those that use something or wait
	queue     []*waiter           // oldest first
}

type account struct {
	used      int64
	waiting   int
	overdrawn *Lease // the lease that may exceed Share; nil if none does
}

type waiter struct {
	lease   *Lease
	n       int64
	granted chan struct{} // closed when the lease has the amount
}

// New returns a Budget of which nothing is in use.
func New(c Config) *Budget { return &Budget{config: c, accounts: make(map[string]*account)} }

// A Lease is a part of a Budget that one request holds. It is not safe for concurrent
// use. A nil Lease is unlimited.
type Lease struct {
	budget  *Budget
	account string
	held    int64
}

// Lease returns a lease on behalf of an account. It holds nothing yet. The caller must
// release it.
func (b *Budget) Lease(account string) *Lease { return &Lease{budget: b, account: account} }

// Grow adds n to what the lease holds, but never more than a Share in total. It waits
// until the amount is available, at most for Config.Wait. If it returns an error, the
// lease is unchanged.
func (l *Lease) Grow(ctx context.Context, n int64) error {
	if l == nil {
		return nil
	}
	b := l.budget
	w, err := b.request(l, n)
	if w == nil {
		return err
	}

	timeout := time.NewTimer(b.config.Wait)
	defer timeout.Stop()
	select {
	case <-w.granted:
		return nil
	case <-timeout.C:
		return b.cancel(w, nil)
	case <-ctx.Done():
		return b.cancel(w, ctx.Err())
	}
}

// Resize grows or shrinks the lease to n.
func (l *Lease) Resize(ctx context.Context, n int64) error {
	if l == nil {
		return nil
	}
	l.Shrink(l.held - n)
	return l.Grow(ctx, n-l.held)
}

// Release returns everything that the lease holds to the budget. The lease may grow
// again.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.Shrink(l.held)
}

// Shrink returns n of what the lease holds to the budget.
func (l *Lease) Shrink(n int64) {
	if l == nil {
		return
	}
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if n = min(n, l.held); n <= 0 {
		return
	}

	a := b.accounts[l.account]
	b.used -= n
	a.used -= n
	if l.held -= n; l.held == 0 {
		b.settle(l, a)
	}
	b.grant()
}

// request grants n to the lease, or returns a waiter in the queue, or returns an error
// if too many are waiting.
func (b *Budget) request(l *Lease, n int64) (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n = min(n, b.config.Share-l.held); n <= 0 {
		return nil, nil
	}

	a := b.accounts[l.account]
	if a == nil {
		a = new(account)
		b.accounts[l.account] = a
	}
	if b.fits(l, n) {
		b.take(l, n)
		return nil, nil
	}
	if a.waiting >= b.config.ShareWaiting {
		return nil, b.config.ShareFull
	}
	if len(b.queue) >= b.config.Waiting {
		err := b.refusal(l, n)
		b.forget(l.account)
		return nil, err
	}

	w := &waiter{l, n, make(chan struct{})}
	b.queue = append(b.queue, w)
	a.waiting++
	return w, nil
}

// cancel removes a waiter from the queue and returns err, by default why it waited. It
// returns nil if the waiter was granted in the meantime.
func (b *Budget) cancel(w *waiter, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, w)
	if i < 0 {
		return nil
	}
	if err == nil {
		err = b.refusal(w.lease, w.n)
	}
	b.remove(i)
	b.forget(w.lease.account)
	return err
}

// refusal returns the error that names the limit at which the lease does not get n.
func (b *Budget) refusal(l *Lease, n int64) error {
	if a := b.accounts[l.account]; !within(b.config.Share, a.used+n, a.overdrawn, l) {
		return b.config.ShareFull
	}
	return b.config.TotalFull
}

// grant gives what is available to those who wait.
func (b *Budget) grant() {
	for {
		i := b.next()
		if i < 0 {
			return
		}
		w := b.queue[i]
		b.remove(i)
		b.take(w.lease, w.n)
		close(w.granted)
	}
}

// next returns the index of the waiter to grant next; -1 if none can be granted.
func (b *Budget) next() int {
	best := -1
	for i, w := range b.queue {
		if b.fits(w.lease, w.n) && (best < 0 || b.precedes(w.lease, b.queue[best].lease)) {
			best = i
		}
	}
	return best
}

// precedes reports whether l precedes other, which has waited longer.
func (b *Budget) precedes(l, other *Lease) bool {
	if begun, otherBegun := l.held > 0, other.held > 0; begun || otherBegun {
		return begun && !otherBegun
	}
	return b.accounts[l.account].used < b.accounts[other.account].used
}

// fits reports whether the lease may hold n more.
func (b *Budget) fits(l *Lease, n int64) bool {
	a := b.accounts[l.account]
	return within(b.config.Share, a.used+n, a.overdrawn, l) && within(b.config.Total, b.used+n, b.overdrawn, l)
}

// within reports whether the lease may bring what is used under a limit to used.
// overdrawn is the lease that may exceed the limit.
func within(limit, used int64, overdrawn, l *Lease) bool {
	return used <= limit || overdrawn == l || overdrawn == nil && l.held > 0
}

func (b *Budget) take(l *Lease, n int64) {
	a := b.accounts[l.account]
	l.held += n
	a.used += n
	b.used += n
	if a.used > b.config.Share {
		a.overdrawn = l
	}
	if b.used > b.config.Total {
		b.overdrawn = l
	}
}

// settle ends the overdrafts of a lease that holds nothing.
func (b *Budget) settle(l *Lease, a *account) {
	if b.overdrawn == l {
		b.overdrawn = nil
	}
	if a.overdrawn == l {
		a.overdrawn = nil
	}
	b.forget(l.account)
}

// remove removes a waiter from the queue.
func (b *Budget) remove(i int) {
	b.accounts[b.queue[i].lease.account].waiting--
	b.queue = slices.Delete(b.queue, i, i+1)
}

// forget deletes the account if nothing is used and nobody waits.
func (b *Budget) forget(name string) {
	if a := b.accounts[name]; a.used == 0 && a.waiting == 0 {
		delete(b.accounts, name)
	}
}
