package bench

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
)

// An audience is many subscribers of one stream, on bare connections, who read
// all that comes and count the messages.
type audience struct {
	subscribers []*subscriber
	reading     sync.WaitGroup
}

// A subscriber is one connection of an audience.
type subscriber struct {
	conn  net.Conn
	body  io.Reader
	count atomic.Int64 // of messages that have come
	last  atomic.Int64 // when the last of them came, in Unix nanoseconds
	ended atomic.Bool

	// sent are the times at which the messages were caused, where latencies are
	// wanted.
	sent      []atomic.Int64
	latencies []time.Duration // of each message; written by read alone
}

// newAudience connects n subscribers, 64 at a time. Sent may be nil.
func newAudience(ctx context.Context, address, path, token string, n int, sent []atomic.Int64) (*audience, error) {
	a := &audience{subscribers: make([]*subscriber, n)}
	request := httpRequest(http.MethodGet, path, token, nil)
	request = bytes.Replace(request, []byte("\r\n"), []byte("\r\nAccept: text/event-stream\r\n"), 1)
	errs := make([]error, n)
	var connecting sync.WaitGroup
	for lane := range min(n, 64) {
		connecting.Go(func() {
			for i := lane; i < n && ctx.Err() == nil; i += 64 {
				a.subscribers[i], errs[i] = subscribe(address, request)
			}
		})
	}
	connecting.Wait()
	for i, s := range a.subscribers {
		if s == nil {
			a.close()
			return nil, fmt.Errorf("connect subscriber %d: %w", i+1, errs[i])
		}
		s.sent = sent
	}
	for _, s := range a.subscribers {
		a.reading.Go(s.read)
	}
	return a, nil
}

func subscribe(address string, request []byte) (*subscriber, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	var answer *http.Response
	if _, err = conn.Write(request); err == nil {
		answer, err = http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // conn is closed
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server answered %s", answer.Status)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &subscriber{conn: conn, body: answer.Body}, nil
}

// read counts messages by the lines that hold their data.
func (s *subscriber) read() {
	defer s.ended.Store(true)
	mark := []byte("\ndata: ")
	text := make([]byte, 16<<10)
	kept := 0 // bytes at the beginning that may be the beginning of a mark
	for {
		n, err := s.body.Read(text[kept:])
		if found := bytes.Count(text[:kept+n], mark); found > 0 {
			s.note(int64(found), time.Now())
		}
		if err != nil {
			return
		}
		tail := min(kept+n, len(mark)-1)
		kept = copy(text, text[kept+n-tail:kept+n])
	}
}

func (s *subscriber) note(found int64, now time.Time) {
	before := s.count.Load()
	for i := before; i < before+found && i < int64(len(s.sent)); i++ {
		s.latencies = append(s.latencies, now.Sub(time.Unix(0, s.sent[i].Load())))
	}
	s.last.Store(now.UnixNano())
	s.count.Store(before + found)
}

// audiencePatience is how long nothing may come before messages count as lost.
const audiencePatience = 30 * time.Second

// wait waits until every subscriber has that many messages, and returns when
// the last one came.
func (a *audience) wait(ctx context.Context, messages int64) (time.Time, error) {
	progress, at := int64(-1), time.Now()
	for {
		var total, last int64
		missing := 0
		for _, s := range a.subscribers {
			ended := s.ended.Load() // before the count is read
			n := s.count.Load()
			if n > messages {
				return time.Time{}, fmt.Errorf("a subscriber got %d messages and there were %d", n, messages)
			}
			if n < messages {
				missing++
				if ended {
					return time.Time{}, fmt.Errorf("a subscriber was cut off after %d of %d messages", n, messages)
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
		if time.Since(at) > audiencePatience {
			return time.Time{}, fmt.Errorf("%d subscribers miss messages", missing)
		}
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// close ends the connections and returns the latencies, ascending.
func (a *audience) close() loadResult {
	for _, s := range a.subscribers {
		if s != nil {
			s.conn.Close()
		}
	}
	a.reading.Wait()
	var o loadResult
	for _, s := range a.subscribers {
		if s != nil {
			o.latencies = append(o.latencies, s.latencies...)
		}
	}
	slices.Sort(o.latencies)
	return o
}
