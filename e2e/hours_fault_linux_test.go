package e2e_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/e2e/internal/fastclock"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// fewHours is the duration of FaultFortyHours in CI.
const fewHours = 0.3

var loadHours = flag.Float64("fault.hours", fewHours, "the `hours` of load in FaultFortyHours, 30 seconds each")

// A sample is the state of the server at a moment.
type sample struct {
	hour       float64
	resident   float64 // MiB
	heap       float64 // MiB of live objects
	goroutines float64
	files      float64
	wal        float64 // MiB
	database   float64 // MiB
	jobs       int
}

// A measure is a column of the samples, with the bounds in which it counts as flat.
type measure struct {
	name   string
	of     func(sample) float64
	growth float64 // maximum growth from a quarter of the time to the end, by the linear trend
	limit  float64 // maximum value
}

var measures = []measure{
	{"resident MiB", func(s sample) float64 { return s.resident }, 40, 300},
	{"heap MiB", func(s sample) float64 { return s.heap }, 20, 150},
	{"goroutines", func(s sample) float64 { return s.goroutines }, 60, 500},
	{"files", func(s sample) float64 { return s.files }, 30, 300},
	{"WAL MiB", func(s sample) float64 { return s.wal }, 20, 80},
}

// Forty hours of load take twenty minutes on a server whose clocks run 120 times faster.
// Memory, descriptors, goroutines and the write-ahead log do not grow with time, and
// nothing is left after the load:
//
//	go test ./e2e -run TestFaultFortyHours -fault.hours 40 -timeout 30m -v
func TestFaultFortyHours(t *testing.T) {
	if !fastclock.Supported {
		t.Skip("runs on Linux on AMD64")
	}
	if *loadHours == fewHours {
		testenv.From(t, testenv.Full, "takes 20 s")
	}
	l := newLoad(t, 120)
	l.idle()
	before := l.sample()

	duration := time.Duration(*loadHours * float64(time.Hour))
	samples := l.runAndSample(duration, max(duration/160, time.Minute))
	after := l.rest(before)
	all := slices.Concat([]sample{before}, samples, []sample{after})
	t.Logf("at the start, under load, and after it:\n%s", table(all))
	t.Logf("tasks:\n%s", l.table())
	for _, m := range measures {
		for _, fault := range m.faults(samples, duration >= minTrend) {
			t.Error(fault)
		}
		t.Logf("%s: trend %+.1f in the last three quarters", m.name, m.trend(samples[len(samples)/4:]))
	}
	l.checkTasks(duration >= minTrend)
	l.stop()
	l.checkTime()
}

// A measure is flat if it neither exceeds its limit nor grows by more than its bound in
// the last three quarters of the samples, whatever it does in the first.
func TestFaultFlatness(t *testing.T) {
	m := measure{"heap", func(s sample) float64 { return s.heap }, 10, 100}
	for name, test := range map[string]struct {
		heap     func(i float64) float64 // of 40 samples
		hasTrend bool
		faults   int
	}{
		"flat":                    {func(float64) float64 { return 50 }, true, 0},
		"noisy":                   {func(i float64) float64 { return 50 + 20*float64(int(i)%2) }, true, 0},
		"falling":                 {func(i float64) float64 { return 90 - i }, true, 0},
		"growing":                 {func(i float64) float64 { return 20 + i/2 }, true, 1},
		"growing slowly":          {func(i float64) float64 { return 20 + i/4 }, true, 0},
		"growing at first":        {func(i float64) float64 { return 5 * min(i, 10) }, true, 0},
		"growing for a short run": {func(i float64) float64 { return 20 + i }, false, 0},
		"too large once":          {func(i float64) float64 { return max(50, 110-60*(i-24)*(i-24)) }, true, 1},
		"too large and growing":   {func(i float64) float64 { return 80 + i }, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var samples []sample
			for i := range 40 {
				samples = append(samples, sample{hour: float64(i), heap: test.heap(float64(i))})
			}
			if faults := m.faults(samples, test.hasTrend); len(faults) != test.faults {
				t.Errorf("got %q, want %d faults", faults, test.faults)
			}
		})
	}
}

// start starts the server with fast clocks.
func (l *load) start() {
	l.t.Helper()
	socket := filepath.Join(filepath.Dir(l.o.database), "stats")
	l.o.env = []string{fastFactor + "=" + fmt.Sprint(l.factor), fastSocket + "=" + socket,
		"LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8", "LEDGERD_WEBHOOKS_SCHEDULE=5s,5m,10m",
		"LEDGERD_WEBHOOKS_KEEP=25h"}
	l.o.startWith(func(serve *exec.Cmd) *exec.Cmd { return exec.Command("ledgerd-fast", serve.Args[1:]...) })
	stats := l.stats()
	l.began, l.realBegan = stats.Now, time.Now()
}

// stop stops the server gracefully.
func (l *load) stop() {
	l.t.Helper()
	l.o.signal(syscall.SIGTERM)
	if code := l.o.server.ProcessState.ExitCode(); code != 0 {
		l.t.Errorf("the server exited with %d:\n%s", code, l.o.log.String())
	}
}

// runAndSample runs the load for a duration, and takes a sample at an interval. For a
// twelfth of each four hours, the receiver has an outage.
func (l *load) runAndSample(duration, interval time.Duration) []sample {
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(ctx)
	}()

	var samples []sample
	began := l.now()
	for next := began.Add(interval); !next.After(began.Add(duration)); next = next.Add(interval) {
		l.pause(ctx, next.Sub(l.now()))
		s := l.sample()
		samples = append(samples, s)
		l.receiver.outage.Store(int(12*s.hour/4)%12 == 5)
		if testing.Verbose() {
			l.t.Logf("%+v", s) // at once: the table comes at the end
		}
	}
	cancel()
	<-ended
	l.receiver.outage.Store(false)
	return samples
}

// idle closes the connections of the load, and lets three minutes of the server's time
// pass.
func (l *load) idle() {
	l.transport.CloseIdleConnections()
	l.pause(l.t.Context(), 3*time.Minute)
}

// rest returns a sample after the load. It checks that the load has left nothing in the
// process, for which it waits at most for two hours of the server's time.
func (l *load) rest(before sample) (after sample) {
	l.t.Helper()
	for range 40 {
		l.idle()
		after = l.sample()
		if after.goroutines <= before.goroutines+4 && after.files <= before.files+8 && after.heap <= before.heap+15 {
			return after
		}
	}
	l.t.Errorf("the load has left something: %+v, before it: %+v\n%s\n%s", after, before,
		l.fromProcess("/profile/goroutine"), l.fromProcess("/profile/heap"))
	return after
}

// stats returns the statistics of the server's process.
func (l *load) stats() processStats {
	l.t.Helper()
	var stats processStats
	must.OK(l.t, json.Unmarshal(l.fromProcess("/stats"), &stats))
	return stats
}

// fromProcess returns a document from the socket of the server's process.
func (l *load) fromProcess(path string) []byte {
	l.t.Helper()
	socket := filepath.Join(filepath.Dir(l.o.database), "stats")
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	response, err := c.Get("http://process" + path)
	must.OK(l.t, err)
	defer response.Body.Close()
	return must.Get(io.ReadAll(response.Body))(l.t)
}

// sample takes a sample.
func (l *load) sample() sample {
	l.t.Helper()
	stats := l.stats()
	jobs, _ := l.total("CI job")
	return sample{
		hour: stats.Now.Sub(l.began).Hours(), resident: float64(l.o.status("VmRSS")) / 1024,
		heap: float64(stats.Heap) / (1 << 20), goroutines: float64(stats.Goroutines), files: float64(l.o.openFiles()),
		wal: l.size("-wal"), database: l.size(""), jobs: jobs,
	}
}

// size returns the size of a file of the database, in MiB.
func (l *load) size(suffix string) float64 {
	l.t.Helper()
	info := must.Get(os.Stat(l.o.database + suffix))(l.t)
	return float64(info.Size()) / (1 << 20)
}

// minTrend is the least duration that shows a trend: caches and the write-ahead log fill
// at first.
const minTrend = 4 * time.Hour

// faults returns why the measure is not bounded or, if there is a trend, not flat.
func (m measure) faults(samples []sample, hasTrend bool) (faults []string) {
	for _, s := range samples {
		if m.of(s) > m.limit {
			faults = append(faults, fmt.Sprintf("%s: %.1f at hour %.2f, want at most %.0f", m.name, m.of(s), s.hour, m.limit))
			break
		}
	}
	if growth := m.trend(samples[len(samples)/4:]); hasTrend && growth > m.growth {
		faults = append(faults, fmt.Sprintf("%s grew by %.1f in the last three quarters, want at most %.0f",
			m.name, growth, m.growth))
	}
	return faults
}

// trend returns the growth from the first sample to the last, by the line with the least
// squares of deviations.
func (m measure) trend(samples []sample) float64 {
	n, x, y, xx, xy := float64(len(samples)), 0.0, 0.0, 0.0, 0.0
	for _, s := range samples {
		x += s.hour
		y += m.of(s)
		xx += s.hour * s.hour
		xy += s.hour * m.of(s)
	}
	slope := (n*xy - x*y) / (n*xx - x*x)
	return slope * (samples[len(samples)-1].hour - samples[0].hour)
}

// checkTasks checks that each kind of load was served and, in a long run, most of it; and logs what the
// server logged. A busy machine makes the server miss deadlines, which the fast clock shortens.
func (l *load) checkTasks(isLong bool) {
	l.t.Helper()
	for name := range l.tasks {
		done, failed := l.total(name)
		if isLong && done < failed || done == 0 && (failed > 0 || name == "CI job") {
			l.t.Errorf("%s: %d succeeded and %d failed; the last error: %v", name, done, failed, l.tasks[name].last)
		}
	}
	lines := map[string]int{}
	for line := range strings.Lines(l.o.log.String()) {
		if _, text, ok := strings.Cut(line, "msg="); ok {
			text, _, _ = strings.Cut(text, " delivery=")
			lines[text[:min(len(text), 60)]]++
		}
	}
	l.t.Logf("log: %v", lines)
}

// checkTime checks in the database that time has passed: evidence has expired, tips were
// forgotten, and sessions and deliveries have not piled up.
func (l *load) checkTime() {
	l.t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+l.o.database))(l.t)
	defer db.Close()
	count := func(query string, args ...any) (n int) {
		must.OK(l.t, db.QueryRow(query, args...).Scan(&n))
		return n
	}

	expired := count("SELECT count(*) FROM transitions WHERE cause_type = 'expiry'")
	forgotten := count("SELECT count(*) FROM tips WHERE flight = 6")
	sessions := count("SELECT count(*) FROM sessions WHERE expires_at < ?", l.now().Add(-time.Hour).UnixMilli())
	deliveries := count("SELECT count(*) FROM outbox")
	old := count("SELECT count(*) FROM outbox WHERE ended_at > 0 AND ended_at < ?",
		l.now().Add(-26*time.Hour).UnixMilli())
	l.t.Logf("%d expirations, %d tips forgotten, %d deliveries in the log", expired, forgotten, deliveries)

	if expired == 0 || forgotten == 0 {
		l.t.Errorf("%d expirations and %d tips forgotten, want some", expired, forgotten)
	}
	if sessions > 0 || old > 0 {
		l.t.Errorf("%d sessions and %d deliveries should have been deleted", sessions, old)
	}
}

// table returns a table of some 40 samples.
func table(samples []sample) string {
	return tabulate(func(w io.Writer) {
		fmt.Fprintln(w, "hour\tRSS MiB\theap MiB\tgoroutines\tfiles\tWAL MiB\tdatabase MiB\tjobs\t")
		for i, s := range samples {
			if i != len(samples)-1 && i%(1+len(samples)/50) != 0 {
				continue
			}
			fmt.Fprintf(w, "%.2f\t%.0f\t%.1f\t%.0f\t%.0f\t%.1f\t%.0f\t%d\t\n", s.hour, s.resident, s.heap, s.goroutines,
				s.files, s.wal, s.database, s.jobs)
		}
	})
}

// table returns the outcomes of the tasks as a table.
func (l *load) table() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := make([]string, 0, len(l.tasks))
	for name := range l.tasks {
		names = append(names, name)
	}
	slices.Sort(names)
	return tabulate(func(w io.Writer) {
		fmt.Fprintln(w, "task\tdone\trefused\tbusy\tfailed\t last error")
		for _, name := range names {
			o := l.tasks[name]
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t %v\n", name, o.done, o.refused, o.busy, o.failed, o.last)
		}
		fmt.Fprintf(w, "deliveries received\t%d\t\t\t\t\n", l.receiver.received.Load())
	})
}

func tabulate(write func(io.Writer)) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	write(w)
	w.Flush()
	return text.String()
}
