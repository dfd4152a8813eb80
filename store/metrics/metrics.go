// Package metrics exports numbers about the contents of a store to Prometheus, for programs
// that embed it. It is a separate package so that store does not depend on Prometheus.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/store"
)

// A Collector implements prometheus.Collector with the number of violations by org.
type Collector struct {
	store        *store.Store
	opened, open *prometheus.Desc
}

// New returns a Collector for a store.
func New(s *store.Store) *Collector {
	return &Collector{
		store: s,
		opened: prometheus.NewDesc("ledgerd_violations_opened_total",
			"Deployments that did not count when they were recorded.", []string{"org"}, nil),
		open: prometheus.NewDesc("ledgerd_violations_open", "Violations that nothing has closed yet.", []string{"org"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.opened
	descs <- c.open
}

// maxCollect is the maximum time that Collect waits for the store.
const maxCollect = 5 * time.Second

// Collect implements prometheus.Collector.
func (c *Collector) Collect(collected chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), maxCollect)
	defer cancel()
	counts, err := c.store.ViolationCounts(ctx)
	if err != nil {
		collected <- prometheus.NewInvalidMetric(c.open, err)
		return
	}
	for _, n := range counts {
		collected <- prometheus.MustNewConstMetric(c.opened, prometheus.CounterValue, float64(n.Opened), n.Org)
		collected <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(n.Open), n.Org)
	}
}
