package e2e_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
)

// status returns a number from /proc/PID/status of the server, such as VmRSS
// (in KiB) or Threads.
func (o *org) status(name string) int {
	o.t.Helper()
	text := must.Read(o.t, fmt.Sprintf("/proc/%d/status", o.server.Process.Pid))
	match := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+)`).FindSubmatch(text)
	if match == nil {
		o.t.Fatalf("no %s in:\n%s", name, text)
	}
	return must.Get(strconv.Atoi(string(match[1])))(o.t)
}

// openFiles returns the number of open file descriptors of the server.
func (o *org) openFiles() int {
	o.t.Helper()
	descriptors := must.Get(os.ReadDir(fmt.Sprintf("/proc/%d/fd", o.server.Process.Pid)))(o.t)
	return len(descriptors)
}

// requestStream requests the stream on a new connection. It returns nil if it
// cannot connect.
func (o *org) requestStream(query string) *net.TCPConn {
	o.t.Helper()
	conn, err := net.Dial("tcp", o.address)
	if err != nil {
		o.t.Error(err)
		return nil
	}
	fmt.Fprintf(conn, "GET /v1/orgs/acme/events%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: "+
		"text/event-stream\r\n\r\n", query, o.address, o.token)
	return conn.(*net.TCPConn)
}

// A client that does not read is disconnected after 10 s. It delays none of 200
// other clients, and the server's memory stays bounded.
func TestStalledClientIsDisconnected(t *testing.T) {
	testenv.From(t, testenv.Push, "waits for timeouts")
	const readers, before = 200, 25_000
	o := newOrg(t)
	o.fill(before) // more than fits into the buffers of a connection
	o.start()
	streams := make([]*stream, readers)
	for i := range streams {
		streams[i] = o.listen(o.url)
	}
	for range 20 {
		_, err := o.attest() // causes the one-time allocations
		must.OK(t, err)
	}
	memory := o.status("VmRSS")

	began := time.Now()
	stalledClient := o.stalledClient()
	var posted sync.Map // event ID -> when its statement was posted
	posts, cutOff := 0, time.Duration(0)
	stalled, peak := 0, 0 // VmRSS once the client's buffers are full, and the maximum after that
	for time.Since(began) < 20*time.Second && cutOff == 0 {
		at := time.Now()
		record := must.Get(o.attest())(t)
		posted.Store(record.Event, at)
		posts++
		time.Sleep(20 * time.Millisecond)
		if time.Since(began) > 3*time.Second {
			now := o.status("VmRSS")
			stalled, peak = cmp.Or(stalled, now), max(peak, now)
		}
		if !established(t, stalledClient) {
			cutOff = time.Since(began)
		}
	}

	switch {
	case cutOff == 0:
		t.Errorf("the stalled client is still connected after %s", time.Since(began))
	case cutOff < 9*time.Second || cutOff > 14*time.Second:
		t.Errorf("the stalled client was disconnected after %s, want about 10 s", cutOff)
	}
	if (stalled-memory)/1024 > 60 || (peak-stalled)/1024 > 20 {
		t.Errorf("memory of the server: %d KiB before the stalled client, %d KiB when it stalled, then at most %d KiB",
			memory, stalled, peak)
	}
	t.Logf("%d statements to %d readers; the stalled client was disconnected after %s; memory %d KiB before it, "+
		"%d KiB when it stalled, then at most %d KiB",
		posts, readers, cutOff, memory, stalled, peak)
	checkDelay(t, streams, &posted, posts)
}

// checkDelay reads every stream until it has sent all posted events, and checks
// that each arrived within a second.
func checkDelay(t *testing.T, streams []*stream, posted *sync.Map, posts int) {
	t.Helper()
	slowest := time.Duration(0)
	for _, s := range streams {
		for got := 0; got < posts; {
			m := s.next(t)
			if at, ok := posted.Load(m.id); ok {
				slowest = max(slowest, m.receivedAt.Sub(at.(time.Time)))
				got++
			}
		}
	}
	t.Logf("the slowest event arrived %s after its POST", slowest)
	if slowest > time.Second {
		t.Errorf("an event arrived %s after its POST, want at most 1 s", slowest)
	}
}

// stalledClient requests the stream from the earliest event on, and never reads
// it.
func (o *org) stalledClient() *net.TCPConn {
	o.t.Helper()
	conn := o.requestStream("?last_event_id=earliest")
	if conn == nil {
		o.t.FailNow()
	}
	o.t.Cleanup(func() { conn.Close() })
	must.OK(o.t, conn.SetReadBuffer(4096))
	return conn
}

// fill writes n attestations straight into the store. Their envelopes are not
// signed.
func (o *org) fill(n int) {
	o.t.Helper()
	s := must.Get(store.Open(o.t.Context(), o.database, store.Options{}))(o.t)
	defer s.Close()
	_, version, err := s.Keyring(o.t.Context(), "acme")
	must.OK(o.t, err)

	var wg sync.WaitGroup
	const workers = 64
	for worker := range workers {
		wg.Go(func() {
			for i := worker; i < n; i += workers {
				envelope := fmt.Appendf(nil, "%d", i)
				_, _, err := s.Record(o.t.Context(), "acme", "api", &attestation.Attestation{
					Outcome: attestation.Outcome{Predicate: "lint:" + strings.Repeat("x", 120),
						Result: ledger.Result{Status: ledger.Pass}},
					Commit: fmt.Sprintf("%040x", i%7), PredicateType: attestation.ResultPredicateType,
					Signer:        identity.Signer{DN: identity.DN{CN: "ci", OU: "build", O: "acme"}},
					PayloadDigest: sha256.Sum256(envelope), Envelope: envelope,
				}, version)
				if err != nil {
					o.t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// established reports whether the server's end of the connection is still open.
// The client's end would only show this after reading everything.
func established(t *testing.T, conn *net.TCPConn) bool {
	t.Helper()
	text := must.Read(t, "/proc/net/tcp")
	server, client := procAddress(t, conn.RemoteAddr()), procAddress(t, conn.LocalAddr())
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[1] == server && f[2] == client {
			return f[3] == "01" // TCP_ESTABLISHED
		}
	}
	return false
}

// procAddress returns an address in the form of /proc/net/tcp.
func procAddress(t *testing.T, a net.Addr) string {
	t.Helper()
	ap := must.Get(netip.ParseAddrPort(a.String()))(t)
	ip := ap.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), ap.Port())
}

// Ten thousand clients that connect and disconnect leak no goroutines, files,
// threads or memory.
func TestDisconnectedClientsLeakNothing(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	const clients, workers = 10_000, 20
	o := newOrg(t)
	o.start()
	open := o.listen(o.url) // keeps the org's feed running, as in production
	o.connectAndClose(1000, workers)
	o.settle()
	files, threads, memory := o.openFiles(), o.status("Threads"), o.status("VmRSS")

	o.connectAndClose(clients, workers)
	waitFor(t, "the server to close its files", 10*time.Second, func() bool { return o.openFiles() <= files+1 })
	o.settle()

	t.Logf("files %d, then %d; threads %d, then %d; memory %d KiB, then %d",
		files, o.openFiles(), threads, o.status("Threads"), memory, o.status("VmRSS"))
	if got := o.status("Threads"); got > threads+8 {
		t.Errorf("%d threads, was %d before", got, threads)
	}
	if grown := (o.status("VmRSS") - memory) / 1024; grown > 30 {
		t.Errorf("memory grew by %d MiB", grown)
	}

	record := must.Get(o.attest())(t)
	if m := open.next(t); m.id != record.Event {
		t.Errorf("the open stream got %+v, want event %s", m, record.Event)
	}
	o.checkGoroutines()
}

// connectAndClose opens n streams, reads the first line of each and closes the
// connection, every other one with a reset.
func (o *org) connectAndClose(n, workers int) {
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			buffer := make([]byte, 4096)
			for i := worker; i < n; i += workers {
				conn := o.requestStream("")
				if conn == nil {
					return
				}
				if err := readUntil(conn, buffer, "retry: "); err != nil {
					o.t.Error(err)
				}
				if i/workers%2 == 0 {
					conn.SetLinger(0)
				}
				conn.Close()
			}
		})
	}
	wg.Wait()
}

// readUntil reads into the buffer until it contains want.
func readUntil(r io.Reader, buffer []byte, want string) error {
	for n := 0; ; {
		m, err := r.Read(buffer[n:])
		n += m
		if strings.Contains(string(buffer[:n]), want) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w after %q", err, buffer[:n])
		}
	}
}

// settle waits until the number of the server's open files is stable.
func (o *org) settle() {
	for before := -1; before != o.openFiles(); time.Sleep(300 * time.Millisecond) {
		before = o.openFiles()
	}
}

// checkGoroutines stops the server with SIGQUIT, which makes it dump its
// goroutines, and checks their number.
func (o *org) checkGoroutines() {
	o.t.Helper()
	o.signal(syscall.SIGQUIT)
	dump := o.log.String()
	all := strings.Count(dump, "\ngoroutine ")
	streams := strings.Count(dump, "live.(*Stream).follow(")
	o.t.Logf("%d goroutines, %d of them streams", all, streams)
	if all < 3 || all > 60 || streams != 1 {
		file := filepath.Join(os.TempDir(), "ledgerd-goroutines.txt")
		os.WriteFile(file, []byte(dump), 0o600)
		o.t.Errorf("%d goroutines, %d of them streams, want 3 to 60 and 1: see %s", all, streams, file)
	}
}
