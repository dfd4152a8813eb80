package measure

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
)

// viewersPerToken is how many viewers sign in with the same token. A token can have 50
// sessions.
const viewersPerToken = 50

// viewers are people who view live pages. Each behaves like the script of the pages:
// it follows the stream, and fetches its page again after events.
type viewers struct {
	list    []*viewer
	stop    context.CancelFunc
	viewing sync.WaitGroup
}

// A viewer views one page. The connections are raw, like those of an audience.
type viewer struct {
	address, path, cookie string

	page      net.Conn
	responses *bufio.Reader
	stream    *subscriber
	events    chan struct{} // capacity 1

	latencies []time.Duration // of refreshes
	busy      int             // refreshes for which the server was too busy
	err       error
}

// viewedPages are the paths of the pages. The viewers take them in turn.
func viewedPages() []string {
	return []string{"/orgs/bench/repos/repo", "/orgs/bench", "/orgs/bench/activity",
		"/orgs/bench/repos/repo/commits/" + commitID(0)}
}

// newViewers signs in n viewers, opens their pages, and starts to follow the streams.
func newViewers(ctx context.Context, address string, tokens []string, n int) (*viewers, error) {
	viewing, stop := context.WithCancel(ctx)
	v := &viewers{stop: stop, list: make([]*viewer, n)}
	paths := viewedPages()
	for i := range v.list {
		v.list[i] = &viewer{address: address, path: paths[i%len(paths)], events: make(chan struct{}, 1)}
		if err := v.list[i].open(ctx, tokens[i/viewersPerToken]); err != nil {
			_, _ = v.close() // the error is that of open
			return nil, fmt.Errorf("open %s: %w", v.list[i].path, err)
		}
	}

	for _, viewer := range v.list {
		v.viewing.Go(viewer.follow)
		v.viewing.Go(func() { viewer.view(viewing) })
	}
	return v, nil
}

// close ends all viewers. It returns the latencies of the refreshes, in ascending
// order, and the first error of a viewer.
func (v *viewers) close() ([]time.Duration, error) {
	v.stop()
	for _, viewer := range v.list {
		if viewer != nil && viewer.stream != nil {
			viewer.stream.conn.Close()
		}
	}
	v.viewing.Wait()

	var latencies []time.Duration
	var err error
	for _, viewer := range v.list {
		if viewer == nil {
			continue
		}
		if viewer.page != nil {
			viewer.page.Close()
		}
		latencies = append(latencies, viewer.latencies...)
		if err == nil && viewer.err != nil {
			err = fmt.Errorf("refresh %s: %w", viewer.path, viewer.err)
		}
	}
	slices.Sort(latencies)
	return latencies, err
}

// busy returns how often the server was too busy for a refresh. It may be called after
// close.
func (v *viewers) busy() int {
	n := 0
	for _, viewer := range v.list {
		n += viewer.busy
	}
	return n
}

// Attributes of a live page, see app.js.
var (
	liveAttribute  = regexp.MustCompile(`data-live="([^"]*)"`)
	sinceAttribute = regexp.MustCompile(`data-live-since="([^"]*)"`)
)

// open signs in, fetches the page and connects to its stream.
func (v *viewer) open(ctx context.Context, token string) error {
	if err := v.signIn(ctx, token); err != nil {
		return err
	}
	var err error
	if v.page, err = net.Dial("tcp", v.address); err != nil {
		return err
	}
	v.responses = bufio.NewReader(v.page)
	body, _, err := v.fetch("")
	if err != nil {
		return err
	}

	live, since := liveAttribute.FindSubmatch(body), sinceAttribute.FindSubmatch(body)
	if live == nil || since == nil {
		return fmt.Errorf("the page is not live")
	}
	stream := html.UnescapeString(string(live[1])) + "&last_event_id=" + string(since[1])
	v.stream, err = subscribe(v.address, v.request(stream, "Accept: text/event-stream\r\n"))
	return err
}

func (v *viewer) signIn(ctx context.Context, token string) error {
	form := url.Values{"token": {token}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.address+"/login", strings.NewReader(form))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", "http://"+v.address)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	for _, c := range response.Cookies() {
		v.cookie = c.Name + "=" + c.Value
	}
	if response.StatusCode != http.StatusSeeOther || v.cookie == "" {
		return fmt.Errorf("sign in: the server responded %s", response.Status)
	}
	return nil
}

func (v *viewer) request(path, header string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n%s\r\n", path, v.address, v.cookie, header)
}

// fetch gets the page. If the server is busy, it returns how long to wait.
func (v *viewer) fetch(header string) (body []byte, retryAfter time.Duration, err error) {
	if _, err := v.page.Write(v.request(v.path, "Accept: text/html\r\n"+header)); err != nil {
		return nil, 0, err
	}
	response, err := http.ReadResponse(v.responses, nil)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		return nil, 0, err
	}

	switch response.StatusCode {
	case http.StatusOK:
		return body, 0, nil
	case http.StatusServiceUnavailable:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 if it is missing
		return body, max(time.Second, time.Duration(seconds)*time.Second), nil
	}
	return nil, 0, fmt.Errorf("the server responded %s", response.Status)
}

// follow reads the stream, and signals events to view.
func (v *viewer) follow() {
	buf := make([]byte, 16<<10)
	for {
		n, err := v.stream.body.Read(buf)
		if bytes.Contains(buf[:n], []byte("data: ")) {
			select {
			case v.events <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// The pauses between two refreshes, as in app.js.
const (
	minRefreshPause = time.Second
	maxRefreshPause = time.Minute
	refreshDelay    = 120 * time.Millisecond
)

// view fetches the page after events until ctx is done.
func (v *viewer) view(ctx context.Context) {
	requested, pause := time.Now(), minRefreshPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.events:
		}
		wait := max(refreshDelay, time.Until(requested.Add(pause))) + rand.N(pause/2)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}

		requested = time.Now()
		_, retryAfter, err := v.fetch("Accept-Encoding: gzip\r\nX-Ledger-Refresh: 1\r\n")
		if err != nil {
			v.err = err
			return
		}
		took := time.Since(requested)
		if retryAfter == 0 {
			v.latencies = append(v.latencies, took)
		} else {
			v.busy++
		}
		pause = min(maxRefreshPause, max(minRefreshPause, 5*took, retryAfter))
	}
}

// slowdownByViewers measures how much viewers of live pages slow down recording. Rounds
// with and without viewers alternate, to cancel out machine noise.
func (b *Core) slowdownByViewers(ctx context.Context, n int, tokens []string, attestations int) error {
	var alone, together, refreshes load.Result
	for range 2 {
		result, err := b.record(attestations)
		if err != nil {
			return err
		}
		alone.Add(result)

		v, err := newViewers(ctx, b.server.address, tokens, n)
		if err != nil {
			return err
		}
		start := time.Now()
		result, err = b.record(attestations)
		pages := load.Result{Elapsed: time.Since(start)}
		var failed error
		if pages.Latencies, failed = v.close(); err == nil {
			err = failed
		}
		if err != nil {
			return err
		}
		together.Add(result)
		refreshes.Add(pages)
	}

	b.crowdFigure(fmt.Sprintf("attest, %d connections", b.Connections), alone, 0)
	b.crowdFigure(fmt.Sprintf("the same, %d viewers", n), together, together.Rate()/alone.Rate())
	b.crowdFigure("refreshes of their pages", refreshes, 0)
	b.crowdMemory()
	return nil
}

func (b *Core) crowdFigure(workload string, result load.Result, ratio float64) {
	f := latencyFigure(workload, result)
	f.Rate, f.Ratio = result.Rate(), ratio
	b.figure(f)
}

func (b *Core) crowdMemory() {
	if bytes, ok := b.server.residentMemory(); ok {
		b.print("%-58s %8.0f MB", "memory of the server then", float64(bytes)/1e6)
	}
}
