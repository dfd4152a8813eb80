// Package metrics exports what a server does to Prometheus. It is a separate package so that
// server does not depend on Prometheus.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server"
)

// A Metrics is the server.Observer of a server.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	recorded *prometheus.CounterVec
	cutOffs  prometheus.Counter
}

var _ server.Observer = (*Metrics)(nil)

// New returns an observer that is registered in r.
func New(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ledgerd_http_requests_total",
			Help: "Requests, by the pattern of the path, method and status. Paths without an endpoint have the route none.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ledgerd_http_request_seconds",
			Help:    "Time until the response began, in seconds, by the pattern of the path and method.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ledgerd_http_errors_total", Help: "Errors in responses, by code.",
		}, []string{"code"}),
		recorded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ledgerd_attestations_recorded_total",
			Help: "Attestations recorded by this process, by the status of their result.",
		}, []string{"status"}),
		cutOffs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ledgerd_stream_cutoffs_total",
			Help: "Clients of live streams that were disconnected because they did not read.",
		}),
	}
	r.MustRegister(m.requests, m.seconds, m.refused, m.recorded, m.cutOffs)
	return m
}

// Watch registers in r what a server can say of itself.
func Watch(r prometheus.Registerer, s *server.Server) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ledgerd_streams_open", Help: "Open live streams.",
	}, func() float64 { return float64(s.Streams()) }))
}

// Responded implements server.Observer.
func (m *Metrics) Responded(route, method string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	method = known(method)
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route, method).Observe(took.Seconds())
}

// known returns a method, or "other": clients can send any word.
func known(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return method
	}
	return "other"
}

// Refused implements server.Observer.
func (m *Metrics) Refused(code ledger.Code) { m.refused.WithLabelValues(string(code)).Inc() }

// Recorded implements server.Observer.
func (m *Metrics) Recorded(status ledger.Status) { m.recorded.WithLabelValues(string(status)).Inc() }

// CutOff implements server.Observer.
func (m *Metrics) CutOff() { m.cutOffs.Inc() }
