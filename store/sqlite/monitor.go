package sqlite

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// monitorInterval is how often the monitor checks the files.
const monitorInterval = 500 * time.Millisecond

// A monitor checks the files and the writer, and reports incidents.
type monitor struct {
	guard   *guard
	health  *health
	writer  *writer
	begun   time.Time
	checked atomic.Int64 // when it last checked the files, as the time since begun

	stop    chan struct{}
	running sync.WaitGroup
}

func startMonitor(g *guard, h *health, w *writer) *monitor {
	m := &monitor{guard: g, health: h, writer: w, begun: time.Now(), stop: make(chan struct{})}
	m.running.Go(m.run)
	return m
}

// close stops the monitor, and reports the last incidents.
func (m *monitor) close() {
	close(m.stop)
	m.running.Wait()
	m.health.report(time.Now())
}

func (m *monitor) run() {
	tick := time.NewTicker(monitorInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.check()
		case <-m.health.news:
		case <-m.stop:
			return
		}
		m.health.report(time.Now())
	}
}

// check checks the files. If the last write failed, it queues one that changes nothing,
// to find out whether writing works again.
func (m *monitor) check() {
	err := m.guard.check()
	m.checked.Store(int64(time.Since(m.begun)))
	if err != nil {
		m.health.failed(sqldb.FileIncident, err)
		return
	}
	m.health.succeeded(sqldb.FileIncident)
	if m.health.failing(sqldb.WriteIncident) != nil {
		m.writer.probe()
	}
}

// ready returns the reason why the engine is not ready, or nil.
func (m *monitor) ready() error {
	if err := m.health.failing(sqldb.FileIncident); err != nil {
		return err
	}
	if since := time.Since(m.begun) - time.Duration(m.checked.Load()); since > stalledAfter {
		return stalledf("the disk has not responded for %v", since.Round(time.Second))
	}
	if err := m.health.failing(sqldb.WriteIncident); err != nil {
		return err
	}
	if waited := m.writer.waited(); waited > stalledAfter {
		return stalledf("writes have been waiting for %v", waited.Round(time.Second))
	}
	return m.health.failing(sqldb.ReadIncident)
}

func stalledf(format string, args ...any) error {
	return &sqldb.Error{Class: sqldb.Stalled, Err: fmt.Errorf(format, args...)}
}
