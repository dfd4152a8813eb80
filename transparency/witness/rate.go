package witness

import (
	"maps"
	"net/netip"
	"sync"
	"time"
)

const (
	// ratePerSecond and burst limit the requests of a client.
	ratePerSecond, burst = 100, 200
	// maxClients is the number of clients whose requests are counted separately.
	maxClients = 4096
)

// A limiter limits the rate of requests per client.
type limiter struct {
	mu      sync.Mutex
	buckets map[string]bucket
}

// A bucket has the number of requests that a client may still send at a time.
type bucket struct {
	left float64
	at   time.Time
}

func newLimiter() *limiter { return &limiter{buckets: make(map[string]bucket)} }

// allow counts a request, and reports whether it is within the limit. The client is the
// remote address of its connection.
func (l *limiter) allow(remote string, now time.Time) bool {
	client := clientOf(remote)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.buckets[client]; !ok && len(l.buckets) >= maxClients {
		maps.DeleteFunc(l.buckets, func(_ string, b bucket) bool { return b.refilled(now) >= burst })
		if len(l.buckets) >= maxClients {
			client = "" // shared by all for whom there is no space
		}
	}

	b, ok := l.buckets[client]
	if !ok {
		b = bucket{burst, now}
	}
	left := b.refilled(now)
	if left < 1 {
		l.buckets[client] = bucket{left, now}
		return false
	}
	l.buckets[client] = bucket{left - 1, now}
	return true
}

// refilled returns how many requests are left now.
func (b bucket) refilled(now time.Time) float64 {
	return min(burst, b.left+max(0, now.Sub(b.at).Seconds())*ratePerSecond)
}

// clientOf returns the network that counts as one client: an IPv4 address, or the /64 of an
// IPv6 address.
func clientOf(remote string) string {
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
