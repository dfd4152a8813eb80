package bench

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// requestTimeout is the time after which a request counts as unanswered.
const requestTimeout = 30 * time.Second

// A pacedLoad sends requests at a fixed rate, however long the responses take. It opens
// another connection if all are in use.
type pacedLoad struct {
	address string
	rate    int      // requests per second
	n       int      // how many requests to send
	next    requests // returns the i-th request
}

type requests func(i int) []byte

// A tally counts the responses to the requests of a crowd or a load.
type tally struct {
	mu        sync.Mutex
	latencies []time.Duration // of responses with status 2xx
	refused   map[string]int  // other responses, by status and code
}

// unanswered is the key in refused of requests that got no response.
const unanswered = "no response"

// note counts a response.
func (t *tally) note(r rawResponse, latency time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.status/100 == 2 {
		t.latencies = append(t.latencies, latency)
		return
	}
	if t.refused == nil {
		t.refused = make(map[string]int)
	}
	t.refused[r.refusal()]++
}

// refusal describes a response by its status and the code in its body.
func (r rawResponse) refusal() string {
	if r.status == 0 {
		return unanswered
	}
	var problem ledger.Problem
	if json.Unmarshal(r.body, &problem) != nil || problem.Code == "" {
		return strconv.Itoa(r.status)
	}
	return strconv.Itoa(r.status) + " " + string(problem.Code)
}

// result returns what was counted, in the time since start.
func (t *tally) result(start time.Time) crowdResponses {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := loadResult{elapsed: time.Since(start), latencies: slices.Sorted(slices.Values(t.latencies))}
	return crowdResponses{Served: len(r.latencies), Rate: r.rate(), P50: ms(r.percentile(0.50)),
		P99: ms(r.percentile(0.99)), Refused: maps.Clone(t.refused)}
}

// crowdResponses summarizes a tally.
type crowdResponses struct {
	Asked  int     `json:"asked,omitzero"` // 0 if each request waits for the response to the one before
	Served int     `json:"served"`
	Rate   float64 `json:"per_second,omitzero"`
	P50    float64 `json:"p50_ms,omitzero"`
	P99    float64 `json:"p99_ms,omitzero"`
	// Ratio compares P99 with that of the quiet server.
	Ratio float64 `json:"ratio,omitzero"`
	// MedianRatio compares P50.
	MedianRatio float64        `json:"p50_ratio,omitzero"`
	Refused     map[string]int `json:"refused,omitempty"`
}

// run sends all requests and returns when each has its response. Latencies count from the
// moment at which a request was due.
func (l pacedLoad) run(ctx context.Context) crowdResponses {
	pool := &connPool{address: l.address}
	defer pool.close()
	var counted tally
	var sending sync.WaitGroup
	start := time.Now()
	asked := 0
	for ; asked < l.n; asked++ {
		due := start.Add(time.Duration(asked) * time.Second / time.Duration(l.rate))
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(due)):
		}
		if ctx.Err() != nil {
			break
		}

		request := l.next(asked)
		sending.Go(func() {
			counted.note(pool.send(request), time.Since(due))
		})
	}

	sending.Wait()
	r := counted.result(start)
	r.Asked = asked
	return r
}

// A connPool keeps the connections that are not in use. The one used last is used next.
type connPool struct {
	address string
	mu      sync.Mutex
	idle    []*rawConn
}

// send sends a request and returns the response.
func (p *connPool) send(request []byte) rawResponse {
	c, err := p.take()
	if err != nil {
		return rawResponse{}
	}
	r, err := c.send(request)
	if err != nil {
		c.Close()
		return rawResponse{}
	}
	if r.closes {
		c.Close()
		return r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	return r
}

// take returns an idle connection, or a new one.
func (p *connPool) take() (*rawConn, error) {
	p.mu.Lock()
	last := len(p.idle) - 1
	if last < 0 {
		p.mu.Unlock()
		return dialRaw(p.address)
	}
	defer p.mu.Unlock()
	c := p.idle[last]
	p.idle = p.idle[:last]
	return c, nil
}

func (p *connPool) close() {
	for _, c := range p.idle {
		c.Close()
	}
}

// A rawConn is a connection on which requests are written as bytes.
type rawConn struct {
	net.Conn
	responses *bufio.Reader
}

// A rawResponse is a response. Its status is 0 if there was none.
type rawResponse struct {
	status int
	closes bool // whether the server closes the connection
	body   []byte
}

func dialRaw(address string) (*rawConn, error) {
	conn, err := net.DialTimeout("tcp", address, requestTimeout)
	if err != nil {
		return nil, err
	}
	return &rawConn{conn, bufio.NewReader(conn)}, nil
}

// send sends a request and reads the whole response.
func (c *rawConn) send(request []byte) (rawResponse, error) {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return rawResponse{}, err
	}
	if _, err := c.Write(request); err != nil {
		return rawResponse{}, err
	}
	return c.receive()
}

// receive reads a whole response.
func (c *rawConn) receive() (rawResponse, error) {
	response, err := http.ReadResponse(c.responses, nil)
	if err != nil {
		return rawResponse{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return rawResponse{}, err
	}
	return rawResponse{response.StatusCode, response.Close, body}, nil
}
