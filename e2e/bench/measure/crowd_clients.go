package measure

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
)

// crowdClients are the clients of a crowd. They run in a process of their own, so that
// their CPU time is known and does not delay the load that is measured.
type crowdClients struct {
	Address string
	// The numbers of hostile readers, half-sent bodies, slow-loris connections, streams,
	// streams that are never read, viewers, and clients of the large commit.
	Readers, Bodies, Loris, Streams, Unread, Viewers, Large int

	ReaderTokens, StreamTokens, ViewerTokens []string
	BodyToken                                string // with the scope write
	LargeClient                              largeClient
}

// streamsPerToken is how many streams of a benchmark share a token. A server allows 2,000.
const streamsPerToken = 1000

// A crowdReport is what a crowd has seen.
type crowdReport struct {
	Crowds map[string]load.Responses // by name
	Error  string                    // why the crowd failed; "" if it did not
}

// crowdReady is the line that the process of a crowd prints when all clients are
// connected.
const crowdReady = "ready"

// RunCrowd runs the clients that stdin describes in its first line. They end with the
// second line, which has the number of events that each stream must have got, or -1 if it
// is not known. bench crowd starts it as a separate process.
func RunCrowd(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	lines := bufio.NewReader(stdin)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the crowd: %w", err)
	}
	var clients crowdClients
	if err := json.Unmarshal(line, &clients); err != nil {
		return fmt.Errorf("read the crowd: %w", err)
	}

	gathered, err := clients.gather(ctx)
	defer gathered.disperse()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, crowdReady)

	var events int64
	if _, err := fmt.Fscanln(lines, &events); err != nil {
		return fmt.Errorf("read the number of events: %w", err)
	}
	return json.MarshalWrite(stdout, gathered.report(ctx, events))
}

// A gathering is the clients of a crowd while they are connected.
type gathering struct {
	start     time.Time
	viewers   *viewers // nil without viewers
	audiences []*audience
	hostile   map[string]*hostile // by name
}

// gather connects the clients. It returns those that are connected, even if it fails.
func (c crowdClients) gather(ctx context.Context) (*gathering, error) {
	g := &gathering{start: time.Now(), hostile: make(map[string]*hostile)}
	var err error
	if c.Viewers > 0 {
		if g.viewers, err = newViewers(ctx, c.Address, c.ViewerTokens, c.Viewers); err != nil {
			return g, err
		}
	}

	unread, left := c.Unread, c.Streams
	for _, token := range c.StreamTokens {
		n := min(left, streamsPerToken)
		a, err := connectAudience(ctx, c.Address, eventsPath, token, n, min(unread, n))
		if err != nil {
			return g, err
		}
		a.read(nil)
		g.audiences = append(g.audiences, a)
		left, unread = left-n, unread-min(unread, n)
	}

	g.hostile["loris"] = newHostile(ctx, c.Loris, func(ctx context.Context, counted *load.Tally, _ int) error {
		return sendSlowly(ctx, c.Address, counted)
	})
	g.hostile["bodies"] = newHostile(ctx, c.Bodies, func(ctx context.Context, counted *load.Tally, _ int) error {
		return sendHalf(ctx, c.Address, c.BodyToken, counted)
	})
	g.hostile["readers"] = newHostile(ctx, c.Readers, func(ctx context.Context, counted *load.Tally, i int) error {
		return readHopeless(ctx, c.Address, c.ReaderTokens[i], counted)
	})
	var sent atomic.Int64
	g.hostile["large"] = newHostile(ctx, c.Large, func(ctx context.Context, counted *load.Tally, i int) error {
		return c.LargeClient.use(ctx, c.Address, counted, &sent, i%2 == 0)
	})
	return g, nil
}

// report ends the hostile clients and the viewers, and checks that the streams that are
// read have got all events, unless their number is negative.
func (g *gathering) report(ctx context.Context, events int64) crowdReport {
	r := crowdReport{Crowds: make(map[string]load.Responses)}
	for name, h := range g.hostile {
		h.close()
		if result := h.tally.Result(g.start); result.Served > 0 || len(result.Refused) > 0 {
			r.Crowds[name] = result
		}
	}
	for _, a := range g.audiences {
		if _, err := a.wait(ctx, events); events >= 0 && err != nil {
			r.Error = err.Error()
		}
	}
	if g.viewers == nil {
		return r
	}

	latencies, err := g.viewers.close()
	if err != nil {
		r.Error = err.Error()
	}
	viewed := load.Tally{Latencies: latencies}
	if busy := g.viewers.busy(); busy > 0 {
		viewed.Refused = map[string]int{strconv.Itoa(http.StatusServiceUnavailable): busy}
	}
	r.Crowds["viewers"] = viewed.Result(g.start)
	return r
}

// disperse ends the clients that report has not ended.
func (g *gathering) disperse() {
	for _, h := range g.hostile {
		h.close()
	}
	for _, a := range g.audiences {
		a.close()
	}
	if g.viewers != nil {
		_, _ = g.viewers.close() // report has the errors
	}
}
