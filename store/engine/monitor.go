package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// monitorInterval is how often the monitor checks the files.
const monitorInterval = 500 * time.Millisecond

// A Monitor checks the files and the writer, and reports incidents.
type Monitor struct {
	check   func() error
	probe   sqldb.Write
	health  *Health
	writer  *Writer
	begun   time.Time
	checked atomic.Int64 // when it last checked the files, as the time since begun

	stop    chan struct{}
	running sync.WaitGroup
}

// StartMonitor starts a monitor, which runs until Close returns. check checks the files; it may be
// nil. probe is a write that changes nothing, but shows whether writing works.
func StartMonitor(check func() error, probe sqldb.Write, h *Health, w *Writer) *Monitor {
	probe.Probe = true
	m := &Monitor{check: check, probe: probe, health: h, writer: w, begun: time.Now(), stop: make(chan struct{})}
	m.running.Go(m.run)
	return m
}

// Close stops the monitor, and reports the last incidents.
func (m *Monitor) Close() {
	close(m.stop)
	m.running.Wait()
	m.health.Report(time.Now())
}

func (m *Monitor) run() {
	tick := time.NewTicker(monitorInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.look()
		case <-m.health.news:
		case <-m.stop:
			return
		}
		m.health.Report(time.Now())
	}
}

// look checks the files. If writing fails and the writer is not stuck, it queues a write that changes
// nothing, to find out whether writing works again.
func (m *Monitor) look() {
	if m.check != nil {
		err := m.check()
		m.checked.Store(int64(time.Since(m.begun)))
		if err != nil {
			m.health.Failed(sqldb.FileIncident, err)
			return
		}
		m.health.Succeeded(sqldb.FileIncident)
	}
	if m.health.Failing(sqldb.WriteIncident) != nil && m.writer.Waited() < monitorInterval {
		m.writer.TryWrite(m.probe)
	}
}

// Ready returns the reason why the engine is not ready, or nil.
func (m *Monitor) Ready() error {
	if err := m.health.Failing(sqldb.FileIncident); err != nil {
		return err
	}
	if since := time.Since(m.begun) - time.Duration(m.checked.Load()); m.check != nil && since > stalledAfter {
		return stalledf("the disk has not responded for %v", since.Round(time.Second))
	}
	if err := m.health.Failing(sqldb.WriteIncident); err != nil {
		return err
	}
	if waited := m.writer.Waited(); waited > m.writer.StalledAfter {
		return stalledf("writes have been waiting for %v", waited.Round(time.Second))
	}
	return m.health.Failing(sqldb.ReadIncident)
}

func stalledf(format string, args ...any) error {
	return &sqldb.Error{Class: sqldb.Stalled, Err: fmt.Errorf(format, args...)}
}
