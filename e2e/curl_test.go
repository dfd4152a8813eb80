package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCurl reads the stream as curl prints it, line by line.
func TestCurl(t *testing.T) {
	need(t, "curl")
	t.Parallel() // it waits for most of its time
	o := newOrg(t)
	o.start()
	headers := filepath.Join(t.TempDir(), "headers")
	next := o.curl(headers)
	if got := next(5 * time.Second); got != "retry: 3000" {
		t.Errorf("the first line is %q, want retry: 3000", got)
	}
	for next(5*time.Second) != "" {
		// what else it begins with
	}
	checkHead(t, headers)

	record, err := o.attest()
	check(t, err)
	ids := o.history()
	at, sha := record.RecordedAt, record.Commit
	for _, want := range []string{
		"event: attestation",
		"id: " + ids[0],
		fmt.Sprintf(`data: {"commit":%q,"predicate":"test:go","identity":"ci","repo":"api","timestamp":%q,`+
			`"result":{"status":"pass","duration_ms":12}}`, sha, at),
		"",
		"event: state",
		"id: " + ids[1],
		fmt.Sprintf(`data: {"commit":%q,"from":"DRAFT","to":"VALIDATING","repo":"api","timestamp":%q}`, sha, at),
		"",
	} {
		if got := next(5 * time.Second); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for range ids[2:] {
		for next(5*time.Second) != "" {
			// the other states on the way
		}
	}
	// The 15 s that are promised, and a little for a busy machine.
	if got := next(15*time.Second + 500*time.Millisecond); !strings.HasPrefix(got, ":") {
		t.Errorf("after silence came %q, want a comment", got)
	}
}

// checkHead checks the head of the stream's answer, which curl left in a file.
func checkHead(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	check(t, err)
	head := strings.ToLower(string(text))
	for _, want := range []string{"content-type: text/event-stream", "cache-control: no-cache, no-transform",
		"x-accel-buffering: no"} {
		if !strings.Contains(head, want) {
			t.Errorf("no %s in the head:\n%s", want, head)
		}
	}
	if strings.Contains(head, "content-encoding") {
		t.Errorf("the stream is compressed:\n%s", head)
	}
}

// curl starts curl on the stream. What it returns waits for a line that curl
// prints; the head of the answer goes into a file.
func (o *org) curl(head string) (next func(most time.Duration) string) {
	t := o.t
	t.Helper()
	command := exec.Command("curl", "-sN", "--compressed", "-D", head, "-H", "Authorization: Bearer "+o.token,
		"-H", "Accept: text/event-stream", o.url+"/v1/orgs/acme/events")
	stdout, err := command.StdoutPipe()
	check(t, err)
	check(t, command.Start())
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
	return func(most time.Duration) string {
		t.Helper()
		select {
		case line := <-lines:
			return line
		case <-time.After(most):
			t.Fatalf("curl printed nothing for %s", most)
		}
		return ""
	}
}
