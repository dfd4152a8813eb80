package e2e_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ledgerd": func() { os.Exit(cmd.Execute()) },
	})
}

// need skips the test where a program is missing, and fails it in CI, which
// must not pass without.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", program)
		}
		t.Skipf("%s is not installed", program)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An org is acme with its repo api, on a database of its own, and the real
// server on it, always at the same address.
type org struct {
	t        *testing.T
	database string
	address  string // of the server
	url      string
	token    string   // may write
	env      []string // variables of the server's and the commands' environment
	keyFile  string
	key      ed25519.PrivateKey // of cn=ci,ou=build,o=acme

	server *exec.Cmd
	log    journal      // what the server wrote to standard error
	serial atomic.Int64 // of statements
}

// newOrg does not start the server yet.
func newOrg(t *testing.T) *org {
	t.Helper()
	o := newEmptyLedger(t)
	o.ledgerd("org", "create", "acme")
	o.ledgerd("repo", "create", "acme/api")
	o.ledgerd("identity", "add", "--org", "acme", "--key", o.keyFile+".pub", "--dn", "cn=ci,ou=build,o=acme")
	o.token = o.ledgerd("token", "create", "--org", "acme", "--name", "e2e", "--scope", "write")
	return o
}

// newEmptyLedger returns an org that has yet to be made: there is no database,
// and nobody trusts the key or has the token.
func newEmptyLedger(t *testing.T) *org {
	t.Helper()
	dir := t.TempDir()
	o := &org{t: t, database: filepath.Join(dir, "ledger.db"), address: freeAddress(t),
		keyFile: filepath.Join(dir, "ci.key")}
	o.url = "http://" + o.address
	public, private, err := ed25519.GenerateKey(nil)
	check(t, err)
	o.key = private
	der, err := x509.MarshalPKIXPublicKey(public)
	check(t, err)
	check(t, os.WriteFile(o.keyFile+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	der, err = x509.MarshalPKCS8PrivateKey(private)
	check(t, err)
	check(t, os.WriteFile(o.keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return o
}

// A journal is what a process has written so far.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Reset()
}

// freeAddress returns one that outgoing connections never take, so that the
// server finds it free again when it is started anew.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			check(t, listener.Close())
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// ledgerd runs a command on the database, beside the server, and returns what
// it printed.
func (o *org) ledgerd(args ...string) string {
	o.t.Helper()
	command := exec.Command("ledgerd", append(args, "--database", o.database)...)
	command.Env = append(os.Environ(), o.env...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		o.t.Fatalf("ledgerd %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// start starts the server and waits until it listens.
func (o *org) start() {
	o.t.Helper()
	o.server = exec.Command("ledgerd", "serve", "--listen", o.address, "--database", o.database)
	o.server.Env = append(os.Environ(), o.env...)
	o.log.Reset()
	o.server.Stderr = &o.log
	stdout, err := o.server.StdoutPipe()
	check(o.t, err)
	check(o.t, o.server.Start())
	o.t.Cleanup(o.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		o.server.Wait()
		o.t.Fatalf("serve printed %q: %v\n%s", line, err, o.log.String())
	}
}

// kill ends the server as a power failure would.
func (o *org) kill() { o.signal(syscall.SIGKILL) }

// signal sends a signal to the server and waits for its end.
func (o *org) signal(s os.Signal) {
	o.server.Process.Signal(s)
	o.server.Wait()
}

// attest posts a new statement about one of a few commits.
func (o *org) attest() (ledger.AttestationRecord, error) {
	var record ledger.AttestationRecord
	n := o.serial.Add(1)
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", fmt.Sprintf("%040x", n%7),
		attestation.ResultPredicate{
			Predicate:   "test:go",
			Result:      ledger.Result{Status: ledger.Pass, DurationMS: 12},
			Annotations: map[string]string{"serial": fmt.Sprint(n)},
		})
	if err != nil {
		return record, err
	}
	envelope, err := attestation.SignDSSE(o.key, payload)
	if err != nil {
		return record, err
	}
	c, err := client.New(o.url, client.Options{Token: o.token})
	if err != nil {
		return record, err
	}
	record, _, err = c.Record(o.t.Context(), "acme", "api", envelope)
	return record, err
}

// write attests until the context ends, whether or not the server is there.
func (o *org) write(ctx context.Context, pause time.Duration) {
	for ctx.Err() == nil {
		if _, err := o.attest(); err == nil {
			time.Sleep(pause)
		} else {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// history returns the ids of all the org's events, as the server lists them.
func (o *org) history() []string {
	o.t.Helper()
	c, err := client.New(o.url, client.Options{Token: o.token})
	check(o.t, err)
	var ids []string
	for body, err := range c.Events(o.t.Context(), "acme", client.EventFilter{}) {
		check(o.t, err)
		var event struct {
			ID string `json:"id"`
		}
		check(o.t, json.Unmarshal(body, &event))
		ids = append(ids, event.ID)
	}
	return ids
}

// A message is one event as it came over a stream.
type message struct {
	event, id, data string
	at              time.Time
}

// readStream calls take for each message, and comment, if it is not nil, for
// each comment, until the stream ends.
func readStream(r io.Reader, take func(message), comment func()) error {
	var m message
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); {
		case field == "event":
			m.event = value
		case field == "id":
			m.id = value
		case field == "data":
			m.data = value
		case lines.Text() == "":
			if m.data != "" {
				m.at = time.Now()
				take(m)
			}
			m = message{}
		case strings.HasPrefix(field, ":") && comment != nil:
			comment()
		}
	}
	return lines.Err()
}

// A stream is the live stream as a plain HTTP client of Go's sees it.
type stream struct {
	messages chan message // closed when it ends
}

// listen opens a stream, and returns when the server has answered.
func (o *org) listen(url string) *stream {
	o.t.Helper()
	return o.listenAs(o.token, url)
}

func (o *org) listenAs(token, url string) *stream {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, url+"/v1/orgs/acme/events", nil)
	check(o.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/event-stream")
	// Each on a connection of its own.
	response, err := (&http.Transport{ResponseHeaderTimeout: 10 * time.Second}).RoundTrip(request)
	check(o.t, err)
	if response.StatusCode != http.StatusOK {
		o.t.Fatalf("the stream: %s", response.Status)
	}
	o.t.Cleanup(func() { response.Body.Close() })
	s := &stream{make(chan message, 10_000)}
	go func() {
		defer close(s.messages)
		readStream(response.Body, func(m message) { s.messages <- m }, nil) // its end is what tests look at
	}()
	return s
}

// next waits for the next message.
func (s *stream) next(t *testing.T) message {
	t.Helper()
	select {
	case m, ok := <-s.messages:
		if !ok {
			t.Fatal("the stream has ended")
		}
		return m
	case <-time.After(20 * time.Second):
		t.Fatal("no message came for 20 s")
	}
	return message{}
}

func waitFor(t *testing.T, what string, most time.Duration, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain for %s", most, what)
		}
	}
}
