package dispatch

import (
	"slices"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// A result classifies the outcome of an attempt.
type result string

const (
	resultSuccess     result = "success"
	resultClientError result = "client_error"
	resultServerError result = "server_error"
	resultRedirect    result = "redirect"
	resultGone        result = "gone"
	resultTimeout     result = "timeout"
	resultRefused     result = "refused" // by the guard
	resultNetwork     result = "network"
	resultInternal    result = "internal"
)

func results() []result {
	return []result{resultSuccess, resultClientError, resultServerError, resultRedirect, resultGone,
		resultTimeout, resultRefused, resultNetwork, resultInternal}
}

// Stats are the statistics of a Dispatcher since it was created. The package
// webhook/dispatch/metrics exports them as metrics.
type Stats struct {
	// Attempts counts attempts by result. It has an entry for every result.
	Attempts map[string]uint64
	// Deliveries counts finished deliveries by status.
	Deliveries map[outbound.DeliveryStatus]uint64
	// Seconds holds the durations of attempts in seconds.
	Seconds Histogram
	// InFlight is the number of requests that wait for a response.
	InFlight int
	// Endpoints is the number of webhooks with deliveries in progress.
	Endpoints int
	// Unsettled is the number of attempts whose outcome is not recorded yet.
	Unsettled int
}

// A Histogram counts values in cumulative buckets, as Prometheus does.
type Histogram struct {
	Count uint64
	Sum   float64
	// Buckets holds the number of values up to each upper bound.
	Buckets map[float64]uint64
}

// attemptBounds are the upper bounds of Stats.Seconds.
var attemptBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}

// counters holds the current Stats.
type counters struct {
	mu    sync.Mutex
	stats Stats
}

func newCounters() *counters {
	c := &counters{stats: Stats{
		Attempts:   map[string]uint64{},
		Deliveries: map[outbound.DeliveryStatus]uint64{outbound.DeliverySucceeded: 0, outbound.DeliveryFailed: 0},
		Seconds:    Histogram{Buckets: map[float64]uint64{}},
	}}
	for _, r := range results() {
		c.stats.Attempts[string(r)] = 0
	}
	for _, bound := range attemptBounds {
		c.stats.Seconds.Buckets[bound] = 0
	}
	return c
}

// change calls f with the lock held.
func (c *counters) change(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.stats)
}

func (c *counters) inFlight(n int)  { c.change(func(s *Stats) { s.InFlight += n }) }
func (c *counters) endpoints(n int) { c.change(func(s *Stats) { s.Endpoints += n }) }
func (c *counters) unsettled(n int) { c.change(func(s *Stats) { s.Unsettled += n }) }

// observe counts an attempt and, if its delivery is finished, the delivery.
func (c *counters) observe(r result, took time.Duration, status outbound.DeliveryStatus) {
	c.change(func(s *Stats) {
		s.Attempts[string(r)]++
		s.Seconds.observe(took.Seconds())
		if status != outbound.DeliveryPending {
			s.Deliveries[status]++
		}
	})
}

func (h *Histogram) observe(value float64) {
	h.Count++
	h.Sum += value
	first, _ := slices.BinarySearch(attemptBounds, value)
	for _, bound := range attemptBounds[first:] {
		h.Buckets[bound]++
	}
}
