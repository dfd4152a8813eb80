//go:build unix

package fault_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
)

// A pair is a primary and its standby. After a failover, each is the other.
type pair struct{ primary, standby *pgtest.Cluster }

// newPair starts a primary with a standby, and returns the URL of a database with both hosts.
func newPair(t *testing.T) (p *pair, url string) {
	t.Helper()
	p = &pair{primary: pgtest.Start(t)}
	url = p.primary.NewDatabase(t)
	p.standby = p.primary.NewStandby(t)
	both := p.primary.Address() + "," + p.standby.Address()
	return p, strings.Replace(url, p.primary.Address(), both, 1) + "&target_session_attrs=read-write"
}

// rebuild makes the old primary the synchronous standby of the new one.
func (p *pair) rebuild(t *testing.T) {
	t.Helper()
	p.primary, p.standby = p.standby, p.primary
	p.standby.Follow(t, p.primary)
	p.primary.Synchronous(t)
}

// An outage measures from when on servers work again.
type outage struct {
	mu    sync.Mutex
	began time.Time
	ended map[string]time.Duration // by address
}

// answered implements load.Load.Answered. Only what was sent during the outage counts.
func (o *outage) answered(sent time.Time, r *http.Response) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Request.Method == http.MethodGet || r.StatusCode >= 300 || o.began.IsZero() || sent.Before(o.began) {
		return
	}
	if _, known := o.ended[r.Request.URL.Host]; !known {
		o.ended[r.Request.URL.Host] = time.Since(o.began)
	}
}

// begin begins an outage.
func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.began, o.ended = time.Now(), make(map[string]time.Duration)
}

// end returns when a server has answered with 2xx.
func (o *outage) end(address string) (d time.Duration, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, ended = o.ended[address]
	return d, ended
}

// What happens to a primary.
var primaryFaults = []struct {
	name string
	do   func(*testing.T, *pgtest.Cluster)
}{
	{"`kill -9`", func(t *testing.T, c *pgtest.Cluster) { c.Kill(t) }},
	{"`pg_ctl stop -m immediate`", func(t *testing.T, c *pgtest.Cluster) { c.Stop(t, "immediate") }},
	{"does not answer", func(t *testing.T, c *pgtest.Cluster) { c.Signal(t, syscall.SIGSTOP) }},
}

// If the primary is killed or hangs under load, and its synchronous standby is promoted, nothing
// that was confirmed is lost, and the servers continue by themselves.
func TestFaultFailover(t *testing.T) {
	slow(t)
	t.Parallel()
	p, url := newPair(t)
	r := newReplicas(t, 2, url)
	o := new(outage)
	r.load.Answered = o.answered
	p.primary.Synchronous(t)

	runs := times(3, 30)
	for run := range runs {
		fault := primaryFaults[run%len(primaryFaults)]
		r.under(func() {
			aMoment()
			o.begin()
			fault.do(t, p.primary)
			promoting := time.Now()
			p.standby.Promote(t)
			row := fmt.Sprintf("| %s | promotion %v |", fault.name, time.Since(promoting).Round(time.Millisecond))
			for _, one := range r.list {
				recovered := func() bool { _, ended := o.end(one.address); return ended }
				waitFor(t, "the replica to record again", &one.log, recovered)
				took, _ := o.end(one.address)
				row += fmt.Sprintf(" %v |", took.Round(time.Millisecond))
			}
			t.Log(row)
			aMoment()
		})

		if fault.name == "does not answer" {
			p.primary.Kill(t)
		}
		p.rebuild(t)
	}
	r.finish("two servers: failover to a synchronous standby", runs)
}

// A standby that is not synchronous may lack what was confirmed when it is promoted. The servers then say that
// the transparency log is not signed.
func TestFaultFailoverThatLoses(t *testing.T) {
	slow(t)
	t.Parallel()
	p, url := newPair(t)
	r := newReplicas(t, 2, url)
	record := func(n int) {
		n += r.load.Book.Count(filecheck.Confirmed)
		r.under(func() {
			waitFor(t, "new records", &r.list[0].log, func() bool { return r.load.Book.Count(filecheck.Confirmed) >= n })
		})
	}
	record(20)
	p.standby.Leave(t)
	record(100)
	events := must.Get(r.load.Delivered(t.Context(), r.list[0].url, r.list[0].follower, time.Minute))(t)
	for _, one := range r.list {
		waitFor(t, "all events to be signed", &one.log, func() bool { return one.signed(t) >= int64(events) })
	}

	p.primary.Kill(t)
	p.standby.Promote(t)
	for _, one := range r.list {
		unsigned := func() bool { _, body := r.get(one.url + "/readyz"); return strings.Contains(body, `"unsigned":1`) }
		waitFor(t, "/readyz to say that the log is not signed", &one.log, unsigned)
	}
	file := filepath.Join(t.TempDir(), "copy.db")
	r.run("copy", "--from", r.url, "--to", file)
	problems := must.Get(filecheck.Check(t.Context(), file, r.load.Book.Notes(), time.Now))(t)
	if r.add(problems); r.lost == 0 {
		t.Error("nothing was lost, so this test shows nothing")
	}
	t.Logf("%d of %d confirmed records are lost", r.lost, r.load.Book.Count(filecheck.Confirmed))
}
