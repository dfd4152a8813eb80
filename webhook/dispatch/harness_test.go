package dispatch_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// hookSecret is the signing secret of all webhooks in tests.
const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="

// A fixture is a store in a temporary folder with the org acme and its repo api. Its
// clock is the real one plus an offset.
type fixture struct {
	*store.Store
	t      testing.TB
	offset atomic.Int64 // of the clock, in nanoseconds
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t}
	s, err := store.Open(context.Background(), storetest.NewFile(t), store.Options{Now: f.now})
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	f.Store = s
	storetest.CreateAcme(t, f.Store)
	return f
}

func (f *fixture) now() time.Time          { return time.Now().Add(time.Duration(f.offset.Load())) }
func (f *fixture) advance(d time.Duration) { f.offset.Add(int64(d)) }

// webhook creates a webhook for a URL, with hookSecret.
func (f *fixture) webhook(url string) outbound.Webhook {
	f.t.Helper()
	n := outbound.NewWebhook{URL: url}
	must.OK(f.t, n.Check())
	w, err := f.CreateWebhook(f.t.Context(), "acme", "api", n, hookSecret)
	must.OK(f.t, err)
	return w
}

// ping queues a ping.
func (f *fixture) ping(w outbound.Webhook) outbound.Delivery {
	f.t.Helper()
	d, err := f.PingWebhook(f.t.Context(), "acme", "api", w.ID)
	must.OK(f.t, err)
	return d
}

// pings queues n pings and returns their ids.
func (f *fixture) pings(w outbound.Webhook, n int) []string {
	f.t.Helper()
	ids := make([]string, n)
	var wg sync.WaitGroup
	for first := range 64 {
		wg.Go(func() {
			for i := first; i < n; i += 64 {
				d, err := f.PingWebhook(f.t.Context(), "acme", "api", w.ID)
				if err != nil {
					f.t.Error(err)
				}
				ids[i] = d.ID
			}
		})
	}
	wg.Wait()
	return ids
}

// loopback returns a guard that allows the receivers of tests.
func loopback() *dispatch.Guard {
	return dispatch.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")})
}

// start runs a dispatcher until the test ends or stop is called. change may change its
// configuration.
func (f *fixture) start(change func(*dispatch.Config)) (stop func()) {
	f.t.Helper()
	c := dispatch.Config{Outbox: f.Store, Guard: loopback(), UserAgent: "ledgerd/test"}
	if change != nil {
		change(&c)
	}
	return run(f.t, dispatch.New(c))
}

func run(t testing.TB, d *dispatch.Dispatcher) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// delivery returns a delivery with all its attempts.
func (f *fixture) delivery(w outbound.Webhook, id string) outbound.DeliveryRecord {
	f.t.Helper()
	d, err := f.Delivery(context.Background(), "acme", "api", w.ID, id)
	must.OK(f.t, err)
	return d
}

// attempted waits until a delivery has had at least n attempts, and returns it.
func (f *fixture) attempted(w outbound.Webhook, id string, n int) (d outbound.DeliveryRecord) {
	f.t.Helper()
	eventually(f.t, func() bool {
		d = f.delivery(w, id)
		return d.Attempts >= n
	})
	return d
}

func eventually(t testing.TB, done func() bool) { t.Helper(); must.Wait(t, "the deliveries", done) }

// A receiver is a web server that records the requests it gets.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []received
}

type received struct {
	header http.Header
	body   []byte
	proto  int
}

// receive starts a receiver. A nil handler responds 204.
func receive(t testing.TB, handler http.HandlerFunc) *receiver {
	r := newReceiver(handler)
	r.Start()
	t.Cleanup(r.Close)
	return r
}

func newReceiver(handler http.HandlerFunc) *receiver {
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, received{q.Header, body, q.ProtoMajor})
		r.mu.Unlock()
		if handler == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		handler(w, q)
	}))
	return r
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[:len(r.got):len(r.got)]
}

func (r *receiver) count() int { return len(r.all()) }

// discard is the log of servers on which a test causes errors.
var discard = log.New(io.Discard, "", 0)
