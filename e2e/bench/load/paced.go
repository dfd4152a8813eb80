package load

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

// A Paced sends requests at a fixed rate, however long the responses take. It opens
// another connection if all are in use.
type Paced struct {
	Address string
	Rate    int                // requests per second
	N       int                // how many requests to send
	Next    func(i int) []byte // returns the i-th request
}

// A Tally counts the responses to the requests of a crowd or a load.
type Tally struct {
	mu        sync.Mutex
	Latencies []time.Duration // of responses with status 2xx
	Refused   map[string]int  // other responses, by status and code
}

// unanswered is the key in Refused of requests that got no response.
const unanswered = "no response"

// Note counts a response.
func (t *Tally) Note(r Response, latency time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Status/100 == 2 {
		t.Latencies = append(t.Latencies, latency)
		return
	}
	if t.Refused == nil {
		t.Refused = make(map[string]int)
	}
	t.Refused[r.refusal()]++
}

// refusal describes a response by its status and the code in its body.
func (r Response) refusal() string {
	if r.Status == 0 {
		return unanswered
	}
	var problem ledger.Problem
	if json.Unmarshal(r.Body, &problem) != nil || problem.Code == "" {
		return strconv.Itoa(r.Status)
	}
	return strconv.Itoa(r.Status) + " " + string(problem.Code)
}

// Result returns what was counted, in the time since start.
func (t *Tally) Result(start time.Time) Responses {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := Result{Elapsed: time.Since(start), Latencies: slices.Sorted(slices.Values(t.Latencies))}
	return Responses{Served: len(r.Latencies), Rate: r.Rate(), P50: MS(r.Percentile(0.50)),
		P99: MS(r.Percentile(0.99)), Refused: maps.Clone(t.Refused)}
}

// Responses summarizes a Tally.
type Responses struct {
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

// Run sends all requests, and summarizes the responses.
func (l Paced) Run(ctx context.Context) Responses {
	var counted Tally
	start := time.Now()
	asked := l.Send(ctx, &counted)
	r := counted.Result(start)
	r.Asked = asked
	return r
}

// Send sends all requests and returns when each has its response, which it counts. Latencies
// count from the moment at which a request was due.
func (l Paced) Send(ctx context.Context, counted *Tally) (asked int) {
	pool := &connPool{address: l.Address}
	defer pool.close()
	var sending sync.WaitGroup
	start := time.Now()
	for ; asked < l.N; asked++ {
		due := start.Add(time.Duration(asked) * time.Second / time.Duration(l.Rate))
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(due)):
		}
		if ctx.Err() != nil {
			break
		}

		request := l.Next(asked)
		sending.Go(func() {
			counted.Note(pool.send(request), time.Since(due))
		})
	}

	sending.Wait()
	return asked
}

// A connPool keeps the connections that are not in use. The one used last is used next.
type connPool struct {
	address string
	mu      sync.Mutex
	idle    []*Conn
}

// send sends a request and returns the response.
func (p *connPool) send(request []byte) Response {
	c, err := p.take()
	if err != nil {
		return Response{}
	}
	r, err := c.Send(request)
	if err != nil {
		c.Close()
		return Response{}
	}
	if r.Closes {
		c.Close()
		return r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	return r
}

// take returns an idle connection, or a new one.
func (p *connPool) take() (*Conn, error) {
	p.mu.Lock()
	last := len(p.idle) - 1
	if last < 0 {
		p.mu.Unlock()
		return Dial(p.address)
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

// A Conn is a connection on which requests are written as bytes.
type Conn struct {
	net.Conn
	Responses *bufio.Reader
}

// A Response is a response. Its Status is 0 if there was none.
type Response struct {
	Status int
	Closes bool // whether the server closes the connection
	Body   []byte
}

// Dial connects to an address.
func Dial(address string) (*Conn, error) {
	conn, err := net.DialTimeout("tcp", address, requestTimeout)
	if err != nil {
		return nil, err
	}
	return &Conn{conn, bufio.NewReader(conn)}, nil
}

// Send sends a request and reads the whole response.
func (c *Conn) Send(request []byte) (Response, error) {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return Response{}, err
	}
	if _, err := c.Write(request); err != nil {
		return Response{}, err
	}
	return c.Receive()
}

// Receive reads a whole response.
func (c *Conn) Receive() (Response, error) {
	response, err := http.ReadResponse(c.Responses, nil)
	if err != nil {
		return Response{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Response{}, err
	}
	return Response{response.StatusCode, response.Close, body}, nil
}
