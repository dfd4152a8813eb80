package bench

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

// A load sends HTTP requests over keep-alive TCP connections. It does not use
// http.Client, which costs as much CPU time as the server under test.
type load struct {
	address string
	conns   int
	// requests are sent in order, each once. If repeat is not zero, they are
	// repeated for that time.
	requests [][]byte
	repeat   time.Duration
	// rate is how many requests to send a second. If it is 0, each connection sends
	// the next one as soon as it has a response.
	rate int
}

// A loadResult is the result of a load.
type loadResult struct {
	elapsed   time.Duration
	latencies []time.Duration // of responses with status 2xx, ascending
	refused   int             // other responses
}

// rate returns successful requests per second.
func (r loadResult) rate() float64 { return float64(len(r.latencies)) / r.elapsed.Seconds() }

// add adds the result of another run of the same load.
func (r *loadResult) add(more loadResult) {
	r.elapsed += more.elapsed
	r.latencies = append(r.latencies, more.latencies...)
	slices.Sort(r.latencies)
}

// percentile returns the latency that the given share of the responses did not
// exceed.
func (r loadResult) percentile(share float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(int(share*float64(len(r.latencies))), len(r.latencies)-1)]
}

func (l load) run() (loadResult, error) {
	next := l.queue()
	lanes := make([]lane, l.conns)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range lanes {
		wg.Go(func() { lanes[i].run(l.address, next) })
	}
	wg.Wait()

	result := loadResult{elapsed: time.Since(start)}
	for i := range lanes {
		if lanes[i].err != nil {
			return result, lanes[i].err
		}
		result.latencies = append(result.latencies, lanes[i].latencies...)
		result.refused += lanes[i].refused
	}
	slices.Sort(result.latencies)
	if result.refused > 0 {
		return result, fmt.Errorf("%d of %d requests were refused", result.refused, result.refused+len(result.latencies))
	}
	return result, nil
}

// queue returns a function that returns the next request, or nil at the end.
func (l load) queue() func() []byte {
	var mu sync.Mutex
	start := time.Now()
	i, end := 0, start.Add(l.repeat)
	next := func() (request []byte, number int) {
		mu.Lock()
		defer mu.Unlock()
		if i == len(l.requests) && l.repeat > 0 {
			i = 0
		}
		if i == len(l.requests) || l.repeat > 0 && time.Now().After(end) {
			return nil, i
		}
		i++
		return l.requests[i-1], i - 1
	}

	return func() []byte {
		request, number := next()
		if l.rate > 0 && request != nil {
			time.Sleep(time.Until(start.Add(time.Duration(number) * time.Second / time.Duration(l.rate))))
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

// httpRequest returns a request in wire format.
func httpRequest(method, path, token string, body []byte) []byte {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n", method, path, token)
	if body != nil {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append([]byte(head+"\r\n"), body...)
}
