// Package metrics exports numbers about the contents of a store to Prometheus, for programs
// that embed it. It is a separate package so that store does not depend on Prometheus.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// A Collector implements prometheus.Collector with the violations and the backlog of each org.
type Collector struct {
	store        *store.Store
	opened, open *prometheus.Desc
	jobs, oldest *prometheus.Desc
}

// New returns a Collector for a store.
func New(s *store.Store) *Collector {
	return &Collector{
		store: s,
		opened: prometheus.NewDesc("ledgerd_violations_opened_total",
			"Deployments that did not count when they were recorded.", []string{"org"}, nil),
		open: prometheus.NewDesc("ledgerd_violations_open", "Violations that nothing has closed yet.", []string{"org"}, nil),
		jobs: prometheus.NewDesc("ledgerd_org_backlog_jobs",
			"Jobs of the background that wait, by org and task; at most 1000.", []string{"org", "task"}, nil),
		oldest: prometheus.NewDesc("ledgerd_org_backlog_oldest_seconds", "How long the first of them has waited.",
			[]string{"org", "task"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.opened
	descs <- c.open
	descs <- c.jobs
	descs <- c.oldest
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

	waiting, err := c.store.Backlog(ctx)
	if err != nil {
		collected <- prometheus.NewInvalidMetric(c.jobs, err)
		return
	}
	now := c.store.Now()
	for _, b := range waiting {
		collected <- prometheus.MustNewConstMetric(c.jobs, prometheus.GaugeValue, float64(b.Jobs), b.Org, b.Task)
		collected <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, age(now, b.Oldest), b.Org, b.Task)
	}
}

// age returns the seconds since a time; 0 if the time is 0 or in the future.
func age(now, since ledger.Time) float64 {
	if since == 0 {
		return 0
	}
	return max(0, now.Sub(since)).Seconds()
}
