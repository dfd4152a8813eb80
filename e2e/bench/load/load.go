// Package load sends HTTP requests, and measures how long the responses take.
package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Load sends HTTP requests over keep-alive TCP connections. It does not use
// http.Client, which costs as much CPU time as the server under test.
type Load struct {
	Address string
	Conns   int
	// Requests are sent in order, each once. If Repeat is not zero, they are
	// repeated for that time.
	Requests [][]byte
	Repeat   time.Duration
	// PerSecond is how many requests to send a second. If it is 0, each connection sends
	// the next one as soon as it has a response.
	PerSecond int
	// Stop ends the load early when it is closed.
	Stop <-chan struct{}
}

// A Result is the result of a load.
type Result struct {
	Elapsed   time.Duration
	Latencies []time.Duration // of responses with status 2xx, ascending
	Refused   int             // other responses
}

// Rate returns successful requests per second.
func (r Result) Rate() float64 { return float64(len(r.Latencies)) / r.Elapsed.Seconds() }

// Add adds the result of another run of the same load.
func (r *Result) Add(more Result) {
	r.Elapsed += more.Elapsed
	r.Latencies = append(r.Latencies, more.Latencies...)
	slices.Sort(r.Latencies)
}

// Percentile returns the latency that the given share of the responses did not
// exceed.
func (r Result) Percentile(share float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(int(share*float64(len(r.Latencies))), len(r.Latencies)-1)]
}

// Run sends all requests. It returns an error if any is refused.
func (l Load) Run() (Result, error) {
	next := l.queue()
	lanes := make([]lane, l.Conns)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range lanes {
		wg.Go(func() { lanes[i].run(l.Address, next) })
	}
	wg.Wait()

	result := Result{Elapsed: time.Since(start)}
	for i := range lanes {
		if lanes[i].err != nil {
			return result, lanes[i].err
		}
		result.Latencies = append(result.Latencies, lanes[i].latencies...)
		result.Refused += lanes[i].refused
	}
	slices.Sort(result.Latencies)
	if result.Refused > 0 {
		return result, fmt.Errorf("%d of %d requests were refused", result.Refused, result.Refused+len(result.Latencies))
	}
	return result, nil
}

// queue returns a function that returns the next request, or nil at the end.
func (l Load) queue() func() []byte {
	var mu sync.Mutex
	start := time.Now()
	i, end := 0, start.Add(l.Repeat)
	next := func() (request []byte, number int) {
		mu.Lock()
		defer mu.Unlock()
		if i == len(l.Requests) && l.Repeat > 0 {
			i = 0
		}
		if i == len(l.Requests) || l.Repeat > 0 && time.Now().After(end) {
			return nil, i
		}
		i++
		return l.Requests[i-1], i - 1
	}

	return func() []byte {
		select {
		case <-l.Stop:
			return nil
		default:
		}
		request, number := next()
		if l.PerSecond > 0 && request != nil {
			time.Sleep(time.Until(start.Add(time.Duration(number) * time.Second / time.Duration(l.PerSecond))))
		}
		return request
	}
}

// A lane is one connection of a load.
type lane struct {
	latencies []time.Duration
	refused   int
	err       error
}

func (c *lane) run(address string, next func() []byte) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		c.err = err
		return
	}
	defer conn.Close()

	responses := bufio.NewReader(conn)
	for request := next(); request != nil; request = next() {
		start := time.Now()
		if _, c.err = conn.Write(request); c.err != nil {
			return
		}
		response, err := http.ReadResponse(responses, nil) //nolint:bodyclose // it is read to its end
		if err != nil {
			c.err = err
			return
		}
		if _, c.err = io.Copy(io.Discard, response.Body); c.err != nil {
			return
		}
		if response.StatusCode/100 == 2 {
			c.latencies = append(c.latencies, time.Since(start))
		} else {
			c.refused++
		}
	}
}

// Request returns a request in wire format.
func Request(method, path, token string, body []byte) []byte {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n", method, path, token)
	if body != nil {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append([]byte(head+"\r\n"), body...)
}

// MS returns a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
