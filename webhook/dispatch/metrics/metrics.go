// Package metrics exports the statistics of a webhook dispatcher to Prometheus. It is
// separate so that package dispatch does not depend on Prometheus.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// A Collector is a Prometheus collector of a dispatcher's Stats.
type Collector struct {
	stats func() dispatch.Stats

	attempts, seconds, inFlight, endpoints, deliveries, unsettled *prometheus.Desc
}

// New returns the collector of a dispatcher.
func New(d *dispatch.Dispatcher) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ledgerd_webhook_"+name, help, labels, nil)
	}
	return &Collector{
		stats:      d.Stats,
		attempts:   desc("attempts_total", "Requests made for webhooks, by what came of them.", "result"),
		seconds:    desc("attempt_seconds", "How long those requests took."),
		inFlight:   desc("in_flight", "Requests that wait for their answer."),
		endpoints:  desc("endpoints", "Webhooks that are being delivered to."),
		deliveries: desc("deliveries_total", "Deliveries that are over, by how they ended.", "status"),
		unsettled:  desc("unsettled", "Attempts whose outcome is not written yet."),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.attempts, c.seconds, c.inFlight, c.endpoints, c.deliveries, c.unsettled} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(collected chan<- prometheus.Metric) {
	s := c.stats()
	counter := func(d *prometheus.Desc, n uint64, label string) {
		collected <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), label)
	}
	gauge := func(d *prometheus.Desc, n int) {
		collected <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n))
	}
	for result, n := range s.Attempts {
		counter(c.attempts, n, result)
	}
	for status, n := range s.Deliveries {
		counter(c.deliveries, n, string(status))
	}
	collected <- prometheus.MustNewConstHistogram(c.seconds, s.Seconds.Count, s.Seconds.Sum, s.Seconds.Buckets)
	gauge(c.inFlight, s.InFlight)
	gauge(c.endpoints, s.Endpoints)
	gauge(c.unsettled, s.Unsettled)
}
