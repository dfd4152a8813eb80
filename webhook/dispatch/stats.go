package dispatch

import (
	"slices"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A result is the kind of thing that came of an attempt.
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

// Stats are what a Dispatcher has done since it was made. The package
// webhook/dispatch/metrics makes metrics of them.
type Stats struct {
	// Attempts counts the requests by what came of them; all results are there.
	Attempts map[string]uint64
	// Deliveries counts those that are over, by their last status.
	Deliveries map[ledger.DeliveryStatus]uint64
	// Seconds tells how long the requests took.
	Seconds Histogram
	// InFlight counts the requests that wait for their answer.
	InFlight int
	// Endpoints counts the webhooks that are being delivered to.
	Endpoints int
	// Unsettled counts the attempts whose outcome is not written yet.
	Unsettled int
}

// A Histogram counts values by size.
type Histogram struct {
	Count uint64
	Sum   float64
	// Buckets counts, by upper bound, the values that are not above it.
	Buckets map[float64]uint64
}

// attemptBounds are the upper bounds of Stats.Seconds.
var attemptBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}

// counters are the Stats as they grow.
type counters struct {
	mu    sync.Mutex
	stats Stats
}

func newCounters() *counters {
	c := &counters{stats: Stats{
		Attempts:   map[string]uint64{},
		Deliveries: map[ledger.DeliveryStatus]uint64{ledger.DeliverySucceeded: 0, ledger.DeliveryFailed: 0},
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

// change runs a function that changes the counters.
func (c *counters) change(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.stats)
}

func (c *counters) inFlight(n int)  { c.change(func(s *Stats) { s.InFlight += n }) }
func (c *counters) endpoints(n int) { c.change(func(s *Stats) { s.Endpoints += n }) }
func (c *counters) unsettled(n int) { c.change(func(s *Stats) { s.Unsettled += n }) }

// observe counts an attempt and, if it was the last, its delivery.
func (c *counters) observe(r result, took time.Duration, status ledger.DeliveryStatus) {
	c.change(func(s *Stats) {
		s.Attempts[string(r)]++
		s.Seconds.observe(took.Seconds())
		if status != ledger.DeliveryPending {
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
