package service

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestPlacesFor(t *testing.T) {
	for _, test := range []struct{ files, webhooks, want int }{
		{1024, 512, 1024 - 2*256 - 128},
		{20_000, 512, maxPlaces},
		{4096, 8, 4096 - 16 - 128},
		{64, 512, minPlaces},
		{math.MaxInt32, 512, maxPlaces},
	} {
		if got := placesFor(test.files, test.webhooks); got != test.want {
			t.Errorf("%d files, %d webhooks: %d connections, want %d", test.files, test.webhooks, got, test.want)
		}
	}
}

// A limitedServer is a server with a limited number of connections. Requests for
// /wait take until the test sends to done.
type limitedServer struct {
	t       *testing.T
	places  *places
	address string
	done    chan struct{}
	ended   chan error // of Serve
	http    *http.Server
}

func newLimitedServer(t *testing.T, limit int) *limitedServer {
	t.Helper()
	listener, err := listen("127.0.0.1:0", limit)
	must.OK(t, err)
	s := &limitedServer{t: t, places: listener.places, address: listener.Addr().String(),
		done: make(chan struct{}), ended: make(chan error, 1)}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			<-s.done
		}
	})
	s.http = &http.Server{ConnContext: inContext, ConnState: stateChanged, Handler: handler,
		MaxHeaderBytes: maxHead}
	go func() { s.ended <- s.http.Serve(listener) }()
	t.Cleanup(func() { s.http.Close() })
	return s
}

// dial connects. After any of these calls, a timeout ends the test.
func (s *limitedServer) dial() net.Conn {
	s.t.Helper()
	conn := must.Get(net.Dial("tcp", s.address))(s.t)
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// get sends a request on a connection and reads the response.
func (s *limitedServer) get(conn net.Conn, path string) {
	s.t.Helper()
	s.send(conn, path)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatalf("GET %s: %v", path, err)
	}
	resp.Body.Close()
}

func (s *limitedServer) send(conn net.Conn, path string) {
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, s.address)
}

// wantClosed checks that the server closes the connection.
func (s *limitedServer) wantClosed(conn net.Conn) {
	s.t.Helper()
	if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
		s.t.Errorf("read %d bytes, %v, want the end of the connection", n, err)
	}
}

// waitFor waits until the server has that many connections that start, that are idle,
// and that are in use.
func (s *limitedServer) waitFor(starting, idle, inUse int) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s.places.mu.Lock()
		gotStarting, gotIdle := s.places.starting.Len(), s.places.idle.Len()
		gotInUse := s.places.taken - gotStarting - gotIdle
		s.places.mu.Unlock()
		if gotStarting == starting && gotIdle == idle && gotInUse == inUse {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d connections start, %d are idle, %d in use, want %d, %d, %d", gotStarting, gotIdle, gotInUse,
				starting, idle, inUse)
		}
	}
}

func TestFaultLongestIdleConnectionMakesRoom(t *testing.T) {
	s := newLimitedServer(t, 3)
	first, second, third := s.dial(), s.dial(), s.dial()
	for i, conn := range []net.Conn{second, third, first} {
		s.get(conn, "/")
		s.waitFor(2-i, i+1, 0)
	}
	s.get(second, "/")
	s.waitFor(0, 3, 0)

	s.get(s.dial(), "/")
	s.wantClosed(third)
	s.get(first, "/")
	s.get(second, "/")
	s.waitFor(0, 3, 0)
}

// A connection that has sent no request for a while goes before idle ones, but not
// before it had the time to send it.
func TestFaultSilentConnectionMakesRoom(t *testing.T) {
	s := newLimitedServer(t, 2)
	idle, silent := s.dial(), s.dial()
	s.get(idle, "/")
	s.waitFor(1, 1, 0)
	fmt.Fprint(silent, "GET / HTTP/1.1\r\nA: b\r\n")
	time.Sleep(headTime + 10*time.Millisecond)

	s.get(s.dial(), "/")
	s.wantClosed(silent)
	s.get(idle, "/")

	s = newLimitedServer(t, 2)
	idle = s.dial()
	s.get(idle, "/")
	s.waitFor(0, 1, 0)
	s.places.mu.Lock()
	s.places.starting.PushBack(&place{all: s.places, since: time.Now().Add(headTime)}) // just accepted
	victim := s.places.victim()
	s.places.mu.Unlock()
	if victim == nil || victim.conn == nil || victim.conn.RemoteAddr().String() != idle.LocalAddr().String() {
		t.Errorf("next to be closed: %v, want the idle connection", victim)
	}
}

// Of the connections that have sent no request, the oldest one goes first.
func TestFaultOldestSilentConnectionGoesFirst(t *testing.T) {
	p := newPlaces(2)
	old, young := &place{all: p}, &place{all: p}
	old.move(p.starting)
	young.move(p.starting)
	old.since = time.Now().Add(-2 * headTime)
	if victim := p.victim(); victim != old {
		t.Errorf("next to be closed: %p, want %p, not %p", victim, old, young)
	}
}

// A connection that was closed to make room is not closed again, although the server
// notes a new state of it.
func TestFaultClosedConnectionHasNoPlace(t *testing.T) {
	p := newPlaces(1)
	server, client := net.Pipe()
	defer client.Close()
	defer server.Close()
	pl := p.take(server, nil)
	pl.leave()
	pl.changed(http.StateIdle)
	if victim := p.victim(); victim != nil || p.taken != 0 {
		t.Errorf("next to be closed: %v; %d places are taken", victim, p.taken)
	}
}

// The number of connections that are idle is limited, and so is that of new ones.
func TestFaultIdleAndNewConnectionsAreLimited(t *testing.T) {
	s := newLimitedServer(t, 100)
	s.places.mu.Lock()
	s.places.maxStarting, s.places.maxIdle = 3, 2
	s.places.mu.Unlock()

	first, second, third := s.dial(), s.dial(), s.dial()
	for i, conn := range []net.Conn{first, second} {
		s.get(conn, "/")
		s.waitFor(2-i, i+1, 0)
	}
	s.get(third, "/")
	s.wantClosed(first)
	s.waitFor(0, 2, 0)

	silent := s.dial()
	s.waitFor(1, 2, 0)
	s.dial()
	s.dial()
	s.waitFor(3, 2, 0)
	s.get(s.dial(), "/") // waits until the first one had its time
	s.wantClosed(silent)
	s.get(third, "/")
}

// Ten thousand idle connections, and a thousand with half of a large head, take a bounded
// amount of memory.
func TestFaultMemoryOfConnections(t *testing.T) {
	testenv.From(t, testenv.Push, "opens 10,000 connections")
	const many, clients = 10_000, 1000
	if testing.Short() || maxFiles() < 2*maxIdle+4*clients {
		t.Skip("needs many open files")
	}
	s := newLimitedServer(t, many)

	before := inUse()
	for range many {
		conn := must.Get(net.Dial("tcp", s.address))(t)
		s.get(conn, "/")
		t.Cleanup(func() { conn.Close() })
	}
	s.waitFor(0, maxIdle, 0)
	idle := inUse() - before

	for range clients {
		fmt.Fprintf(s.dial(), "GET / HTTP/1.1\r\nHost: %s\r\nX-Large: %s", s.address, strings.Repeat("x", 15<<10))
	}
	s.waitFor(clients, maxIdle, 0)
	time.Sleep(100 * time.Millisecond) // the server reads the heads
	heads := inUse() - before - idle
	t.Logf("%d idle connections of %d take %d MB, %d with half of a head %d MB",
		maxIdle, many, idle>>20, clients, heads>>20)
	if idle > 150<<20 || heads > 100<<20 {
		t.Errorf("idle connections take %d MB, half-sent heads %d MB", idle>>20, heads>>20)
	}
}

// inUse returns the memory that the process uses, after a collection.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// If all connections are in use, a new one waits until there is room.
func TestFaultConnectionsInUseAreNotClosed(t *testing.T) {
	s := newLimitedServer(t, 2)
	first, second := s.dial(), s.dial()
	s.send(first, "/wait")
	s.send(second, "/wait")
	s.waitFor(0, 0, 2)

	third := s.dial()
	s.send(third, "/")
	third.SetReadDeadline(time.Now().Add(10 * placeRetry))
	if n, err := third.Read(make([]byte, 1)); n > 0 || err == io.EOF {
		t.Errorf("read %d bytes, %v, want a timeout", n, err)
	}
	third.SetReadDeadline(time.Now().Add(20 * time.Second))

	s.done <- struct{}{}
	if resp, err := http.ReadResponse(bufio.NewReader(third), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("response %v, %v", resp, err)
	}
	close(s.done)
}

// A server stops although a connection waits for room.
func TestFaultStopWithoutRoom(t *testing.T) {
	s := newLimitedServer(t, 1)
	s.send(s.dial(), "/wait")
	s.waitFor(0, 0, 1)
	s.dial()
	time.Sleep(4 * placeRetry)
	s.http.Close()
	select {
	case err := <-s.ended:
		if err != http.ErrServerClosed {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the server does not stop")
	}
	close(s.done)
}
