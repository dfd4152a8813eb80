package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ledgerd/ledgerd/internal/backup"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/server"
	servermetrics "github.com/ledgerd/ledgerd/server/metrics"
	"github.com/ledgerd/ledgerd/store"
	storemetrics "github.com/ledgerd/ledgerd/store/metrics"
	"github.com/ledgerd/ledgerd/transparency/witness"
	witnessmetrics "github.com/ledgerd/ledgerd/transparency/witness/metrics"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
	webhookmetrics "github.com/ledgerd/ledgerd/webhook/dispatch/metrics"
)

// metrics has the metrics of an instance.
type metrics struct {
	all  *prometheus.Registry // names no org
	orgs *prometheus.Registry // those with the names of orgs

	server *servermetrics.Metrics
	writer *storemetrics.Writer
}

func newMetrics() *metrics {
	m := &metrics{all: prometheus.NewRegistry(), orgs: prometheus.NewRegistry()}
	m.server, m.writer = servermetrics.New(m.all), storemetrics.NewWriter(m.all)
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ledgerd_build_info", Help: "The value is 1; the labels say what this process was built from.",
		ConstLabels: prometheus.Labels{
			"version": buildinfo.Version(), "revision": revision(), "goversion": runtime.Version(),
		},
	})
	build.Set(1)
	m.all.MustRegister(build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// revision returns the commit that the program was built from; empty if it is not known.
func revision() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// watch registers what the parts of an instance say of themselves.
func (m *metrics) watch(
	api *server.Server, db *store.Store, pool *witness.Pool, webhooks *dispatch.Dispatcher,
	backups *backup.Schedule,
) {
	servermetrics.Watch(m.all, api)
	m.all.MustRegister(storemetrics.NewState(db), webhookmetrics.New(webhooks))
	if backups != nil {
		m.watchBackups(backups)
	}
	m.orgs.MustRegister(storemetrics.New(db), witnessmetrics.New(pool))
}

func (m *metrics) watchBackups(backups *backup.Schedule) {
	gauge := func(name, help string, value func(backup.Status) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ledgerd_backup_" + name, Help: help},
			func() float64 { return value(backups.Status()) })
	}
	m.all.MustRegister(
		gauge("last_timestamp_seconds", "Time of the newest backup; 0 if there is none.", func(s backup.Status) float64 {
			if s.Last.IsZero() {
				return 0
			}
			return float64(s.Last.Unix())
		}),
		gauge("bytes", "Size of the newest backup.", func(s backup.Status) float64 { return float64(s.Bytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "ledgerd_backup_failures_total", Help: "Backups that failed."},
			func() float64 { return float64(backups.Status().Failures) }),
	)
}

// maxScrapes is how many scrapes are answered at the same time; further ones get the status 503.
const maxScrapes = 4

// handler returns the handler of /metrics.
func (m *metrics) handler(from prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: 10 * time.Second, ErrorHandling: promhttp.ContinueOnError,
	})
}

// public returns the handler of /metrics on the listener of the API, or nil for none.
func (m *metrics) public(s config.Metrics) http.Handler {
	if s.Listen != "" {
		return nil
	}
	return m.handler(m.all)
}

// A privateServer serves metrics, profiles and the log level on a listener of its own.
type privateServer struct {
	http     *http.Server
	listener net.Listener
}

// private returns the server of metrics.listen, or nil if that is not an address.
func (m *metrics) private(s config.Metrics, log *Log) (*privateServer, error) {
	if s.Listen == "" || s.Listen == config.MetricsOff {
		return nil, nil
	}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return nil, fmt.Errorf("metrics.listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.handler(prometheus.Gatherers{m.all, m.orgs}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	if log.level != nil {
		log.handleLevel(mux)
	}
	return &privateServer{&http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}, listener}, nil
}

// serve serves until ctx is done.
func (p *privateServer) serve(ctx context.Context) error {
	stopped := context.AfterFunc(ctx, func() { _ = p.http.Close() })
	defer stopped()
	if err := p.http.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}
