package measure

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
)

// An audience is a number of subscribers of one stream, on raw TCP connections. They
// read everything and count the messages, except those that never read.
type audience struct {
	subscribers []*subscriber
	unread      int // how many of them, the first ones, never read
	reading     sync.WaitGroup
}

// A subscriber is one connection of an audience.
type subscriber struct {
	conn  net.Conn
	body  io.Reader
	count atomic.Int64 // messages received
	last  atomic.Int64 // when the last message arrived, in Unix nanoseconds
	ended atomic.Bool

	// sent has the time of each message's cause, in Unix nanoseconds, if latencies
	// are measured.
	sent      []atomic.Int64
	latencies []time.Duration // of each message; only read writes it
}

// newAudience connects n subscribers that read. If sent is not nil, it measures
// latencies.
func newAudience(ctx context.Context, address, path, token string, n int, sent []atomic.Int64) (*audience, error) {
	a, err := connectAudience(ctx, address, path, token, n, 0)
	if err == nil {
		a.read(sent)
	}
	return a, err
}

// connectAudience connects n subscribers, 64 at a time. unread is how many of them
// never read.
func connectAudience(ctx context.Context, address, path, token string, n, unread int) (*audience, error) {
	a := &audience{subscribers: make([]*subscriber, n), unread: unread}
	request := load.Request(http.MethodGet, path, token, nil)
	request = bytes.Replace(request, []byte("\r\n"), []byte("\r\nAccept: text/event-stream\r\n"), 1)
	errs := make([]error, n)
	var connecting sync.WaitGroup
	for lane := range min(n, 64) {
		connecting.Go(func() {
			for i := lane; i < n && ctx.Err() == nil; i += 64 {
				a.subscribers[i], errs[i] = subscribe(address, request)
				if i < unread && errs[i] == nil {
					errs[i] = a.subscribers[i].fillSoon()
				}
			}
		})
	}
	connecting.Wait()

	for i, s := range a.subscribers {
		if s == nil || errs[i] != nil {
			a.close()
			return nil, fmt.Errorf("connect subscriber %d: %w", i+1, errs[i])
		}
	}
	return a, nil
}

// read starts to read the streams, except those that are never read.
func (a *audience) read(sent []atomic.Int64) {
	for _, s := range a.subscribers[a.unread:] {
		s.sent = sent
		a.reading.Go(s.read)
	}
}

func subscribe(address string, request []byte) (*subscriber, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	var response *http.Response
	if _, err = conn.Write(request); err == nil {
		response, err = http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // conn is closed
	}
	if err == nil && response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // only for the error
		err = fmt.Errorf("the server responded %s: %s", response.Status, body)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &subscriber{conn: conn, body: response.Body}, nil
}

// fillSoon lets the connection's buffers take only a few messages.
func (s *subscriber) fillSoon() error { return s.conn.(*net.TCPConn).SetReadBuffer(4096) }

// read counts messages by their data lines.
func (s *subscriber) read() {
	defer s.ended.Store(true)
	mark := []byte("\ndata: ")
	buf := make([]byte, 16<<10)
	carried := 0 // bytes from the previous read that may begin a mark
	for {
		n, err := s.body.Read(buf[carried:])
		if marks := bytes.Count(buf[:carried+n], mark); marks > 0 {
			s.note(int64(marks), time.Now())
		}
		if err != nil {
			return
		}
		tail := min(carried+n, len(mark)-1)
		carried = copy(buf, buf[carried+n-tail:carried+n])
	}
}

// note counts messages that arrived at the same time.
func (s *subscriber) note(messages int64, now time.Time) {
	before := s.count.Load()
	for i := before; i < before+messages && i < int64(len(s.sent)); i++ {
		s.latencies = append(s.latencies, now.Sub(time.Unix(0, s.sent[i].Load())))
	}
	s.last.Store(now.UnixNano())
	s.count.Store(before + messages)
}

// arrivalTimeout is the time without arrivals after which messages and deliveries
// count as lost.
const arrivalTimeout = 30 * time.Second

// wait waits until every subscriber that reads has the given number of messages. It
// returns when the last one arrived.
func (a *audience) wait(ctx context.Context, messages int64) (time.Time, error) {
	progress, at := int64(-1), time.Now()
	for {
		var total, last int64
		missing := 0
		for _, s := range a.subscribers[a.unread:] {
			ended := s.ended.Load() // before the count is read
			n := s.count.Load()
			if n > messages {
				return time.Time{}, fmt.Errorf("a subscriber got %d messages, want %d", n, messages)
			}
			if n < messages {
				missing++
				if ended {
					return time.Time{}, fmt.Errorf("a subscriber was disconnected after %d of %d messages", n, messages)
				}
			}
			total, last = total+n, max(last, s.last.Load())
		}

		if missing == 0 {
			return time.Unix(0, last), nil
		}
		if total > progress {
			progress, at = total, time.Now()
		}
		if time.Since(at) > arrivalTimeout {
			return time.Time{}, fmt.Errorf("%d subscribers lack messages", missing)
		}

		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// close closes the connections and returns the latencies, in ascending order.
func (a *audience) close() load.Result {
	for _, s := range a.subscribers {
		if s != nil {
			s.conn.Close()
		}
	}
	a.reading.Wait()

	var result load.Result
	for _, s := range a.subscribers {
		if s != nil {
			result.Latencies = append(result.Latencies, s.latencies...)
		}
	}
	slices.Sort(result.Latencies)
	return result
}
