package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
)

// While the service drains, it serves requests, even on new connections, and closes
// their connections.
func TestDrainServesRequests(t *testing.T) {
	t.Parallel() // mostly waits
	v := start(t)
	stopped := make(chan error)
	go func() { stopped <- v.Stop(3*time.Second, time.Minute) }()
	for get(t, v.URL+"/readyz").StatusCode != 503 {
	}
	// A request that had begun before may keep its connection, but no later one.
	for path, status := range map[string]int{"/readyz": 503, "/healthz": 200} {
		if response := get(t, v.URL+path); response.StatusCode != status || !response.Close {
			t.Errorf("%s while draining: %s, close %v, want %d and close", path, response.Status, response.Close, status)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A client that does not read a response is cut off after the timeout. This is not an
// error, but a request that does not finish is.
func TestFaultStopWithUnfinishedResponses(t *testing.T) {
	for name, test := range map[string]struct {
		serve     func(w http.ResponseWriter, block <-chan struct{})
		wantError bool
	}{
		"client does not read": {func(w http.ResponseWriter, _ <-chan struct{}) {
			io.Copy(w, zeros{})
		}, false},
		"handler does not end": {func(_ http.ResponseWriter, block <-chan struct{}) { <-block }, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := start(t)
			block, began := make(chan struct{}), make(chan struct{})
			v.http.Handler = v.clients.track(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(began)
				test.serve(w, block)
			}))
			conn := dial(t, v, "GET / HTTP/1.1\r\nHost: ledger\r\n\r\n")
			<-began
			if !test.wantError {
				waitForBlockedWrite(v.clients)
			}

			go func() { // releases the handler after Stop has given up on it
				defer close(block)
				conn.SetReadDeadline(time.Time{})
				for v.clients.len() > 0 {
					time.Sleep(time.Millisecond)
				}
			}()
			if err := v.Stop(0, 100*time.Millisecond); (err != nil) != test.wantError {
				t.Errorf("Stop: %v, want an error: %v", err, test.wantError)
			}
		})
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func (l *connections) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

func waitForBlockedWrite(l *connections) {
	for blocked := 0; blocked < 20; time.Sleep(10 * time.Millisecond) {
		if _, waiting := l.waitForClients(); waiting {
			blocked++
		} else {
			blocked = 0
		}
	}
}

// A request that arrives completely is served, however slowly its client sends it, as
// long as it arrives before the cutoff.
func TestFaultSlowRequestIsServedDuringAStop(t *testing.T) {
	v := start(t)
	conn := dial(t, v, "POST /v1/orgs HTTP/1.1\r\nHost: ledger\r\nContent-Length: 2\r\n\r\n{")
	get(t, v.URL+"/healthz") // accepted after conn
	stopped := make(chan error)
	v.arrivalTimeout = time.Minute
	go func() { stopped <- v.Stop(0, time.Minute) }()
	for !v.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	fmt.Fprint(conn, "}")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the slow request got %v, %v, want a 401", response, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A connection that was accepted before a stop is served if its request comes soon after.
func TestFaultNewConnectionIsServedDuringAStop(t *testing.T) {
	v := start(t)
	conn := dial(t, v, "")
	get(t, v.URL+"/healthz") // accepted after conn
	stopped := make(chan error)
	go func() { stopped <- v.Stop(0, time.Minute) }()
	<-v.clients.closing
	time.Sleep(10 * time.Millisecond)
	fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: ledger\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("got %v, %v, want a 200 that closes the connection", response, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A request that has arrived is not cut off, however long it takes.
func TestFaultLongRequestIsServedDuringAStop(t *testing.T) {
	for name, request := range map[string]string{
		"without a body": "GET / HTTP/1.1\r\nHost: ledger\r\n\r\n",
		"with a body":    "POST / HTTP/1.1\r\nHost: ledger\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			v := start(t)
			v.arrivalTimeout = time.Millisecond
			began, cancelled := make(chan struct{}), make(chan bool, 1)
			v.http.Handler = v.clients.track(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				close(began)
				select {
				case <-r.Context().Done():
					cancelled <- true
				case <-time.After(200 * time.Millisecond):
					cancelled <- false
				}
			}))

			conn := dial(t, v, request)
			<-began
			if err := v.Stop(0, time.Minute); err != nil {
				t.Error(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusOK || <-cancelled {
				t.Errorf("got %v, %v, want a 200 and a request that was not cancelled", response, err)
			}
		})
	}
}

// Connections that are accepted during a stop have the cutoff too.
func TestFaultLateConnectionIsCutOff(t *testing.T) {
	v := start(t)
	defer v.Stop(0, time.Minute)
	v.clients.cutRequests(time.Now())
	conn := dial(t, v, "GET /heal")
	conn.SetReadDeadline(time.Now().Add(v.http.ReadHeaderTimeout / 2)) // which would cut it off, too
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("half a request got %v, want the end of the connection", err)
	}
}

// A request is cut off too if it is not the first one of its connection.
func TestFaultLateRequestIsCutOff(t *testing.T) {
	v := start(t)
	defer v.Stop(0, time.Minute)
	conn := dial(t, v, "GET /healthz HTTP/1.1\r\nHost: ledger\r\n\r\n")
	r := bufio.NewReader(conn)
	response, err := http.ReadResponse(r, nil)
	must.OK(t, err)
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}

	fmt.Fprint(conn, "GET /heal")
	v.clients.cutRequests(time.Now().Add(100 * time.Millisecond))
	conn.SetReadDeadline(time.Now().Add(v.http.ReadHeaderTimeout / 2)) // which would cut it off, too
	if text, err := io.ReadAll(r); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(text), " 200 ") {
		t.Errorf("half a request got %q, %v, want the end of the connection", text, err)
	}
}

// Clients make a stop wait neither before they have sent a request, nor while they do not
// read the response.
func TestWaitForClients(t *testing.T) {
	for name, test := range map[string]struct {
		arriving, writing, want bool
	}{
		"request arrives":      {arriving: true, want: true},
		"response is not read": {writing: true, want: true},
		"response is prepared": {want: false},
	} {
		c := &connection{arriving: test.arriving}
		c.writing.Store(test.writing)
		l := &connections{open: map[*connection]struct{}{c: {}}}
		if open, all := l.waitForClients(); open != 1 || all != test.want {
			t.Errorf("%s: %d connections are open, all wait: %v, want %v", name, open, all, test.want)
		}
	}
}

// The cutoff limits the deadlines of requests that have yet to arrive, and no others.
func TestReadDeadlines(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	for name, test := range map[string]struct {
		c    *connection
		want time.Time
	}{
		"no stop":              {&connection{arriving: true, deadline: at(60)}, at(60)},
		"arriving":             {&connection{arriving: true, deadline: at(60), cutoff: at(2)}, at(2)},
		"arriving, none set":   {&connection{arriving: true, cutoff: at(2)}, at(2)},
		"arriving, earlier":    {&connection{arriving: true, deadline: at(1), cutoff: at(2)}, at(1)},
		"has arrived":          {&connection{deadline: at(60), cutoff: at(2)}, at(60)},
		"has arrived, no stop": {&connection{}, time.Time{}},
	} {
		if got := test.c.readDeadline(); !got.Equal(test.want) {
			t.Errorf("%s: read deadline %v, want %v", name, got, test.want)
		}
	}
}

// Closed connections are forgotten.
func TestConnectionsAreForgotten(t *testing.T) {
	v := start(t)
	defer v.Stop(0, time.Minute)
	for range 20 {
		get(t, v.URL+"/healthz")
	}
	for v.clients.len() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// start starts a service on a new database.
func start(t *testing.T) *Instance {
	t.Helper()
	s := config.Default()
	s.Listen, s.Database = "127.0.0.1:0", config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	v, err := Start(context.Background(), s, discardLog())
	must.OK(t, err)
	return v
}

// discardLog returns a log that nobody reads.
func discardLog() *Log { return &Log{Logger: slog.New(slog.DiscardHandler)} }

// get gets a URL on a connection of its own.
func get(t *testing.T, url string) *http.Response {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(url)
	must.OK(t, err)
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response
}

// dial sends text to the service.
func dial(t *testing.T, v *Instance, text string) net.Conn {
	t.Helper()
	conn := must.Get(net.Dial("tcp", v.clients.Addr().String()))(t)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, text)
	return conn
}
