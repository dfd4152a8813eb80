package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	"github.com/ledgerd/ledgerd/e2e/internal/daemon"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("LEDGERD_CI", "off")                    // no test is about the CI job that runs it
	_ = os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin") // where Debian has nginx
	_ = flag.Set("test.parallel", "4")                    // most tests wait for browsers and servers
	testenv.UseMemory()
	testscript.Main(tests{m}, map[string]func(){
		"ledgerd":      func() { os.Exit(cmd.Execute()) },
		"ledgerd-fast": runFast,
	})
}

// tests runs the tests, and stops what they share.
type tests struct{ *testing.M }

func (m tests) Run() int {
	defer func() { chromium.stop() }()
	return m.M.Run()
}

// TestOnPostgreSQL runs the tests again, with ledgers in databases of PostgreSQL instead of files.
func TestOnPostgreSQL(t *testing.T) {
	pgtest.RunAgain(t, map[string]string{
		"it is about files": "TestBackupsUnderLoad|TestLitestream|TestFaultDiskFails|TestInstallDocs|TestRelease.*",
		"it starts no server, or one with a ledger of its own": "TestWebDemo|TestAlerts|TestGeneratedGoClient",
		"it is about connections, which no engine sees": "TestACME|TestSystemd.*|TestFaultHalfSentBodies|" +
			"TestFaultUnreadResponses|TestFaultSlowLoris|TestDisconnectedClientsLeakNothing|TestStalledClientIsDisconnected",
		"it is about what browsers and receivers do with answers, not about what the server answers": "TestWebScreenshots|" +
			"TestWebPagesAreAccessible|TestWeb.*BelowABasePath|TestWebCopyButtonsRestoreTheirNames|" +
			"TestWebCorruptionCheckVerifiesEveryKey|TestWebCorruptionCheckFindsTampering|TestDocumentedWebhookReceivers",
		"it takes long, and e2e/fault has replicas": "TestFaultFortyHours|TestFaultFlatness",
	})
}

// An org is the org acme with its repo api, in its own database, served by the
// real binary. The server's address survives restarts.
type org struct {
	t        *testing.T
	database string   // path of the database file, or URL of the PostgreSQL database
	folder   string   // has the files of the org
	address  string   // host:port of the server
	url      string   // base URL of the server
	token    string   // scope write
	env      []string // added to the environment of the server and of commands
	keyFile  string
	key      ed25519.PrivateKey // of cn=ci,ou=build,o=acme

	server *exec.Cmd
	log    testenv.Buffer // standard error of the server
	serial atomic.Int64   // makes statements distinct
}

// newOrg creates the org, its key and its token, and does not start the server.
func newOrg(t *testing.T) *org {
	t.Helper()
	o := newEmptyLedger(t)
	o.ledgerd("org", "create", "acme")
	o.ledgerd("repo", "create", "acme/api")
	o.ledgerd("identity", "add", "--org", "acme", "--key", o.keyFile+".pub", "--dn", "cn=ci,ou=build,o=acme")
	o.token = o.ledgerd("token", "create", "--org", "acme", "--name", "e2e", "--scope", "write")
	return o
}

// newEmptyLedger returns an org that does not exist yet: it has a key and an
// address, but no database and no token.
func newEmptyLedger(t *testing.T) *org {
	t.Helper()
	dir := t.TempDir()
	database := must.Get(pgtest.NewLocation(t.Cleanup, dir, "ledger.db"))(t)
	keys := must.Get(pgtest.NewKeys(dir))(t)
	o := &org{t: t, database: database, folder: dir, address: freeAddress(t), env: keys,
		keyFile: filepath.Join(dir, "ci.key")}
	o.url = "http://" + o.address
	public, private, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	o.key = private

	must.OK(t, os.WriteFile(o.keyFile+".pub", []byte(must.PublicPEM(t, public)), 0o600))
	must.OK(t, os.WriteFile(o.keyFile, []byte(must.PrivatePEM(t, private)), 0o600))
	return o
}

// freeAddress returns an address that stays free while the server restarts.
func freeAddress(t *testing.T) string {
	t.Helper()
	address := must.Get(testenv.FreeAddress())(t)
	return address
}

// ledgerd runs a command on the database and returns its trimmed standard
// output. The server may be running. A command with variables has a process of its own.
func (o *org) ledgerd(args ...string) string {
	o.t.Helper()
	args = append(args, "--database", o.database)
	if len(o.env) == 0 {
		var stdout, stderr bytes.Buffer
		if status := cmd.Main(o.t.Context(), args, strings.NewReader(""), &stdout, &stderr); status != 0 {
			o.t.Fatalf("ledgerd %s: exit status %d: %s", strings.Join(args, " "), status, &stderr)
		}
		return strings.TrimSpace(stdout.String())
	}

	command := exec.Command("ledgerd", args...)
	command.Env = append(os.Environ(), o.env...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		o.t.Fatalf("ledgerd %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// start starts the server and returns when it listens.
func (o *org) start() { o.startWith(func(serve *exec.Cmd) *exec.Cmd { return serve }) }

// startWith starts the server with the command that wrap returns.
func (o *org) startWith(wrap func(serve *exec.Cmd) *exec.Cmd) {
	o.t.Helper()
	o.server = wrap(exec.Command("ledgerd", "serve", "--listen", o.address, "--database", o.database))
	// What a test does in seconds, a token may do for longer.
	o.server.Env = append(append(os.Environ(), "LEDGERD_LIMITS_REQUESTS=0"), o.env...)
	o.log.Reset()
	must.OK(o.t, daemon.Start(o.server, &o.log))
	o.t.Cleanup(o.kill)
}

// kill stops the server with SIGKILL.
func (o *org) kill() { o.signal(syscall.SIGKILL) }

// signal sends a signal to the server and waits until it exits.
func (o *org) signal(s os.Signal) {
	o.server.Process.Signal(s)
	o.server.Wait()
}

// attest records a new statement about one of seven commits.
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

// write records attestations until the context is done. It ignores errors, so
// that the server may restart.
func (o *org) write(ctx context.Context, pause time.Duration) {
	for ctx.Err() == nil {
		if _, err := o.attest(); err == nil {
			time.Sleep(pause)
		} else {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// Attesters are clients that record attestations at the same time.
type attesters struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	events  []string // that were answered
}

// attestAtOnce starts a number of attesters. An error fails the test.
func (o *org) attestAtOnce(clients int) *attesters {
	ctx, cancel := context.WithCancel(o.t.Context())
	c := &attesters{cancel: cancel}
	for range clients {
		c.running.Go(func() {
			for ctx.Err() == nil {
				record, err := o.attest()
				if err != nil {
					o.t.Error(err)
					return
				}
				c.mu.Lock()
				c.events = append(c.events, record.Event)
				c.mu.Unlock()
			}
		})
	}
	return c
}

// answered returns the IDs of the events of all attestations that were answered so far.
func (c *attesters) answered() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// stop waits for the last answers. It returns the IDs of the events of all attestations.
func (c *attesters) stop() []string {
	c.cancel()
	c.running.Wait()
	return c.answered()
}

// history returns the IDs of all events of the org, oldest first.
func (o *org) history() []string {
	o.t.Helper()
	c := must.Get(client.New(o.url, client.Options{Token: o.token}))(o.t)

	var ids []string
	for body, err := range c.Events(o.t.Context(), "acme", client.EventFilter{}) {
		must.OK(o.t, err)
		var event struct {
			ID string `json:"id"`
		}
		must.OK(o.t, json.Unmarshal(body, &event))
		ids = append(ids, event.ID)
	}
	return ids
}

// A message is an event received over a stream.
type message struct {
	event, id, data string
	receivedAt      time.Time
}

// readStream reads a stream to its end. It calls receive for each message and, if it is
// not nil, comment for each comment.
func readStream(r io.Reader, receive func(message), comment func()) error {
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
				m.receivedAt = time.Now()
				receive(m)
			}
			m = message{}

		case strings.HasPrefix(field, ":") && comment != nil:
			comment()
		}
	}
	return lines.Err()
}

// A stream is a connection to the live stream.
type stream struct {
	messages chan message // closed when the stream ends
}

// listen opens a stream and returns when the response has begun.
func (o *org) listen(url string) *stream {
	o.t.Helper()
	return o.listenAs(o.token, url)
}

// listenAs is listen with another token.
func (o *org) listenAs(token, url string) *stream {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, url+"/v1/orgs/acme/events", nil)
	must.OK(o.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/event-stream")

	// Its own Transport, so that each stream has its own connection.
	response, err := (&http.Transport{ResponseHeaderTimeout: 10 * time.Second}).RoundTrip(request)
	must.OK(o.t, err)
	if response.StatusCode != http.StatusOK {
		o.t.Fatalf("open stream: %s", response.Status)
	}
	o.t.Cleanup(func() { response.Body.Close() })

	s := &stream{make(chan message, 10_000)}
	go func() {
		defer close(s.messages)
		readStream(response.Body, func(m message) { s.messages <- m }, nil) // tests check the end, not the error
	}()
	return s
}

// next returns the next message. It fails the test after 20 s.
func (s *stream) next(t *testing.T) message {
	t.Helper()
	select {
	case m, ok := <-s.messages:
		if !ok {
			t.Fatal("stream ended")
		}
		return m
	case <-time.After(20 * time.Second):
		t.Fatal("no message for 20 s")
	}
	return message{}
}

// waitFor polls done until it returns true, and fails the test after the timeout.
func waitFor(t *testing.T, what string, timeout time.Duration, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %s waiting for %s", timeout, what)
		}
	}
}
