//go:build unix

package cmd_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
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

	"github.com/ledgerd/ledgerd/internal/must"
)

// Behind a load balancer, which stops sending requests when the server is not ready, a
// stop loses no response: every request is served, and every recorded attestation has a
// response.
func TestFaultTermUnderLoadLosesNoResponse(t *testing.T) {
	v := newVictim(t)
	key := v.addSigner("cn=ci,ou=build,o=acme")
	token := v.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	v.flags = []string{"--shutdown-delay", "3s"}
	v.start()

	var unready atomic.Bool
	var responses atomic.Int64
	var writers sync.WaitGroup
	for writer := range 16 {
		writers.Go(func() {
			for n := 0; !unready.Load(); n++ {
				if _, err := v.attest(token, key, fmt.Sprint(writer, " ", n)); err != nil {
					t.Errorf("request lost: %v", err)
					return
				}
				responses.Add(1)
			}
		})
	}
	must.Wait(t, "some attestations", func() bool { return responses.Load() >= 50 })
	must.OK(t, v.server.Process.Signal(syscall.SIGTERM))
	must.Wait(t, "/readyz to say 503", func() bool {
		response, body := get(t, v.url+"/readyz")
		if response.StatusCode == http.StatusServiceUnavailable && !response.Close {
			t.Errorf("the server is not ready, but the response does not close the connection: %s", body)
		}
		return response.StatusCode == http.StatusServiceUnavailable && strings.Contains(body, "draining")
	})
	unready.Store(true)
	writers.Wait()
	v.waitForExit(0)

	s := v.open()
	defer s.Close()
	if recorded := int64(len(replay(t, s))); recorded != responses.Load() {
		t.Errorf("%d attestations recorded, but %d responses", recorded, responses.Load())
	}
}

// Clients that do not finish their requests neither delay a stop nor make it fail.
func TestFaultHalfSentRequestsDoNotDelayTheStop(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	token := v.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	v.flags = []string{"--shutdown-delay", "0s"}
	v.start()
	header := "Host: ledger\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\n"
	body := v.dial("POST /v1/orgs/acme/repos/api/attestations HTTP/1.1\r\n" + header + "Content-Length: 1000\r\n\r\n{")
	v.dial("GET /healthz HTTP/1.1\r\n" + header + "Content-Length: 1000\r\n\r\n{") // the handler reads no body
	v.dial("POST /v1/orgs/acme/repos/api/attestations HTTP/1.1\r\n" + header + "Transfer-Encoding: chunked\r\n\r\n")
	v.dial("GET /healthz HTTP/1.1\r\n" + header + "\r\nGET /healthz HTTP/1.1\r\n" + header + "Content-Length: 9\r\n\r\n{")
	v.dial("GET /heal")
	v.dial("")
	get(t, v.url+"/healthz") // the server has accepted the connections above

	stopping := time.Now()
	must.OK(t, v.server.Process.Signal(syscall.SIGTERM))
	v.waitForExit(0)
	if took := time.Since(stopping); took > 14*time.Second {
		t.Errorf("the stop took %v, want about 2 s", took)
	}
	response, err := http.ReadResponse(bufio.NewReader(body), nil)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the half-sent attestation got %v, %v, want a 503", response, err)
	}
}

// SIGHUP reloads the log level. An invalid configuration changes nothing.
func TestFaultHangupReloadsTheLogLevel(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	configure := func(text string) {
		must.OK(t, os.WriteFile(config, []byte(text), 0o600))
		must.OK(t, v.server.Process.Signal(syscall.SIGHUP))
	}
	must.OK(t, os.WriteFile(config, []byte("log: {level: warn}\n"), 0o600))
	v.flags = []string{"--config", config}
	log := v.readLog()
	v.start()
	get(t, v.url+"/healthz?before")

	configure("log: {level: debug}\nmax_body: 1MiB\n")
	log.waitFor(t, `msg="configuration reloaded" log.level=debug`)
	log.waitFor(t, `settings=max_body`)
	get(t, v.url+"/healthz")
	log.waitFor(t, "path=/healthz")
	configure("log: {level: loud}\n")
	log.waitFor(t, `level=ERROR msg="configuration not reloaded`)
	get(t, v.url+"/readyz")
	log.waitFor(t, "path=/readyz")
	if requests := strings.Count(log.text(), "path=/healthz"); requests != 1 {
		t.Errorf("%d requests of /healthz logged, want the one after the level was debug:\n%s", requests, log.text())
	}

	must.OK(t, v.server.Process.Signal(syscall.SIGTERM))
	v.waitForExit(0)
	log.waitFor(t, "msg=stopping")
}

// If the reader of the log ends, the server keeps running.
func TestFaultClosedLogPipe(t *testing.T) {
	v := newVictim(t)
	v.flags = []string{"--log-level", "debug", "--shutdown-delay", "0s"}
	r, w, err := os.Pipe()
	must.OK(t, err)
	must.OK(t, r.Close())
	v.log = w
	v.start()
	must.OK(t, w.Close())
	for range 10 {
		get(t, v.url+"/healthz")
	}
	must.OK(t, v.server.Process.Signal(syscall.SIGTERM))
	v.waitForExit(0)
}

// If the reader of the log stops reading, requests are served, and the lines that are
// dropped are counted.
func TestFaultBlockedLogPipe(t *testing.T) {
	const requests, pathSize = 600, 4 << 10 // more than the pipe and the queue hold
	v := newVictim(t)
	v.flags = []string{"--log-level", "debug", "--shutdown-delay", "0s"}
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	v.log = w
	v.start()
	must.OK(t, w.Close())
	path := "/v1/" + strings.Repeat("x", pathSize)
	for range requests {
		get(t, v.url+path)
	}

	log := collect(r)
	log.waitFor(t, "log lines were dropped")
	must.OK(t, v.server.Process.Signal(syscall.SIGTERM))
	v.waitForExit(0)
	log.waitFor(t, "msg=stopping")
	_, after, _ := strings.Cut(log.text(), `msg="log lines were dropped`)
	_, number, _ := strings.Cut(after, "lines=")
	var dropped int
	fmt.Sscan(number, &dropped)
	if written := strings.Count(log.text(), path); dropped == 0 || written+dropped < requests {
		t.Errorf("%d requests logged and %d lines dropped, want at least %d together", written, dropped, requests)
	}
}

// What a crash prints has the stacks of all goroutines, but nothing of a request that is
// being handled.
func TestFaultCrashOutputHasNoSecret(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	token := v.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	v.prepare = func(server *exec.Cmd) { server.Env = append(server.Env, "GOTRACEBACK=system") }
	output := must.Get(os.Create(filepath.Join(t.TempDir(), "output")))(t)
	defer output.Close()
	v.log = output
	v.start()
	conn := v.dial("POST /v1/orgs/acme/repos/api/attestations HTTP/1.1\r\nHost: ledger\r\nExpect: 100-continue\r\n" +
		"Authorization: Bearer " + token + "\r\nCookie: ledgerd=opensesame\r\nContent-Type: application/json\r\n" +
		"Content-Length: 1000\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q, %v, want a handler that reads the body", line, err)
	}
	_, err = io.WriteString(conn, `{"payload":"hunter2`)
	must.OK(t, err)

	must.OK(t, v.server.Process.Signal(syscall.SIGQUIT))
	v.waitForExit(2)
	text := must.Read(t, output.Name())
	if !bytes.Contains(text, []byte("wire.ReadBody(")) {
		t.Errorf("the handler is not in what the crash printed:\n%s", text)
	}
	for _, secret := range []string{token, "opensesame", "hunter2"} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the crash printed %s", secret)
		}
	}
}

// waitForExit waits until the server has ended and checks its exit status.
func (v *victim) waitForExit(status int) {
	v.t.Helper()
	v.server.Wait()
	if got := v.server.ProcessState.ExitCode(); got != status {
		v.t.Errorf("exit status %d, want %d", got, status)
	}
}

// dial sends text to the server and leaves the connection open.
func (v *victim) dial(text string) net.Conn {
	v.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	must.OK(v.t, err)
	v.t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, text)
	must.OK(v.t, err)
	return conn
}

// A serverLog collects the log of a server.
type serverLog struct {
	mu   sync.Mutex
	read strings.Builder
}

// readLog makes the next start of the server write its log to the result.
func (v *victim) readLog() *serverLog {
	v.t.Helper()
	r, w, err := os.Pipe()
	must.OK(v.t, err)
	v.t.Cleanup(func() { w.Close() })
	v.log = w
	return collect(r)
}

// collect reads a log until its end.
func collect(r *os.File) *serverLog {
	log := &serverLog{}
	go func() {
		defer r.Close()
		for lines := bufio.NewReader(r); ; {
			line, err := lines.ReadString('\n')
			log.mu.Lock()
			log.read.WriteString(line)
			log.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return log
}

func (l *serverLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read.String()
}

// waitFor waits until the log contains a text.
func (l *serverLog) waitFor(t *testing.T, text string) {
	t.Helper()
	must.Wait(t, "the log to have "+text, func() bool { return strings.Contains(l.text(), text) })
}

// get returns the response to a GET request, and its body.
func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	response, err := http.Get(url)
	must.OK(t, err)
	defer response.Body.Close()
	body := must.Get(io.ReadAll(response.Body))(t)
	return response, string(body)
}
