package measure

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

// A receiver receives the deliveries of one of the benchmark's webhooks. It responds
// at once, on raw TCP connections, and notes when each delivery arrives.
type receiver struct {
	listener net.Listener
	silent   bool // reads requests and never responds
	serving  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	conns    map[net.Conn]bool
	seen     map[string]bool      // deliveries, by id
	arrivals map[string]time.Time // of attestation events, by the attestation's id
	last     time.Time            // when the last new delivery arrived
}

func newReceiver(silent bool) (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{listener: listener, silent: silent, conns: map[net.Conn]bool{}, seen: map[string]bool{},
		arrivals: map[string]time.Time{}}
	r.serving.Go(r.serve)
	return r, nil
}

func (r *receiver) url() string { return "http://" + r.listener.Addr().String() + "/" }

func (r *receiver) serve() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.closed {
			conn.Close()
		} else {
			r.conns[conn] = true
			r.serving.Go(func() { r.serveConn(conn) })
		}
		r.mu.Unlock()
	}
}

// serveConn responds to the requests of one connection until it is closed.
func (r *receiver) serveConn(conn net.Conn) {
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

		r.note(request.Header.Get("X-ledger-Delivery"), body, time.Now())
		if r.silent {
			continue
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}

// note records the arrival of a delivery.
func (r *receiver) note(delivery string, body []byte, now time.Time) {
	_, rest, _ := bytes.Cut(body, []byte(`"attestation":"`))
	attestation, _, _ := bytes.Cut(rest, []byte{'"'})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[delivery] {
		return
	}
	r.seen[delivery], r.last = true, now
	r.arrivals[string(attestation)] = now
}

// arrived returns the number of distinct deliveries, and when the last one arrived.
func (r *receiver) arrived() (deliveries int, last time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen), r.last
}

// latencies returns the time from sending to arrival of each attestation. The keys of
// sent are their ids.
func (r *receiver) latencies(sent map[string]time.Time) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []time.Duration
	for id, at := range sent {
		if arrival, ok := r.arrivals[id]; ok {
			list = append(list, arrival.Sub(at))
		}
	}
	return list
}

// close closes the listener and all connections.
func (r *receiver) close() {
	r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for conn := range r.conns {
		conn.Close()
	}
	r.mu.Unlock()
	r.serving.Wait()
}

// waitForDeliveries waits until each receiver has the given number of deliveries. It
// returns when the last one arrived.
func waitForDeliveries(ctx context.Context, receivers []*receiver, each int) (time.Time, error) {
	progress, at := -1, time.Now()
	for {
		var end time.Time
		total, missing := 0, 0
		for _, r := range receivers {
			n, last := r.arrived()
			if n > each {
				return end, fmt.Errorf("a webhook got %d deliveries, want %d", n, each)
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
		if time.Since(at) > arrivalTimeout {
			return end, fmt.Errorf("%d deliveries are missing", missing)
		}

		select {
		case <-ctx.Done():
			return end, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
