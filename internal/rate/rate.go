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

// A bucket has the number of requests that a client may still send at a time.
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
	Next    time.Duration // until one more may be sent; 0 if it may be now
	Full    time.Duration // until as many as Burst may be sent
}

// Take counts a request of a client, unless it is beyond the limit.
func (l *Limiter) Take(client string, now time.Time) Quota {
	if l == nil {
		return Quota{Allowed: true}
	}
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
	allowed := left >= 1
	if allowed {
		left--
	}
	l.buckets[client] = bucket{left, now}
	return Quota{
		Allowed: allowed,
		Burst:   int(l.burst),
		Left:    int(left),
		Next:    l.after(1 - left),
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
