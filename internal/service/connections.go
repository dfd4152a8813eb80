package service

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// connections is a listener that limits its open connections, and tracks them, so that
// Stop can close those whose clients do not finish their requests or do not read the
// responses.
type connections struct {
	net.Listener
	places  *places
	closing chan struct{} // closed by Close
	close   func() error

	mu     sync.Mutex
	open   map[*connection]struct{}
	cutoff time.Time // when requests must have arrived; zero until CutRequests
}

// listen returns a listener that has at most limit open connections.
func listen(address string, limit int) (*connections, error) {
	listener, err := Listen(address)
	if err != nil {
		return nil, err
	}
	l := &connections{Listener: listener, places: newPlaces(limit),
		closing: make(chan struct{}), open: make(map[*connection]struct{})}
	l.close = sync.OnceValue(func() error {
		close(l.closing)
		return l.Listener.Close()
	})
	return l, nil
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, list: l, arriving: true}
	if c.place = l.places.take(c, l.closing); c.place == nil {
		_ = accepted.Close() // the server stops
		return nil, net.ErrClosed
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	c.cutoff = l.cutoff
	l.open[c] = struct{}{}
	return c, nil
}

// Close implements net.Listener. Further calls return the result of the first.
func (l *connections) Close() error { return l.close() }

// waitForFirst waits until the first request of every open connection is being handled, or
// until the time is over. During a shutdown, net/http drops those that it reads later.
func (l *connections) waitForFirst(limit time.Duration) {
	for deadline := time.Now().Add(limit); l.anyNew() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
}

// anyNew reports whether there is an open connection without a request so far.
func (l *connections) anyNew() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if !c.used.Load() {
			return true
		}
	}
	return false
}

// cutRequests limits when requests may arrive: reading one fails after that time.
func (l *connections) cutRequests(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutoff = at
	for c := range l.open {
		c.cut(at)
	}
}

// waitForClients returns the number of open connections, and reports whether all of
// them wait for their clients to send a request or to read a response.
func (l *connections) waitForClients() (open int, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if !c.waitsForClient() {
			return len(l.open), false
		}
	}
	return len(l.open), true
}

// closeAll closes the connections that http.Server.Close leaves open: those of streams.
func (l *connections) closeAll() error {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	var errs []error
	for _, c := range open {
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// track returns next, and records the progress of each request in its connection. The
// server must use inContext and stateChanged.
func (l *connections) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connectionKey{}).(*connection)
		if c != nil {
			c.used.Store(true)
		}
		switch {
		case c == nil:
		case r.Body == http.NoBody, r.ContentLength == 0: // HTTP/2 has no NoBody
			c.setArriving(false)
		default:
			r = r.WithContext(r.Context()) // a copy: net/http examines the original's body
			r.Body = &requestBody{r.Body, c}
		}
		next.ServeHTTP(w, r)
	})
}

// A connectionKey is the key of the *connection in a request's context.
type connectionKey struct{}

// inContext is for http.Server.ConnContext.
func inContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connectionOf(c))
}

// connectionOf returns the connection of the listener below one that may be encrypted, or nil.
func connectionOf(c net.Conn) *connection {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	counted, _ := c.(*connection)
	return counted
}

// stateChanged is for http.Server.ConnState.
func stateChanged(c net.Conn, state http.ConnState) {
	counted := connectionOf(c)
	if counted == nil {
		return
	}
	counted.place.changed(state)
	if state == http.StateIdle {
		counted.setArriving(true) // the next request
	}
}

// A connection is a client's connection to the server.
type connection struct {
	net.Conn
	list    *connections
	place   *place
	writing atomic.Bool // a Write has not returned
	used    atomic.Bool // the first request is being handled, or was

	mu       sync.Mutex
	arriving bool      // the client has yet to send a request, or a part of it
	deadline time.Time // the read deadline that the server set; zero means none
	cutoff   time.Time // the latest read deadline while arriving; zero means none
}

// Write implements net.Conn.
func (c *connection) Write(b []byte) (int, error) {
	c.writing.Store(true)
	defer c.writing.Store(false)
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.list.mu.Lock()
	delete(c.list.open, c)
	c.list.mu.Unlock()
	err := c.Conn.Close()
	c.place.leave() // once its file is closed
	return err
}

// SetReadDeadline implements net.Conn.
func (c *connection) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return c.applyDeadline()
}

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(at time.Time) error {
	if err := c.SetWriteDeadline(at); err != nil {
		return err
	}
	return c.SetReadDeadline(at)
}

func (c *connection) waitsForClient() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arriving || c.writing.Load()
}

func (c *connection) setArriving(arriving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arriving = arriving; !c.cutoff.IsZero() {
		_ = c.applyDeadline() // fails if the connection is closed
	}
}

func (c *connection) cut(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutoff = at
	_ = c.applyDeadline() // fails if the connection is closed
}

// applyDeadline sets the read deadline of the connection itself. The caller holds c.mu.
func (c *connection) applyDeadline() error { return c.Conn.SetReadDeadline(c.readDeadline()) }

// readDeadline returns the deadline that the server set, limited by the cutoff if the
// request has yet to arrive. The caller holds c.mu.
func (c *connection) readDeadline() time.Time {
	if c.arriving && !c.cutoff.IsZero() && (c.deadline.IsZero() || c.cutoff.Before(c.deadline)) {
		return c.cutoff
	}
	return c.deadline
}

// A requestBody is a body that records in its connection when it has arrived.
type requestBody struct {
	io.ReadCloser
	connection *connection
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.connection.setArriving(false)
	}
	return n, err
}
