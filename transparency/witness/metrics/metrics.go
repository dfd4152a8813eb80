// Package metrics exports the statistics of witnesses to Prometheus, for programs that embed
// them. It is a separate package so that witness does not depend on Prometheus.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/transparency/witness"
)

// A Collector implements prometheus.Collector for the witnesses of our logs.
type Collector struct {
	pool *witness.Pool

	size, lag, cosignedAt, failures, stopped *prometheus.Desc
}

// New returns a Collector. The pool may be nil.
func New(pool *witness.Pool) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ledgerd_"+name, help, labels, nil)
	}
	return &Collector{
		pool:       pool,
		size:       desc("log_checkpoint_size", "Size of the log's latest checkpoint.", "log"),
		lag:        desc("log_witness_lag", "Events of the log that the witness has not cosigned yet.", "log", "witness"),
		cosignedAt: desc("log_witness_cosigned_timestamp_seconds", "Time of the latest cosignature.", "log", "witness"),
		failures:   desc("log_witness_failures_total", "Requests to the witness that failed.", "log", "witness"),
		stopped:    desc("log_stopped", "Whether the log is not signed because a witness knows another history.", "log"),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.size, c.lag, c.cosignedAt, c.failures, c.stopped} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(collected chan<- prometheus.Metric) {
	if c.pool == nil {
		return
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		collected <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for log, s := range c.pool.Stats() {
		send(c.size, prometheus.GaugeValue, float64(s.Size), log)
		send(c.stopped, prometheus.GaugeValue, number(s.Stopped), log)
		for _, w := range s.Witnesses {
			send(c.lag, prometheus.GaugeValue, float64(s.Size-w.Size), log, w.Witness)
			send(c.cosignedAt, prometheus.GaugeValue, w.At, log, w.Witness)
			send(c.failures, prometheus.CounterValue, float64(w.Failures), log, w.Witness)
		}
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
