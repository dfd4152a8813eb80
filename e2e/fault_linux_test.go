package e2e_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/e2e/internal/daemon"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// inject makes system calls of the server fail until stop is called. It skips the test
// if strace is missing or may not attach to the server.
func (o *org) inject(fault string) (stop func()) {
	o.t.Helper()
	detach, err := daemon.Inject(o.server.Process.Pid, fault)
	if err != nil {
		testenv.Missing(o.t, err.Error())
	}
	return func() { must.OK(o.t, detach()) }
}

// getAPI returns the status and the body of a GET request.
func (o *org) getAPI(path string) (int, string) {
	o.t.Helper()
	request := must.Get(http.NewRequest(http.MethodGet, o.url+path, nil))(o.t)
	request.Header.Set("Authorization", "Bearer "+o.token)
	response, err := http.DefaultClient.Do(request)
	must.OK(o.t, err)
	defer response.Body.Close()
	body := must.Get(io.ReadAll(response.Body))(o.t)
	return response.StatusCode, string(body)
}

// While the disk fails, requests that need it get 503 with a reason, /readyz says so,
// and the log has a line for the beginning and one for the end. Then everything works
// again without a restart.
func TestFaultDiskFails(t *testing.T) {
	testenv.Need(t, "strace")
	const commits = "/v1/orgs/acme/repos/api/commits"
	faults := []struct {
		name, fault   string
		reads, writes string // part of the detail; empty if they work
	}{
		{"full disk", "pwrite64:error=ENOSPC", "", "the disk is full"},
		{"disk that cannot be written", "pwrite64:error=EIO", "", "cannot be read or written"},
		{"disk that cannot be flushed", "fsync,fdatasync:error=EIO", "", "cannot be read or written"},
		{"disk that cannot be read", "pread64:error=EIO", "cannot be read or written", "cannot be read or written"},
	}

	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // mostly waits
			o := newOrg(t)
			o.start()
			_, err := o.attest()
			must.OK(t, err)

			stop := o.inject(f.fault)
			_, err = o.attest()
			var e *client.Error
			if !errors.As(err, &e) || e.Status != 503 || e.Problem.Code != ledger.CodeStorageUnavailable ||
				!strings.Contains(e.Problem.Detail, f.writes) || strings.Contains(e.Problem.Detail, "malformed") {
				t.Errorf("write: got %v, want 503 because %s", err, f.writes)
			}
			wantRead := map[bool]int{true: 200, false: 503}[f.reads == ""]
			if status, body := o.getAPI(commits); status != wantRead || !strings.Contains(body, f.reads) ||
				strings.Contains(body, "malformed") {
				t.Errorf("read: got %d: %s, want %d with %q", status, body, wantRead, f.reads)
			}
			if status, body := o.getAPI("/readyz"); status != 503 {
				t.Errorf("/readyz: got %d: %s, want 503", status, body)
			}
			time.Sleep(4 * time.Second) // several attempts of the background tasks

			stop()
			waitFor(t, "the server to be ready", time.Minute, func() bool {
				status, _ := o.getAPI("/readyz")
				return status == 200
			})
			_, err = o.attest()
			must.OK(t, err)
			if status, body := o.getAPI(commits); status != 200 {
				t.Errorf("read: got %d: %s, want 200", status, body)
			}
			waitFor(t, "the end of the incident in the log", time.Minute, func() bool {
				return strings.Contains(o.log.String(), "storage recovered")
			})
			if n := strings.Count(o.log.String(), "\n"); n > 20 {
				t.Errorf("the log has %d lines, want at most 20:\n%s", n, o.log.String())
			}
			t.Log(o.log.String())
		})
	}
}
