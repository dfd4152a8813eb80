package fault_test

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
	"github.com/ledgerd/ledgerd/e2e/internal/load"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

const day = 24 * time.Hour

// A clock is a system clock that the test moves, with its monotonic clock.
type clock struct {
	mu     sync.Mutex
	begun  time.Time
	jumped time.Duration // how far the system clock is ahead
	passed time.Duration // how much faster both clocks went than real time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.jumped + c.passed)
}

func (c *clock) monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.begun) + c.passed
}

func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jumped += d
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}

// A clockVictim is a server within this process, because no real system clock can be moved.
type clockVictim struct {
	t        *testing.T
	clock    *clock
	database string
	load     *load.Load

	store *store.Store
	http  *httptest.Server
	stop  func() // stops the server; the address stays
	tally
}

// start starts a server on the database.
func (v *clockVictim) start() {
	v.t.Helper()
	s, err := store.Open(v.t.Context(), v.database, store.Options{
		Now: v.clock.now, Monotonic: v.clock.monotonic, Serve: true,
		KeepDeliveries: 1000 * day, // so that the check finds a delivery for every event
	})
	must.OK(v.t, err)
	guard := dispatch.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	api := server.New(server.Config{Store: s, CheckTarget: guard.Check})
	dispatcher := dispatch.New(dispatch.Config{Outbox: s, Guard: guard})
	v.store, v.http = s, httptest.NewServer(api.Handler())

	background, cancel := context.WithCancel(context.WithoutCancel(v.t.Context()))
	var running sync.WaitGroup
	for _, run := range []func(context.Context){s.Work, s.Tidy, s.Watch, dispatcher.Run} {
		running.Go(func() { run(background) })
	}
	v.stop = sync.OnceFunc(func() {
		api.EndStreams()
		v.http.CloseClientConnections()
		v.http.Close()
		cancel()
		running.Wait()
		must.OK(v.t, s.Close())
	})
	v.t.Cleanup(v.stop)
}

// accept accepts the clock, as a command next to the server does.
func (v *clockVictim) accept() {
	v.t.Helper()
	s, err := store.Open(v.t.Context(), v.database, store.Options{Now: v.clock.now, Monotonic: v.clock.monotonic})
	must.OK(v.t, err)
	_, _, err = s.AcceptClock(v.t.Context())
	must.OK(v.t, err)
	must.OK(v.t, s.Close())
}

// runFor puts the server under load while both clocks go on by d, second by second.
func (v *clockVictim) runFor(d time.Duration) {
	v.t.Helper()
	ctx, stop := context.WithCancel(v.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.load.Run(ctx, v.http.URL, 4, 5*time.Millisecond) }()
	for ; d > 0; d -= time.Second {
		v.clock.pass(time.Second)
		must.OK(v.t, v.store.Settle(v.t.Context()))
		must.OK(v.t, v.store.Prune(v.t.Context()))
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	must.OK(v.t, <-ended)
}

// check stops the server, checks the file, and starts another server.
func (v *clockVictim) check(when string) {
	v.t.Helper()
	const wait = 3 * time.Minute // longer than leases
	f, err := v.load.Follow(v.t.Context(), v.http.URL)
	must.OK(v.t, err)
	if _, err := v.load.Delivered(v.t.Context(), v.http.URL, f, wait); err != nil {
		v.t.Errorf("%s: not everything was delivered: %v", when, err)
	}
	f.Close()
	v.stop()

	problems, err := filecheck.Check(v.t.Context(), v.database, v.load.Book.Notes(), v.clock.now)
	must.OK(v.t, err)
	if v.add(problems); len(problems) > 0 {
		v.t.Errorf("%s: the file has these problems:\n%s", when, strings.Join(problems, "\n"))
	}
	v.start()
}

// Whatever the clock does under load, nothing is lost, ids ascend, and states follow from
// the evidence.
func TestFaultClockUnderLoad(t *testing.T) {
	slow(t)
	t.Parallel()
	testenv.Need(t, "python3")
	type victim = clockVictim
	for _, story := range []struct {
		name string
		run  func(*victim)
		long bool
	}{
		{"an hour back", func(v *victim) {
			v.clock.jump(-time.Hour)
			v.runFor(70 * time.Second)
		}, false},
		{"10 days ahead for 20 s", func(v *victim) {
			v.clock.jump(10 * day)
			v.runFor(20 * time.Second)
			v.clock.jump(-10 * day)
			v.runFor(10 * time.Second)
		}, true},
		{"40 days ahead for 12 minutes, put right, accepted", func(v *victim) {
			v.clock.jump(40 * day)
			v.runFor(30 * time.Second)
			v.clock.pass(10 * time.Minute)
			v.runFor(90 * time.Second)
			v.clock.jump(-40 * day)
			v.runFor(30 * time.Second)
			v.accept()
			v.runFor(30 * time.Second)
		}, false},
		{"40 days ahead, and restarts, accepted", func(v *victim) {
			v.clock.jump(40 * day)
			v.check("while the clock is ahead, before a restart")
			v.runFor(10 * time.Second)
			v.stop()
			v.clock.jump(-40 * day)
			v.start()
			v.runFor(30 * time.Second)
			v.accept()
			v.runFor(30 * time.Second)
		}, true},
	} {
		if story.long && !isLong() {
			continue
		}
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			v := &victim{t: t, clock: &clock{begun: time.Now()}, database: filepath.Join(t.TempDir(), "ledger.db")}
			var err error
			v.load, err = load.New(t.Context(), v.database)
			must.OK(t, err)
			t.Cleanup(v.load.Close)
			v.start()

			for range times(1, 3) {
				v.clock.pass(3 * time.Hour) // after which one that went back an hour has caught up
				v.runFor(20 * time.Second)
				story.run(v)
				v.check("after it")
				v.runFor(5 * time.Second)
			}
			v.check("at the end")
			t.Logf("\n| clock %s | %d | %d | %d | %d | %d | %d | %d of %d |", story.name, times(1, 3),
				v.load.Book.Count(filecheck.Confirmed), v.lost, v.load.Book.Count(filecheck.Refused), v.kept,
				v.load.Book.Count(filecheck.Unknown), v.intact, v.runs)
		})
	}
}
