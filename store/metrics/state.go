package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A State implements prometheus.Collector with the state of a store. It names no org.
type State struct {
	store *store.Store

	file, log, trips, connects, inUse, waiting, rows, radar, radarLimit *prometheus.Desc
	pending, oldest, jobs, failing, oldestJob, unsigned, signed         *prometheus.Desc
}

// NewState returns a State of a store.
func NewState(s *store.Store) *State {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ledgerd_"+name, help, labels, nil)
	}
	return &State{
		store:      s,
		file:       desc("database_bytes", "Size of the database."),
		log:        desc("database_wal_bytes", "Size of the write-ahead log of the database."),
		trips:      desc("database_round_trips_total", "What was sent to PostgreSQL and waited for."),
		connects:   desc("database_connects_total", "Connections to PostgreSQL that were made."),
		inUse:      desc("readers_in_use", "Connections that read now, by lane.", "lane"),
		waiting:    desc("readers_waiting", "Reads that wait for a connection, by lane.", "lane"),
		rows:       desc("read_rows_total", "Rows that reads have returned, by lane.", "lane"),
		radar:      desc("radar_bytes", "Approximate memory of the indexes of Conflict Radar."),
		radarLimit: desc("radar_limit_bytes", "Limit of this memory."),
		pending:    desc("outbox_pending", "Webhook deliveries that are not finished; at most 20000 are counted."),
		oldest:     desc("outbox_oldest_seconds", "Age of the oldest of them; 0 if there is none."),
		jobs: desc("backlog_jobs", "Jobs of the background that wait, by task; at most 1000 of each org are counted.",
			"task"),
		failing:   desc("backlog_failing_jobs", "Those of them that have failed.", "task"),
		oldestJob: desc("backlog_oldest_seconds", "How long the first of them has waited; 0 if none waits.", "task"),
		unsigned:  desc("log_unsigned_events", "Events of all transparency logs that no checkpoint covers yet."),
		signed: desc("log_checkpoint_oldest_seconds",
			"Age of the oldest checkpoint of a log that has unsigned events; 0 if all events are signed."),
	}
}

func (s *State) all() []*prometheus.Desc {
	return []*prometheus.Desc{s.file, s.log, s.trips, s.connects, s.inUse, s.waiting, s.rows, s.radar, s.radarLimit,
		s.pending, s.oldest, s.jobs, s.failing, s.oldestJob, s.unsigned, s.signed}
}

// Describe implements prometheus.Collector.
func (s *State) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range s.all() {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (s *State) Collect(collected chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), maxCollect)
	defer cancel()
	st, err := s.store.Stats(ctx)
	if err != nil {
		collected <- prometheus.NewInvalidMetric(s.pending, err)
		return
	}

	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		collected <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(s.file, float64(st.Engine.FileBytes))
	if st.Engine.Connects == 0 { // it is a file
		gauge(s.log, float64(st.Engine.LogBytes))
	} else {
		collected <- prometheus.MustNewConstMetric(s.trips, prometheus.CounterValue, float64(st.Engine.RoundTrips))
		collected <- prometheus.MustNewConstMetric(s.connects, prometheus.CounterValue, float64(st.Engine.Connects))
	}
	for i, lane := range st.Engine.Lanes {
		name := sqldb.Lane(i).String()
		gauge(s.inUse, float64(lane.InUse), name)
		gauge(s.waiting, float64(lane.Waiting), name)
		collected <- prometheus.MustNewConstMetric(s.rows, prometheus.CounterValue, float64(lane.Rows), name)
	}
	gauge(s.radar, float64(st.RadarBytes))
	gauge(s.radarLimit, float64(st.RadarLimit))

	now := s.store.Now()
	gauge(s.pending, float64(st.Pending))
	gauge(s.oldest, age(now, st.Oldest))
	s.collectBacklog(gauge, st.Backlog, now)
	var unsigned int64
	oldest := ledger.Time(0)
	for _, l := range st.Logs {
		if l.Unsigned <= 0 {
			continue
		}
		unsigned += l.Unsigned
		if oldest == 0 || l.SignedAt < oldest {
			oldest = l.SignedAt
		}
	}
	gauge(s.unsigned, float64(unsigned))
	gauge(s.signed, age(now, oldest))
}

// collectBacklog adds what waits in all orgs.
func (s *State) collectBacklog(
	gauge func(*prometheus.Desc, float64, ...string), list []store.Backlog, now ledger.Time,
) {
	for _, task := range store.Tasks() {
		var jobs, failing int64
		var oldest float64
		for _, b := range list {
			if b.Task == task {
				jobs, failing, oldest = jobs+b.Jobs, failing+b.Failing, max(oldest, age(now, b.Oldest))
			}
		}
		gauge(s.jobs, float64(jobs), task)
		gauge(s.failing, float64(failing), task)
		gauge(s.oldestJob, oldest, task)
	}
}
