package store

import (
	"flag"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

var benchEvents = flag.Int("log.events", 100_000, "`number` of events whose log BenchmarkBuildLog builds")

// How long the log of the events of an earlier release is built, while one client goes on
// appending events.
func BenchmarkBuildLog(b *testing.B) {
	s, path := newLogStore(b)
	const batch = 5000
	for done := 0; done < *benchEvents; done += batch {
		must.OK(b, appendEvents(b.Context(), s, batch, nil))
	}
	db := readRaw(b, path)

	for b.Loop() {
		b.StopTimer()
		_, err := db.Exec("UPDATE events SET salt = NULL, leaf = NULL; DELETE FROM tiles; UPDATE orgs SET log_built = 0")
		must.OK(b, err)
		built := make(chan error)
		b.StartTimer()

		start, appended := time.Now(), 0
		go func() { built <- s.BuildLogsOnce(b.Context()) }()
		for running := true; running; appended++ {
			select {
			case err = <-built:
				running = false
			default:
				must.OK(b, appendEvents(b.Context(), s, 1, nil))
			}
		}
		must.OK(b, err)
		b.ReportMetric(float64(*benchEvents)/time.Since(start).Seconds(), "events/s")
		b.ReportMetric(float64(appended)/time.Since(start).Seconds(), "appended/s")
	}
	if logs, err := s.LogsToSign(b.Context(), true, "", 10); err != nil || len(logs) != 1 {
		b.Errorf("logs to be signed: %v, %v; want one", logs, err)
	}
}
