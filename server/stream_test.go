package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// A message is one event of a stream, as received.
type message struct{ id, event, data string }

// A listener is a client of the live stream. It sends everything it receives to its
// channels.
type listener struct {
	t        *testing.T
	response *http.Response
	messages chan message // closed when the stream ends
	start    chan string  // the id without data at the start of a stream
	comments chan struct{}
	close    context.CancelFunc
}

// listen returns a listener to the events of acme.
func (b *backend) listen(query, token string, header map[string]string) *listener {
	b.t.Helper()
	return b.listenTo("acme", query, token, header)
}

func (b *backend) listenTo(org, query, token string, header map[string]string) *listener {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/v1/orgs/"+org+"/events"+query, nil)
	must.OK(b.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", typeEvents)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := b.stream.Do(request)
	must.OK(b.t, err)
	l := &listener{b.t.(*testing.T), response, make(chan message, 10_000), make(chan string, 1), make(chan struct{}, 100),
		cancel}
	if response.StatusCode != http.StatusOK {
		b.t.Fatalf("GET events%s: %s", query, response.Status)
	}
	b.t.Cleanup(func() { cancel(); response.Body.Close() })
	go l.read()
	return l
}

func (l *listener) read() {
	defer close(l.messages)

	var m message
	for lines := bufio.NewScanner(l.response.Body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			m.event = value
		case "id":
			m.id = value
		case "data":
			m.data = value
		case ":":
			l.comments <- struct{}{}
		case "":
			switch {
			case m.data != "":
				l.messages <- m
			case m.id != "":
				l.start <- m.id
			}
			m = message{}
		}
	}
}

// next returns the next n messages.
func (l *listener) next(n int) []message {
	l.t.Helper()
	var got []message
	for deadline := time.After(20 * time.Second); len(got) < n; {
		select {
		case m, ok := <-l.messages:
			if !ok {
				l.t.Fatalf("the stream ended after %d of %d messages", len(got), n)
			}
			got = append(got, m)
		case <-deadline:
			l.t.Fatalf("received %d of %d messages", len(got), n)
		}
	}
	return got
}

// wantEnd waits for the end of the stream.
func (l *listener) wantEnd() {
	l.t.Helper()
	select {
	case m, ok := <-l.messages:
		if ok {
			l.t.Fatalf("got %+v, want the end of the stream", m)
		}
	case <-time.After(20 * time.Second):
		l.t.Fatal("the stream did not end")
	}
}

func TestStream(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	l := b.listen("", b.reader, nil)
	for name, want := range map[string]string{"Content-Type": typeEvents, "Cache-Control": "no-cache, no-transform",
		"X-Accel-Buffering": "no", "Content-Encoding": "", "No-Gzip-Compression": ""} {
		if got := l.response.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	sha := commitID(1)
	record := decode[ledger.AttestationRecord](b.attest(ci.statement(t, sha, "test:go", ledger.Pass, 1)).want(201))
	b.putPolicy("*", `{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`).want(200)

	got := l.next(4)
	at := record.RecordedAt.String()
	for i, want := range []message{
		{record.Event, "attestation",
			fmt.Sprintf(`{"commit":%q,"predicate":"test:go","identity":"ci","repo":"api","timestamp":%q,`+
				`"result":{"status":"pass","duration_ms":%d}}`, sha, at, record.Result.DurationMS)},
		{got[1].id, "state", fmt.Sprintf(`{"commit":%q,"from":"DRAFT","to":"VALIDATING","repo":"api","timestamp":%q}`, sha,
			at)},
		{got[2].id, "state", fmt.Sprintf(`{"commit":%q,"from":"VALIDATING","to":"ATTESTED","repo":"api","timestamp":%q}`, sha,
			at)},
	} {
		if got[i] != want {
			t.Errorf("message %d:\n%+v, want\n%+v", i, got[i], want)
		}
	}
	if m := got[3]; m.event != "policy" ||
		!strings.HasPrefix(m.data, `{"repo":"api","version":2,"previous_version":1,"digest":"sha256:`) {
		t.Errorf("message 3: %+v, want the policy event", m)
	}
}

func TestStreamResumes(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	for i := range 3 {
		b.attest(ci.statement(t, commitID(i), "lint:go", ledger.Pass, i)).want(201)
	}
	all := b.listen("?last_event_id=earliest", b.reader, nil).next(6)

	resume := func(id string) map[string]string { return map[string]string{"Last-Event-ID": id} }
	for name, test := range map[string]struct {
		query  string
		header map[string]string
		want   []message
	}{
		"by header":               {"", resume(all[1].id), all[2:]},
		"by parameter":            {"?last_event_id=" + all[3].id, nil, all[4:]},
		"header takes precedence": {"?last_event_id=earliest", resume(all[4].id), all[5:]},
		"earliest by header":      {"", resume("earliest"), all},
		"filtered by type": {"?types=state&last_event_id=" + all[0].id, nil,
			[]message{all[1], all[3], all[5]}},
		"filtered by repo":           {"?repo=API&last_event_id=" + all[2].id, nil, all[3:]},
		"filtered by repo and types": {"?repo=api&types=state,attestation&last_event_id=earliest", nil, all},
	} {
		t.Run(name, func(t *testing.T) {
			l := b.listen(test.query, b.reader, test.header)
			if got := l.next(len(test.want)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// A stream that starts with the next event first sends its position, so that a client
// can resume before it has received a message.
func TestStreamSendsItsStart(t *testing.T) {
	b := newBackend(t)
	if got := <-b.listen("", b.reader, nil).start; !strings.HasPrefix(got, "evt_") {
		t.Errorf("the stream of a new org starts at %q, want its last event", got)
	}
	ci := b.signer("cn=ci,ou=build,o=acme")
	l := b.listen("", b.reader, nil)
	b.attest(ci.statement(t, commitID(1), "lint:go", ledger.Pass, 1)).want(201)
	all := l.next(2)

	for name, query := range map[string]string{"all": "", "filtered": "?types=policy"} {
		if got := <-b.listen(query, b.reader, nil).start; got != all[1].id {
			t.Errorf("%s: the stream starts at %q, want the last event %q", name, got, all[1].id)
		}
	}
	l = b.listen("?last_event_id="+all[0].id, b.reader, nil)
	l.next(1)
	select {
	case id := <-l.start:
		t.Errorf("a resumed stream sends the start %q", id)
	default:
	}
}

func TestStreamErrors(t *testing.T) {
	b := newBackend(t)
	stream := func(query, token string) response {
		t.Helper()
		return b.send(request{method: "GET", path: "/v1/orgs/acme/events" + query, token: token,
			header: map[string]string{"Accept": typeEvents}})
	}
	stream("?last_event_id=evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE", b.reader).wantFields(400, ledger.CodeInvalidParameter,
		"last_event_id")
	stream("?types=states", b.reader).wantFields(400, ledger.CodeInvalidParameter, "types")
	stream("?repo=none", b.reader).wantProblem(404, ledger.CodeNotFound)
	stream("?limit=1", b.reader).wantFields(400, ledger.CodeInvalidParameter, "limit")
	stream("?after=evt_x", b.reader).wantFields(400, ledger.CodeInvalidParameter, "after")
	stream("?from=1", b.reader).wantFields(400, ledger.CodeUnknownParameter, "from")
	stream("", "").wantProblem(401, ledger.CodeUnauthenticated)
	b.host("POST", "/v1/orgs", `{"name":"other"}`).want(201)
	stream("", b.token("other", "admin")).wantProblem(403, ledger.CodeForbidden)
	b.get("/v1/orgs/acme/events?last_event_id=earliest").wantFields(400, ledger.CodeInvalidParameter, "last_event_id")
}

func TestStreamLimits(t *testing.T) {
	b := newBackend(t)
	b.server.streams.perOrg, b.server.streams.perToken = 3, 2
	wantRejected := func(token string) {
		t.Helper()
		resp := b.send(request{method: "GET", path: "/v1/orgs/acme/events", token: token,
			header: map[string]string{"Accept": typeEvents}})
		resp.wantProblem(503, ledger.CodeTooManyStreams)
		if resp.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}

	first := b.listen("", b.reader, nil)
	b.listen("", b.reader, nil)
	wantRejected(b.reader) // limit of the token
	b.listen("", b.admin, nil)
	wantRejected(b.admin) // limit of the org
	first.close()
	must.Wait(t, "the end of the first stream", func() bool {
		b.server.streams.mu.Lock()
		defer b.server.streams.mu.Unlock()
		return b.server.streams.open["acme"] == 2
	})
	b.listen("", b.admin, nil)
}

// Every stream gets every event once and in order, whenever it starts and while others
// write. A client that never reads is disconnected without affecting others.
func TestStreamsUnderLoad(t *testing.T) {
	const writers, each, listeners = 8, 100, 20
	b := newBackend(t)
	b.server.timing.Stall = 200 * time.Millisecond
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.openUnreadStream()

	var streams []*listener
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				b.attest(ci.statement(t, commitID(i%10), fmt.Sprintf("test:%d", w), ledger.Pass, w*each+i)).want(201)
			}
		})
	}
	for range listeners {
		streams = append(streams, b.listen("?types=attestation&last_event_id=earliest", b.reader, nil))
		time.Sleep(5 * time.Millisecond)
	}
	wg.Wait()

	want := streams[0].next(writers * each)
	for _, l := range streams[1:] {
		if got := l.next(len(want)); !slices.Equal(got, want) {
			t.Fatal("streams differ")
		}
	}
	history, _ := b.page("/v1/orgs/acme/events?types=attestation&limit=500", "id")
	for i, id := range history {
		if want[i].id != id {
			t.Fatalf("message %d is %s, but %s in the history", i, want[i].id, id)
		}
	}
	must.Wait(t, "the end of the unread stream", func() bool {
		b.server.streams.mu.Lock()
		defer b.server.streams.mu.Unlock()
		return len(b.server.streams.open) == 2 // the org and the read token, without the admin token
	})
}

// openUnreadStream opens a stream with the admin token, over a connection with small
// buffers, and never reads it.
func (b *backend) openUnreadStream() {
	b.t.Helper()
	web := httptest.NewUnstartedServer(b.server.Handler())
	web.Listener = smallBuffers{web.Listener}
	web.Start()
	b.t.Cleanup(web.Close)
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	must.OK(b.t, err)
	b.t.Cleanup(func() { conn.Close() })
	must.OK(b.t, conn.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprintf(conn, "GET /v1/orgs/acme/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: "+
		"%s\r\n\r\n", b.admin, typeEvents)
	must.OK(b.t, err)
}

type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return conn, err
}

func TestStreamsLeakNothing(t *testing.T) {
	b := newBackend(t)
	b.listen("", b.reader, nil).close()
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 100 {
				b.listen("", b.reader, nil).close()
			}
		})
	}
	wg.Wait()
	must.Wait(t, "the goroutines of the streams to end", func() bool { return runtime.NumGoroutine() <= before+5 })
	must.Wait(t, "the limits and the feed to be released", func() bool {
		b.server.streams.mu.Lock()
		defer b.server.streams.mu.Unlock()
		return len(b.server.streams.open) == 0 && b.server.feeds.Len() == 0
	})
}
