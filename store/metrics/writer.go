package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Writer counts the transactions of a store that write; see store.Options.Committed.
type Writer struct {
	writes, waited, locked, took, synced prometheus.Histogram
	failed                               prometheus.Counter
}

// NewWriter returns a Writer that is registered in r.
func NewWriter(r prometheus.Registerer) *Writer {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ledgerd_" + name, Help: help, Buckets: buckets})
	}
	seconds := prometheus.ExponentialBuckets(.0005, 2, 14) // up to 4 s
	w := &Writer{
		writes: histogram("write_batch_size", "Writes that shared a transaction.", prometheus.ExponentialBuckets(1, 2, 10)),
		waited: histogram("write_wait_seconds", "How long the first write of a transaction waited, in seconds.", seconds),
		locked: histogram("write_lock_seconds", "How long a transaction waited for its locks, in seconds.", seconds),
		took:   histogram("write_seconds", "Duration of transactions that write, in seconds.", seconds),
		synced: histogram("write_fsync_seconds", "Duration of their COMMIT with its fsync, in seconds.", seconds),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ledgerd_write_failures_total", Help: "Transactions that were rolled back as a whole.",
		}),
	}
	r.MustRegister(w.writes, w.waited, w.locked, w.took, w.synced, w.failed)
	return w
}

// Committed counts a transaction.
func (w *Writer) Committed(c sqldb.Commit) {
	w.writes.Observe(float64(c.Writes))
	w.waited.Observe(c.Waited.Seconds())
	w.locked.Observe(c.Locked.Seconds())
	w.took.Observe(c.Took.Seconds())
	if c.Failed {
		w.failed.Inc()
		return
	}
	w.synced.Observe(c.Synced.Seconds())
}
