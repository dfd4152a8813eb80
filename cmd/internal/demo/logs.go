package demo

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A signer is a person or a system that signs attestations.
type signer struct{ name, unit, email string }

// Evidence is what a signer says of a commit.
type evidence struct {
	by          signer
	predicate   string
	status      ledger.Status
	duration    time.Duration
	annotations map[string]string
	job         string // its path on the CI server; "" if it is no job
}

// A logServer stands in for the CI system: it shows the logs of its jobs.
type logServer struct {
	url    string
	web    *http.Server
	failed chan error // receives the error that ended the server

	mu   sync.Mutex
	logs map[string]string // by path; as many as the story has jobs
}

// serveLogs starts the server. The caller must stop it.
func serveLogs() (*logServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &logServer{url: "http://" + listener.Addr().String(), failed: make(chan error, 1), logs: make(map[string]string)}
	l.web = &http.Server{Handler: l, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { l.failed <- l.web.Serve(listener) }()
	return l, nil
}

// add adds the log of a job, which is made up, and returns its URL.
func (l *logServer) add(job, subject string, e evidence) string {
	verdict := "ok"
	if e.status != ledger.Pass {
		verdict = "FAILED"
	}
	log := fmt.Sprintf("%s\n\n%s\n%s: %s after %v\n\nThe demo of ledgerd has made up this job.\n", job, subject,
		e.predicate, verdict, e.duration.Round(time.Second))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logs["/"+job] = log
	return l.url + "/" + job
}

// ServeHTTP implements http.Handler.
func (l *logServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	log, ok := l.logs[r.URL.Path]
	l.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(log)) // the browser may be gone
}

func (l *logServer) stop() error {
	err := l.web.Close()
	<-l.failed //nolint:errcheck // http.ErrServerClosed
	return err
}
