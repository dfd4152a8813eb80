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

// A load is a stream of HTTP requests over keep-alive connections. It speaks
// on bare connections, because the standard client costs as much as the server
// that it would measure.
type load struct {
	address string
	conns   int
	// requests are written as they are, in turn, until they are used up; with
	// repeat they start again until the time is over.
	requests [][]byte
	repeat   time.Duration
}

// A loadResult is what came of a load.
type loadResult struct {
	elapsed   time.Duration
	latencies []time.Duration // of the answers with status 2xx, ascending
	refused   int             // other answers
}

func (o loadResult) rate() float64 { return float64(len(o.latencies)) / o.elapsed.Seconds() }

// add adds what came of more of the same load.
func (o *loadResult) add(more loadResult) {
	o.elapsed += more.elapsed
	o.latencies = append(o.latencies, more.latencies...)
	slices.Sort(o.latencies)
}

// percentile returns the latency that the given share of the answers kept.
func (o loadResult) percentile(share float64) time.Duration {
	if len(o.latencies) == 0 {
		return 0
	}
	return o.latencies[min(int(share*float64(len(o.latencies))), len(o.latencies)-1)]
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
	o := loadResult{elapsed: time.Since(start)}
	for i := range lanes {
		if lanes[i].err != nil {
			return o, lanes[i].err
		}
		o.latencies = append(o.latencies, lanes[i].latencies...)
		o.refused += lanes[i].refused
	}
	slices.Sort(o.latencies)
	if o.refused > 0 {
		return o, fmt.Errorf("%d of %d requests were refused", o.refused, o.refused+len(o.latencies))
	}
	return o, nil
}

// queue returns a function that hands out the requests; nil is the end.
func (l load) queue() func() []byte {
	var mu sync.Mutex
	i, end := 0, time.Now().Add(l.repeat)
	return func() []byte {
		mu.Lock()
		defer mu.Unlock()
		if i == len(l.requests) && l.repeat > 0 {
			i = 0
		}
		if i == len(l.requests) || l.repeat > 0 && time.Now().After(end) {
			return nil
		}
		i++
		return l.requests[i-1]
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
	answers := bufio.NewReader(conn)
	for request := next(); request != nil; request = next() {
		start := time.Now()
		if _, c.err = conn.Write(request); c.err != nil {
			return
		}
		answer, err := http.ReadResponse(answers, nil) //nolint:bodyclose // it is read to its end
		if err != nil {
			c.err = err
			return
		}
		if _, c.err = io.Copy(io.Discard, answer.Body); c.err != nil {
			return
		}
		if answer.StatusCode/100 == 2 {
			c.latencies = append(c.latencies, time.Since(start))
		} else {
			c.refused++
		}
	}
}

// httpRequest writes a request as it goes over the wire.
func httpRequest(method, path, token string, body []byte) []byte {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n", method, path, token)
	if body != nil {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append([]byte(head+"\r\n"), body...)
}
