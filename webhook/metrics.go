package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/ledger"
)

// A result is the kind of thing that came of an attempt, for the metrics.
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

type metrics struct {
	attempts   *prometheus.CounterVec
	seconds    prometheus.Histogram
	inFlight   prometheus.Gauge
	endpoints  prometheus.Gauge
	deliveries *prometheus.CounterVec
	unsettled  prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ledgerd_webhook_attempts_total", Help: "Requests made for webhooks, by what came of them."}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ledgerd_webhook_attempt_seconds", Help: "How long those requests took.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ledgerd_webhook_in_flight", Help: "Requests that wait for their answer."}),
		endpoints: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ledgerd_webhook_endpoints", Help: "Webhooks that are being delivered to."}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ledgerd_webhook_deliveries_total", Help: "Deliveries that are over, by how they ended."}, []string{"status"}),
		unsettled: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ledgerd_webhook_unsettled", Help: "Attempts whose outcome is not written yet."}),
	}
	// A rate over a counter needs its zero.
	for _, r := range []result{resultSuccess, resultClientError, resultServerError, resultRedirect, resultGone,
		resultTimeout, resultRefused, resultNetwork, resultInternal} {
		m.attempts.WithLabelValues(string(r))
	}
	m.deliveries.WithLabelValues(string(ledger.DeliverySucceeded))
	m.deliveries.WithLabelValues(string(ledger.DeliveryFailed))
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.attempts, m.seconds, m.inFlight, m.endpoints, m.deliveries, m.unsettled}
}

// observe counts an attempt and, if it was the last, its delivery.
func (m *metrics) observe(s sent, status ledger.DeliveryStatus) {
	m.attempts.WithLabelValues(string(s.result)).Inc()
	m.seconds.Observe(s.took.Seconds())
	if status != ledger.DeliveryPending {
		m.deliveries.WithLabelValues(string(status)).Inc()
	}
}

// Describe implements prometheus.Collector.
func (d *Dispatcher) Describe(descs chan<- *prometheus.Desc) {
	for _, c := range d.metrics.collectors() {
		c.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (d *Dispatcher) Collect(collected chan<- prometheus.Metric) {
	for _, c := range d.metrics.collectors() {
		c.Collect(collected)
	}
}
