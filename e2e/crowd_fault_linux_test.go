package e2e_test

import (
	"crypto/ed25519"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// crowdMemory is the maximum resident memory of a server with any of these crowds, in
// KiB. It is about 250 MiB, and a third more if other programs keep the processors from the garbage
// collector. Without a budget it would be gigabytes.
const crowdMemory = 512 << 10

// A crowd is a number of open connections.
type crowd struct {
	t     *testing.T
	mu    sync.Mutex
	conns []net.Conn
}

// connect opens n connections and sends text on each. The server may close them.
func (o *org) connect(n int, text string) *crowd {
	o.t.Helper()
	c := &crowd{t: o.t}
	o.t.Cleanup(c.close)

	const workers = 50
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := worker; i < n; i += workers {
				conn, err := net.Dial("tcp", o.address)
				if err != nil {
					o.t.Errorf("connection %d: %v", i, err)
					return
				}

				conn.(*net.TCPConn).SetReadBuffer(4096)
				fmt.Fprint(conn, text) // fails if the server has closed the connection
				c.mu.Lock()
				c.conns = append(c.conns, conn)
				c.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return c
}

func (c *crowd) close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

// checkServed checks that attestations are recorded and that the server's memory
// stays within crowdMemory.
func (o *org) checkServed() {
	o.t.Helper()
	for range 50 {
		if _, err := o.attest(); err != nil {
			o.t.Errorf("attest in the crowd: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	peak := o.status("VmHWM")
	o.t.Logf("resident memory: at most %d MiB", peak>>10)
	if peak > crowdMemory {
		o.t.Errorf("resident memory: at most %d KiB, want %d", peak, crowdMemory)
	}
}

// 1,000 connections that announce large bodies and send 250 bytes of them cost what
// they sent.
func TestFaultHalfSentBodies(t *testing.T) {
	testenv.From(t, testenv.Push, "waits for timeouts")
	o := newOrg(t)
	o.start()
	head := fmt.Sprintf("POST /v1/orgs/acme/repos/api/attestations HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", o.address, o.token, 4<<20)
	o.connect(1000, head+`{"payload":"`+strings.Repeat("A", 238))
	o.checkServed()
}

// 400 clients that request large responses and do not read them share a budget.
func TestFaultUnreadResponses(t *testing.T) {
	testenv.From(t, testenv.Push, "waits for timeouts")
	o := newOrg(t)
	o.start()
	large := o.attestLarge(2 << 20)
	reader := o.ledgerd("token", "create", "--org", "acme", "--name", "crowd", "--scope", "read")
	o.connect(400, fmt.Sprintf("GET /v1/orgs/acme/repos/api/attestations/%s/envelope HTTP/1.1\r\nHost: %s\r\n"+
		"Authorization: Bearer %s\r\n\r\n", large.ID, o.address, reader))
	o.checkServed()
}

// attestLarge records an attestation with an envelope of about size bytes.
func (o *org) attestLarge(size int) ledger.AttestationRecord {
	o.t.Helper()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", fmt.Sprintf("%040x", 7),
		attestation.ResultPredicate{Predicate: "test:large", Result: ledger.Result{Status: ledger.Pass},
			Annotations: map[string]string{"log": strings.Repeat("x", size*3/4)}})
	must.OK(o.t, err)
	envelope := must.Get(attestation.SignDSSE(ed25519.PrivateKey(o.key), payload))(o.t)
	c := must.Get(client.New(o.url, client.Options{Token: o.token}))(o.t)
	record, _, err := c.Record(o.t.Context(), "acme", "api", envelope)
	must.OK(o.t, err)
	return record
}

// 2,000 connections whose requests never end do not lock out others, although the
// server may open far fewer files.
func TestFaultSlowLoris(t *testing.T) {
	testenv.From(t, testenv.Push, "waits for timeouts")
	o := newOrg(t)
	o.startWith(func(serve *exec.Cmd) *exec.Cmd {
		return exec.Command("sh", append([]string{"-c", `ulimit -n 600; exec "$@"`, "sh"}, serve.Args...)...)
	})
	c := o.connect(2000, "GET / HTTP/1.1\r\nHost: "+o.address+"\r\n")
	stop := make(chan struct{})
	var trickle sync.WaitGroup
	defer trickle.Wait()
	defer close(stop)
	trickle.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
			for _, conn := range c.conns {
				fmt.Fprint(conn, "A: b\r\n") // fails if the server has closed the connection
			}
		}
	})

	o.checkServed()
	if open := o.openFiles(); open > 600 {
		t.Errorf("%d open files", open)
	}
	if log := o.log.String(); strings.Contains(log, "too many open files") {
		t.Errorf("the server ran out of files:\n%s", log)
	}
}
