// Package metrics exports the statistics of a webhook dispatcher to Prometheus. It is
// a separate package so that dispatch does not depend on Prometheus.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// A Collector implements prometheus.Collector with the Stats of a dispatcher.
type Collector struct {
	stats func() dispatch.Stats

	attempts, seconds, inFlight, endpoints, deliveries, unsettled *prometheus.Desc
}

// New returns a Collector for a dispatcher.
func New(d *dispatch.Dispatcher) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ledgerd_webhook_"+name, help, labels, nil)
	}
	return &Collector{
		stats:      d.Stats,
		attempts:   desc("attempts_total", "Webhook delivery attempts, by result.", "result"),
		seconds:    desc("attempt_seconds", "Duration of webhook delivery attempts, in seconds."),
		inFlight:   desc("in_flight", "Webhook requests that wait for a response."),
		endpoints:  desc("endpoints", "Webhooks with deliveries in progress."),
		deliveries: desc("deliveries_total", "Finished webhook deliveries, by final status.", "status"),
		unsettled:  desc("unsettled", "Webhook delivery attempts whose outcome is not recorded yet."),
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
