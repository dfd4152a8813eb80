package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A catcher is where the benchmark's webhooks post to. It answers at once, on
// bare connections, and notes when each delivery had arrived.
type catcher struct {
	listener net.Listener
	silent   bool // reads what comes and never answers
	serving  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	conns    map[net.Conn]bool
	seen     map[string]bool      // deliveries, by id
	arrivals map[string]time.Time // of attestations' events, by the attestation's id
	requests int
	last     time.Time // when a delivery last came for the first time
}

func newCatcher(silent bool) (*catcher, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &catcher{listener: listener, silent: silent, conns: map[net.Conn]bool{}, seen: map[string]bool{},
		arrivals: map[string]time.Time{}}
	c.serving.Go(c.serve)
	return c, nil
}

func (c *catcher) url() string { return "http://" + c.listener.Addr().String() + "/" }

func (c *catcher) serve() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		if c.closed {
			conn.Close()
		} else {
			c.conns[conn] = true
			c.serving.Go(func() { c.converse(conn) })
		}
		c.mu.Unlock()
	}
}

// converse answers the requests of one connection until it ends.
func (c *catcher) converse(conn net.Conn) {
	defer conn.Close()
	requests := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		c.note(request.Header.Get("X-ledger-Delivery"), body, time.Now())
		if c.silent {
			continue
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}

func (c *catcher) note(delivery string, body []byte, now time.Time) {
	_, rest, _ := bytes.Cut(body, []byte(`"attestation":"`))
	attestation, _, _ := bytes.Cut(rest, []byte{'"'})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if c.seen[delivery] {
		return
	}
	c.seen[delivery], c.last = true, now
	c.arrivals[string(attestation)] = now
}

// arrived returns how many deliveries have come, each counted once, and when
// the last of them came.
func (c *catcher) arrived() (deliveries int, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen), c.last
}

// latencies returns how long after those moments attestations arrived.
func (c *catcher) latencies(sent map[string]time.Time) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []time.Duration
	for id, at := range sent {
		if arrival, ok := c.arrivals[id]; ok {
			list = append(list, arrival.Sub(at))
		}
	}
	return list
}

// close hangs up on everyone.
func (c *catcher) close() {
	c.listener.Close()
	c.mu.Lock()
	c.closed = true
	for conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.serving.Wait()
}

// caught waits until each catcher has that many deliveries, and returns when
// the last one came.
func caught(ctx context.Context, catchers []*catcher, each int) (time.Time, error) {
	progress, at := -1, time.Now()
	for {
		var end time.Time
		total, missing := 0, 0
		for _, c := range catchers {
			n, last := c.arrived()
			if n > each {
				return end, fmt.Errorf("a webhook got %d deliveries and there were %d", n, each)
			}
			if total, missing = total+n, missing+each-n; last.After(end) {
				end = last
			}
		}
		if missing == 0 {
			return end, nil
		}
		if total > progress {
			progress, at = total, time.Now()
		}
		if time.Since(at) > audiencePatience {
			return end, fmt.Errorf("%d deliveries are missing", missing)
		}
		select {
		case <-ctx.Done():
			return end, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
