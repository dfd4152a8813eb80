package dispatch_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// hookSecret is what all webhooks of tests sign with.
const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="

// A bench is a store in a temporary folder with the org acme and its repo api.
// Its clock runs as the real one does, from wherever a test puts it.
type bench struct {
	*store.Store
	t     testing.TB
	ahead atomic.Int64 // of the real clock, in nanoseconds
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t}
	s, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.db"), store.Options{Now: b.now})
	check(t, err)
	t.Cleanup(func() { s.Close() })
	b.Store = s
	_, err = b.CreateOrg(t.Context(), "acme")
	check(t, err)
	_, err = b.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	return b
}

func (b *bench) now() time.Time          { return time.Now().Add(time.Duration(b.ahead.Load())) }
func (b *bench) advance(d time.Duration) { b.ahead.Add(int64(d)) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// webhook makes one for a URL, with the secret that all tests use.
func (b *bench) webhook(url string) ledger.Webhook {
	b.t.Helper()
	n := ledger.NewWebhook{URL: url}
	check(b.t, n.Check())
	w, err := b.CreateWebhook(b.t.Context(), "acme", "api", n, hookSecret)
	check(b.t, err)
	return w
}

// ping queues a delivery.
func (b *bench) ping(w ledger.Webhook) ledger.Delivery {
	b.t.Helper()
	d, err := b.PingWebhook(b.t.Context(), "acme", "api", w.ID)
	check(b.t, err)
	return d
}

// pings queues many.
func (b *bench) pings(w ledger.Webhook, n int) []string {
	b.t.Helper()
	ids := make([]string, n)
	var wg sync.WaitGroup
	for first := range 64 {
		wg.Go(func() {
			for i := first; i < n; i += 64 {
				d, err := b.PingWebhook(b.t.Context(), "acme", "api", w.ID)
				if err != nil {
					b.t.Error(err)
				}
				ids[i] = d.ID
			}
		})
	}
	wg.Wait()
	return ids
}

// loopback is a guard that lets tests reach their own receivers.
func loopback() *dispatch.Guard {
	return dispatch.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")})
}

// start runs a dispatcher until the test ends or stop is called.
func (b *bench) start(change func(*dispatch.Config)) (stop func()) {
	b.t.Helper()
	c := dispatch.Config{Outbox: b.Store, Guard: loopback(), UserAgent: "ledgerd/test"}
	if change != nil {
		change(&c)
	}
	return run(b.t, dispatch.New(c))
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

// delivery reads one with all its attempts.
func (b *bench) delivery(w ledger.Webhook, id string) ledger.DeliveryRecord {
	b.t.Helper()
	d, err := b.Delivery(context.Background(), "acme", "api", w.ID, id)
	check(b.t, err)
	return d
}

// attempted waits until a delivery has had so many attempts.
func (b *bench) attempted(w ledger.Webhook, id string, attempts int) (d ledger.DeliveryRecord) {
	b.t.Helper()
	eventually(b.t, func() bool {
		d = b.delivery(w, id)
		return d.Attempts >= attempts
	})
	return d
}

func eventually(t testing.TB, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it has not happened within 10 s")
		}
	}
}

// A receiver is a web server that keeps what it is sent.
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

// receive starts a receiver that answers 204, or as it is told.
func receive(t testing.TB, answer http.HandlerFunc) *receiver {
	r := newReceiver(answer)
	r.Start()
	t.Cleanup(r.Close)
	return r
}

func newReceiver(answer http.HandlerFunc) *receiver {
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, received{q.Header, body, q.ProtoMajor})
		r.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(w, q)
	}))
	return r
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[:len(r.got):len(r.got)]
}

func (r *receiver) count() int { return len(r.all()) }

// discard is for servers whose complaints are part of a test.
var discard = log.New(io.Discard, "", 0)
