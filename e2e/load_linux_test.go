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

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
)

// status returns a number of the server's /proc/PID/status: VmRSS in KiB, Threads.
func (o *org) status(name string) int {
	o.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.server.Process.Pid))
	check(o.t, err)
	found := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+)`).FindSubmatch(text)
	if found == nil {
		o.t.Fatalf("no %s in:\n%s", name, text)
	}
	n, err := strconv.Atoi(string(found[1]))
	check(o.t, err)
	return n
}

// files returns how many file descriptors the server has open.
func (o *org) files() int {
	o.t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", o.server.Process.Pid))
	check(o.t, err)
	return len(open)
}

// ask opens a connection of its own, and asks on it for the stream.
func (o *org) ask(query string) *net.TCPConn {
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

// One client that never reads, among 200 that do, is cut off after 10 s, and
// neither the others nor the server's memory notice.
func TestAClientThatNeverReadsHarmsNobody(t *testing.T) {
	const readers, before = 200, 25_000
	o := newOrg(t)
	o.fill(before) // more than the buffers of a connection hold
	o.start()
	streams := make([]*stream, readers)
	for i := range streams {
		streams[i] = o.listen(o.url)
	}
	for range 20 {
		_, err := o.attest() // so that what is needed once is there
		check(t, err)
	}
	memory := o.status("VmRSS")

	began := time.Now()
	mute := o.mute()
	var posted sync.Map // event id -> when its statement was posted
	posts, cut := 0, time.Duration(0)
	stalled, most := 0, 0 // the memory when the mute client's buffers are full, and the most after that
	for time.Since(began) < 20*time.Second && cut == 0 {
		at := time.Now()
		record, err := o.attest()
		check(t, err)
		posted.Store(record.Event, at)
		posts++
		time.Sleep(20 * time.Millisecond)
		if time.Since(began) > 3*time.Second {
			now := o.status("VmRSS")
			stalled, most = cmp.Or(stalled, now), max(most, now)
		}
		if !established(t, mute) {
			cut = time.Since(began)
		}
	}
	switch {
	case cut == 0:
		t.Errorf("after %s the client that does not read is still connected", time.Since(began))
	case cut < 9*time.Second || cut > 14*time.Second:
		t.Errorf("the client that does not read was cut off after %s, want about 10 s", cut)
	}
	if (stalled-memory)/1024 > 60 || (most-stalled)/1024 > 20 {
		t.Errorf("the server's memory was %d KiB without the client that does not read, %d when that was stuck, and "+
			"then %d at most", memory, stalled, most)
	}
	t.Logf("%d statements to %d readers; the mute one was cut off after %s; memory %d KiB without it, %d when it "+
		"was stuck, then %d at most",
		posts, readers, cut, memory, stalled, most)
	checkDelay(t, streams, &posted, posts)
}

// checkDelay reads every stream until it has told of all that was posted.
func checkDelay(t *testing.T, streams []*stream, posted *sync.Map, posts int) {
	t.Helper()
	slowest := time.Duration(0)
	for _, s := range streams {
		for got := 0; got < posts; {
			m := s.next(t)
			if at, ok := posted.Load(m.id); ok {
				slowest = max(slowest, m.at.Sub(at.(time.Time)))
				got++
			}
		}
	}
	t.Logf("the slowest event took %s from POST to arrival", slowest)
	if slowest > time.Second {
		t.Errorf("an event took %s from POST to arrival", slowest)
	}
}

// mute asks for everything there is, and never reads it.
func (o *org) mute() *net.TCPConn {
	o.t.Helper()
	conn := o.ask("?last_event_id=earliest")
	if conn == nil {
		o.t.FailNow()
	}
	o.t.Cleanup(func() { conn.Close() })
	check(o.t, conn.SetReadBuffer(4096))
	return conn
}

// fill records n statements past the server, signed by nobody.
func (o *org) fill(n int) {
	o.t.Helper()
	s, err := store.Open(o.t.Context(), o.database, store.Options{})
	check(o.t, err)
	defer s.Close()
	_, version, err := s.Keyring(o.t.Context(), "acme")
	check(o.t, err)
	var wg sync.WaitGroup
	const lanes = 64
	for lane := range lanes {
		wg.Go(func() {
			for i := lane; i < n; i += lanes {
				envelope := fmt.Appendf(nil, "%d", i)
				_, _, err := s.Record(o.t.Context(), "acme", "api", &attestation.Attestation{
					Commit: fmt.Sprintf("%040x", i%7), Predicate: "lint:" + strings.Repeat("x", 120),
					PredicateType: attestation.ResultPredicateType,
					Result:        ledger.Result{Status: ledger.Pass},
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

// established tells whether the server's end of the connection is still open.
// The client's own end would not know before it has read everything.
func established(t *testing.T, conn *net.TCPConn) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/net/tcp")
	check(t, err)
	server, us := procAddress(t, conn.RemoteAddr()), procAddress(t, conn.LocalAddr())
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[1] == server && f[2] == us {
			return f[3] == "01"
		}
	}
	return false
}

// procAddress writes an address as /proc/net/tcp does.
func procAddress(t *testing.T, a net.Addr) string {
	t.Helper()
	ap, err := netip.ParseAddrPort(a.String())
	check(t, err)
	ip := ap.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), ap.Port())
}

// Ten thousand clients that come and go leave nothing behind: no goroutine, no
// file, no thread, no memory.
func TestClientsThatGoLeaveNothingBehind(t *testing.T) {
	const clients, lanes = 10_000, 20
	o := newOrg(t)
	o.start()
	stay := o.listen(o.url) // keeps the org's feed running, as it would be
	o.comeAndGo(1000, lanes)
	o.settle()
	files, threads, memory := o.files(), o.status("Threads"), o.status("VmRSS")

	o.comeAndGo(clients, lanes)
	waitFor(t, "the server to close its files", 10*time.Second, func() bool { return o.files() <= files+1 })
	o.settle()
	t.Logf("files %d, then %d; threads %d, then %d; memory %d KiB, then %d",
		files, o.files(), threads, o.status("Threads"), memory, o.status("VmRSS"))
	if got := o.status("Threads"); got > threads+8 {
		t.Errorf("%d threads before, %d after", threads, got)
	}
	if grown := (o.status("VmRSS") - memory) / 1024; grown > 30 {
		t.Errorf("the memory grew by %d MiB", grown)
	}
	record, err := o.attest()
	check(t, err)
	if m := stay.next(t); m.id != record.Event {
		t.Errorf("the stream that stayed got %+v", m)
	}
	o.checkGoroutines()
}

// comeAndGo has n clients connect, wait for the stream's first line, and go:
// half of them with a farewell, half without.
func (o *org) comeAndGo(n, lanes int) {
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			buffer := make([]byte, 4096)
			for i := lane; i < n; i += lanes {
				conn := o.ask("")
				if conn == nil {
					return
				}
				if err := readUntil(conn, buffer, "retry: "); err != nil {
					o.t.Error(err)
				}
				if i/lanes%2 == 0 {
					conn.SetLinger(0)
				}
				conn.Close()
			}
		})
	}
	wg.Wait()
}

func readUntil(r io.Reader, buffer []byte, want string) error {
	for n := 0; ; {
		more, err := r.Read(buffer[n:])
		n += more
		if strings.Contains(string(buffer[:n]), want) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w after %q", err, buffer[:n])
		}
	}
}

// settle waits until the server's files are the same for a while.
func (o *org) settle() {
	for before := -1; before != o.files(); time.Sleep(300 * time.Millisecond) {
		before = o.files()
	}
}

// checkGoroutines ends the server so that it writes what each of its
// goroutines did.
func (o *org) checkGoroutines() {
	o.t.Helper()
	o.signal(syscall.SIGQUIT)
	dump := o.log.String()
	all := strings.Count(dump, "\ngoroutine ")
	streams := strings.Count(dump, "server.(*stream).serve(")
	o.t.Logf("%d goroutines, %d of them streams", all, streams)
	if all < 3 || all > 60 || streams != 1 {
		file := filepath.Join(os.TempDir(), "ledgerd-goroutines.txt")
		os.WriteFile(file, []byte(dump), 0o600)
		o.t.Errorf("%d goroutines, %d of them streams, want one: see %s", all, streams, file)
	}
}
