// Package rate limits how many requests a client sends.
package rate

import (
	"maps"
	"math"
	"net/netip"
	"sync"
	"time"
)

// maxKeys is the number of clients whose requests are counted separately.
const maxKeys = 16384

// A Limiter limits the rate of requests per client: each has a burst of them, and gets them
// back at a rate. A nil Limiter limits nothing.
type Limiter struct {
	perSecond, burst float64

	mu      sync.Mutex
	buckets map[string]bucket
	swept   time.Time // when full buckets were dropped
}

// A bucket has the number of requests that a client may still send at a time. It is negative after
// a request that counted as more than were left.
type bucket struct {
	left float64
	at   time.Time
}

// New returns a Limiter, or nil if the burst is 0.
func New(perSecond float64, burst int) *Limiter {
	if burst == 0 {
		return nil
	}
	return &Limiter{perSecond: perSecond, burst: float64(burst), buckets: make(map[string]bucket)}
}

// A Quota is what a client may still send.
type Quota struct {
	Allowed bool // the request is within the limit
	Burst   int
	Left    int
	Next    time.Duration // until one more, or the refused one, may be sent; 0 if it may be now
	Full    time.Duration // until as many as Burst may be sent
}

// Take counts a request of a client, unless it is beyond the limit.
func (l *Limiter) Take(client string, now time.Time) Quota {
	if l == nil {
		return Quota{Allowed: true}
	}
	return l.take(client, 1, 1, 1, now)
}

// TakeMore counts a request, which Take has counted as one, as n more, unless that is beyond the
// limit. A request that counts as more than a burst is allowed if the client has sent no other;
// then the client has to wait until its whole burst is refilled.
func (l *Limiter) TakeMore(client string, n int, now time.Time) Quota {
	if l == nil {
		return Quota{Allowed: true}
	}
	enough := min(float64(n), l.burst-1)
	return l.take(client, float64(n), enough, enough+1, now)
}

// take counts n requests if enough are left. Otherwise, it may be called again once there are
// again.
func (l *Limiter) take(client string, n, enough, again float64, now time.Time) Quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets[client]
	if !ok && l.isFull(now) {
		client = "" // shared by all for whom there is no space
		b, ok = l.buckets[client]
	}
	if !ok {
		b = bucket{l.burst, now}
	}

	left := l.refilled(b, now)
	allowed := left >= enough
	if allowed {
		left -= n
		again = 1
	}
	l.buckets[client] = bucket{left, now}
	return Quota{
		Allowed: allowed,
		Burst:   int(l.burst),
		Left:    max(0, int(left)),
		Next:    l.after(again - left),
		Full:    l.after(l.burst - left),
	}
}

// isFull reports whether there is no space for another client. At most once a second it makes
// space: it forgets the clients that may send as much as new ones.
func (l *Limiter) isFull(now time.Time) bool {
	if len(l.buckets) >= maxKeys && now.Sub(l.swept) >= time.Second {
		l.swept = now
		maps.DeleteFunc(l.buckets, func(_ string, b bucket) bool { return l.refilled(b, now) >= l.burst })
	}
	return len(l.buckets) >= maxKeys
}

// refilled returns how many requests are left now.
func (l *Limiter) refilled(b bucket, now time.Time) float64 {
	return min(l.burst, b.left+max(0, now.Sub(b.at).Seconds())*l.perSecond)
}

// after returns when so many requests will have come back.
func (l *Limiter) after(requests float64) time.Duration {
	return time.Duration(max(0, requests) / l.perSecond * float64(time.Second))
}

// Seconds returns a duration in whole seconds, rounded up, as HTTP headers have it.
func Seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// Client returns the network that counts as one client, by the remote address of a connection:
// an IPv4 address, or the /64 of an IPv6 address.
func Client(remote string) string {
	addr, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	ip := addr.Addr().Unmap()
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	prefix, err := ip.WithZone("").Prefix(bits)
	if err != nil {
		return ""
	}
	return prefix.String()
}
