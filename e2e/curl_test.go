package e2e_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// TestCurl checks the stream line by line, as curl prints it.
func TestCurl(t *testing.T) {
	testenv.Need(t, "curl")
	t.Parallel() // mostly waits
	o := newOrg(t)
	o.start()
	headers := filepath.Join(t.TempDir(), "headers")
	next := o.curl(headers)
	if got := next(5 * time.Second); got != "retry: 3000" {
		t.Errorf("first line is %q, want retry: 3000", got)
	}
	for next(5*time.Second) != "" {
		// the rest of the preamble
	}
	checkHeader(t, headers)

	record := must.Get(o.attest())(t)
	ids := o.history()
	recordedAt, sha := record.RecordedAt, record.Commit
	for _, want := range []string{
		"event: attestation",
		"id: " + ids[0],
		fmt.Sprintf(`data: {"commit":%q,"predicate":"test:go","identity":"ci","repo":"api","timestamp":%q,`+
			`"result":{"status":"pass","duration_ms":12}}`, sha, recordedAt),
		"",
		"event: state",
		"id: " + ids[1],
		fmt.Sprintf(`data: {"commit":%q,"from":"DRAFT","to":"VALIDATING","repo":"api","timestamp":%q}`, sha, recordedAt),
		"",
	} {
		if got := next(5 * time.Second); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for range ids[2:] {
		for next(5*time.Second) != "" {
			// the transitions that follow
		}
	}

	// docs/stream.md promises a comment every 15 s; allow some delay on a busy machine.
	if got := next(15*time.Second + 500*time.Millisecond); !strings.HasPrefix(got, ":") {
		t.Errorf("the idle stream sent %q, want a comment", got)
	}
}

// checkHeader checks the header of the stream's response, which curl wrote to
// file.
func checkHeader(t *testing.T, file string) {
	t.Helper()
	text := must.Read(t, file)
	header := strings.ToLower(string(text))
	for _, want := range []string{"content-type: text/event-stream", "cache-control: no-cache, no-transform",
		"x-accel-buffering: no"} {
		if !strings.Contains(header, want) {
			t.Errorf("header lacks %s:\n%s", want, header)
		}
	}
	if strings.Contains(header, "content-encoding") {
		t.Errorf("the stream is compressed:\n%s", header)
	}
}

// curl starts curl on the stream; curl writes the header of the response to
// headerFile. next returns the next line that curl prints, and fails the test
// after the timeout.
func (o *org) curl(headerFile string) (next func(timeout time.Duration) string) {
	t := o.t
	t.Helper()
	command := exec.Command("curl", "-sN", "--compressed", "-D", headerFile, "-H", "Authorization: Bearer "+o.token,
		"-H", "Accept: text/event-stream", o.url+"/v1/orgs/acme/events")
	stdout := must.Get(command.StdoutPipe())(t)
	must.OK(t, command.Start())
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})

	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(stdout); in.Scan(); {
			lines <- in.Text()
		}
	}()

	return func(timeout time.Duration) string {
		t.Helper()
		select {
		case line := <-lines:
			return line
		case <-time.After(timeout):
			t.Fatalf("curl printed nothing for %s", timeout)
		}
		return ""
	}
}
