package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestFollowYieldsTypedEvents(t *testing.T) {
	b := newBackend(t)
	key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
	record, _, err := b.admin.Record(t.Context(), "acme", "api", envelope(t, key, sha, "test:go", ledger.Pass))
	must.OK(t, err)
	if _, err := b.admin.SetPolicy(t.Context(), "acme", "api", []byte(`{"requirements":[]}`), "*"); err != nil {
		t.Fatal(err)
	}
	var got []client.Event
	for e, err := range b.admin.Follow(t.Context(), "acme", client.FollowOptions{After: client.Earliest}) {
		must.OK(t, err)
		if got = append(got, e); e.Policy != nil {
			break
		}
	}
	if a := got[0].Attestation; got[0].ID != record.Event || got[0].Type != ledger.EventAttestation || a == nil ||
		a.Commit != sha || a.Identity != "ci" || a.Result.Status != ledger.Pass {
		t.Errorf("first event %+v with %+v", got[0], a)
	}
	if s := got[1].State; got[1].Attestation != nil || s == nil || s.From != ledger.Draft || s.To != ledger.Validating {
		t.Errorf("second event %+v with %+v", got[1], s)
	}
	last := got[len(got)-1]
	if p := last.Policy; p.Version != 2 || !strings.HasPrefix(string(last.Data), `{"repo":"api","version":2,`) {
		t.Errorf("last event %+v with %+v", last, p)
	}

	// Another client resumes after an event, with filters.
	for e, err := range b.admin.Follow(t.Context(), "acme",
		client.FollowOptions{After: got[0].ID, Types: []ledger.EventType{ledger.EventPolicy}, Repo: "api"}) {
		if err != nil || e.ID != last.ID {
			t.Errorf("got %+v, %v; want %+v", e, err, last)
		}
		break
	}
}

// A flakyProxy is a proxy whose connections break.
type flakyProxy struct {
	net.Listener
	to   string
	open sync.Map
	// limit returns the number of response bytes after which a connection breaks, or 0
	// if it does not.
	limit func() int64
	down  atomic.Bool
}

func newFlakyProxy(t *testing.T, to string, after func() int64) (c *flakyProxy, url string) {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	c = &flakyProxy{Listener: listener, to: strings.TrimPrefix(to, "http://"), limit: after}
	t.Cleanup(func() { listener.Close(); c.cut() })
	go c.serve()
	return c, "http://" + listener.Addr().String()
}

func (c *flakyProxy) serve() {
	for {
		in, err := c.Accept()
		if err != nil {
			return
		}
		if c.down.Load() {
			in.Close()
			continue
		}
		out, err := net.Dial("tcp", c.to)
		if err != nil {
			in.Close()
			continue
		}

		c.open.Store(in, nil)
		go func() {
			defer out.Close()
			io.Copy(out, in)
		}()
		go func() {
			defer in.Close()
			if n := c.limit(); n > 0 {
				io.CopyN(in, out, n)
			} else {
				io.Copy(in, out)
			}
		}()
	}
}

// cut closes all connections.
func (c *flakyProxy) cut() {
	c.open.Range(func(conn, _ any) bool {
		conn.(net.Conn).Close()
		c.open.Delete(conn)
		return true
	})
}

// Follow yields every event once and in order, even if connections break anywhere,
// such as in the middle of a frame or its id.
func TestFollowOverBrokenConnections(t *testing.T) {
	const writers, each = 4, 60
	b := newBackend(t)
	key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
	_, url := newFlakyProxy(t, b.url, func() int64 { return 300 + rand.Int64N(12_000) })
	follower := newClient(t, url, b.token(t, ledger.Read))

	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, _, err := b.admin.Record(t.Context(), "acme", "api",
					envelope(t, key, fmt.Sprintf("%040x", i%7), fmt.Sprintf("lint:%d-%d", w, i), ledger.Pass)); err != nil {
					t.Error(err)
				}
			}
		})
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const want = writers*each + 7 // attestations, and seven commits that leave DRAFT
	var got []string
	var breaks int
	onRetry := func(error, time.Duration) { breaks++ }
	for e, err := range follower.Follow(ctx, "acme", client.FollowOptions{After: client.Earliest, OnRetry: onRetry}) {
		must.OK(t, err)
		if got = append(got, e.ID); len(got) == want {
			break
		}
	}
	wg.Wait()

	if history := eventIDs(t, b); !slices.Equal(got, history) {
		t.Errorf("the %d events differ from the %d of the history", len(got), len(history))
	}
	t.Logf("%d events over %d connections", len(got), breaks+1)
	if breaks == 0 {
		t.Error("the connection never broke")
	}
}

func eventIDs(t *testing.T, b *backend) (ids []string) {
	t.Helper()
	for body, err := range b.admin.Events(t.Context(), "acme", client.EventFilter{}) {
		must.OK(t, err)
		var e struct {
			ID string `json:"id"`
		}
		must.OK(t, json.Unmarshal(body, &e))
		ids = append(ids, e.ID)
	}
	return ids
}

// Events between a break and the next connection are not lost, even if the stream
// has not received an event yet.
func TestFollowResumesBeforeTheFirstEvent(t *testing.T) {
	for name, before := range map[string]int{"empty history": 0, "history with events": 2} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
			record := func(i int) {
				if _, _, err := b.admin.Record(
					t.Context(), "acme", "api", envelope(t, key, sha, fmt.Sprintf("lint:%d", i), ledger.Pass)); err != nil {
					t.Error(err)
				}
			}
			for i := range before {
				record(i)
			}
			seen := len(eventIDs(t, b))

			proxy, url := newFlakyProxy(t, b.url, func() int64 { return 0 })
			follower := newClient(t, url, b.token(t, ledger.Read))
			broken := make(chan bool, 100)
			onRetry := func(error, time.Duration) { broken <- true }
			go func() {
				time.Sleep(300 * time.Millisecond) // until the stream has started
				proxy.down.Store(true)
				proxy.cut()
				<-broken
				record(before)
				proxy.down.Store(false)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			got := "nothing"
			for e, err := range follower.Follow(ctx, "acme", client.FollowOptions{OnRetry: onRetry}) {
				must.OK(t, err)
				got = e.ID
				break
			}
			if want := eventIDs(t, b)[seen]; got != want {
				t.Errorf("got %s, want %s, which was recorded while the connection was broken", got, want)
			}
		})
	}
}

func TestFollowPermanentErrors(t *testing.T) {
	b := newBackend(t)
	if _, err := b.host.CreateOrg(t.Context(), ledger.NewOrg{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s followed a redirect, with Authorization: %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	redirect := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer page.Close()

	for name, test := range map[string]struct {
		client  *client.Client
		org     string
		options client.FollowOptions
		want    string
	}{
		"unknown event": {b.admin, "acme", client.FollowOptions{After: "evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE"},
			string(ledger.CodeInvalidParameter)},
		"no token":     {newClient(t, b.url, ""), "acme", client.FollowOptions{}, string(ledger.CodeUnauthenticated)},
		"another org":  {b.admin, "other", client.FollowOptions{}, string(ledger.CodeForbidden)},
		"unknown repo": {b.admin, "acme", client.FollowOptions{Repo: "none"}, string(ledger.CodeNotFound)},
		"unknown org":  {b.host, "none", client.FollowOptions{}, string(ledger.CodeNotFound)},
		"invalid name": {b.admin, "a/b", client.FollowOptions{}, "invalid name"},
		"redirect": {newClient(t, redirect.URL, "ldg_secret"), "acme", client.FollowOptions{},
			"307 Temporary Redirect"},
		"web page": {newClient(t, page.URL, ""), "acme", client.FollowOptions{}, "instead of text/event-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.OnRetry = func(err error, _ time.Duration) { t.Errorf("retries after %v", err) }
			times := 0
			for e, err := range test.client.Follow(t.Context(), test.org, test.options) {
				times++
				if err == nil || !strings.Contains(string(client.CodeOf(err))+err.Error(), test.want) {
					t.Errorf("got %+v, %v; want %s", e, err, test.want)
				}
			}
			if times != 1 {
				t.Errorf("yielded %d times, want once", times)
			}
		})
	}
}

// A scriptedTransport returns its responses one after the other.
type scriptedTransport struct {
	responses    []func(*http.Request) (*http.Response, error)
	lastEventIDs []string // the Last-Event-ID of each request
}

func (s *scriptedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.lastEventIDs = append(s.lastEventIDs, r.Header.Get("Last-Event-ID"))
	next := s.responses[0]
	s.responses = s.responses[1:]
	return next(r)
}

func respond(status int, contentType, text, retryAfter string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}}
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: h,
			Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
}

func respondStream(text string) func(*http.Request) (*http.Response, error) {
	return respond(200, "text/event-stream", text, "")
}

// stall responds with text and then stays silent, like a machine that lost power.
func stall(text string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		in, out := io.Pipe()
		context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
		go io.WriteString(out, text)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: in,
			Request: r}, nil
	}
}

func TestFollowRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		message := func(n int) string { return fmt.Sprintf("event: radar\nid: evt_%d\ndata: {\"n\":%d}\n\n", n, n) }
		s := &scriptedTransport{responses: []func(*http.Request) (*http.Response, error){
			func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") },
			respond(503, "text/plain", "starting", "7"),
			respond(502, "text/html", "<html>", ""),
			respondStream("retry: 3000\nid: evt_0\n"),                         // breaks in its first frame
			respondStream("retry: 3000\nid: evt_0\n\n"),                       // ends before any event
			respondStream(":\n\n" + message(1) + "event: radar\nid: evt_2\n"), // breaks before the data
			respondStream(message(2) + "event: radar\nid: evt_3\ndata: {\"n\":3"),
			respondStream("event: radar\r\nid: evt_3\r\ndata: {\"n\":\r\ndata: 3}\r\n\r\n"),
			stall(message(4)),
			stall(message(5)),
		}}
		c, err := client.New(
			"http://ledger.example", client.Options{HTTPClient: &http.Client{Transport: s, Timeout: time.Second}})
		must.OK(t, err)

		var waits []time.Duration
		start := time.Now()
		n := 0
		for e, err := range c.Follow(t.Context(), "acme",
			client.FollowOptions{OnRetry: func(_ error, wait time.Duration) { waits = append(waits, wait) }}) {
			must.OK(t, err)
			n++
			if want := fmt.Sprintf("evt_%d", n); e.ID != want || e.Type != ledger.EventRadar {
				t.Errorf("event %d: %+v", n, e)
			}
			if n == 3 {
				time.Sleep(time.Hour) // a slow caller must not cause a timeout
			}
			if n == 5 {
				break
			}
		}

		want := []string{"", "", "", "", "", "evt_0", "evt_1", "evt_2", "evt_3", "evt_4"}
		if !slices.Equal(s.lastEventIDs, want) {
			t.Errorf("Last-Event-IDs %q, want %q", s.lastEventIDs, want)
		}
		if waits[1] < 7*time.Second || waits[0] > 400*time.Millisecond || slices.Max(waits) > 10*time.Second {
			t.Errorf("waited %v", waits)
		}
		if took := time.Since(start) - time.Hour; took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

func TestFollowLeaksNoGoroutines(t *testing.T) {
	b := newBackend(t)
	transport := &http.Transport{}
	c, err := client.New(
		b.url, client.Options{Token: b.token(t, ledger.Read), HTTPClient: &http.Client{Transport: transport}})
	must.OK(t, err)
	key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
	if _, _, err := b.admin.Record(t.Context(), "acme", "api", envelope(t, key, sha, "test:go", ledger.Pass)); err != nil {
		t.Fatal(err)
	}

	before := runtime.NumGoroutine()
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(i%20)*time.Millisecond, cancel)
		for _, err := range c.Follow(ctx, "acme", client.FollowOptions{After: client.Earliest}) {
			if err != nil {
				t.Fatalf("yields %v after being cancelled", err)
			}
			if i%3 == 0 {
				break
			}
		}
		cancel()
	}

	transport.CloseIdleConnections()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() >
		before+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}

// The base URL may have a path, and options are escaped.
func TestFollowRequestURL(t *testing.T) {
	var got url.URL
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = *r.URL
		http.Error(w, "gone", http.StatusGone)
	}))
	defer s.Close()
	c := newClient(t, s.URL+"/ledger/", "")
	for _, err := range c.Follow(
		t.Context(), "acme", client.FollowOptions{Types: []ledger.EventType{"state", "policy"}, Repo: "a&b"}) {
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != http.StatusGone {
			t.Errorf("got %v", err)
		}
	}
	if want := "/ledger/v1/orgs/acme/events?repo=a%26b&types=state%2Cpolicy"; got.String() != want {
		t.Errorf("requested %s, want %s", got.String(), want)
	}
}
