package e2e_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A server with a restored database signs nothing, and says why. A new epoch of the log is
// signed with a new key, and names what the old log had. The old log can still be read.
func TestRestoredDatabaseNeedsANewEpoch(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	t.Parallel()
	o := newLogOrg(t)
	o.start()
	record := func(n int) {
		for range n {
			_, err := o.attest()
			must.OK(t, err)
		}
	}
	record(30)
	old := o.reader()
	first, err := old.checkpoint()
	must.OK(t, err)
	o.signal(syscall.SIGTERM)
	restore := o.keep()
	o.start()
	record(100)
	o.reader()
	verify := o.verifier()
	verify(0, "consistency  not checked: first contact", "repo acme/api ✓", "--rederive")
	o.signal(syscall.SIGTERM)
	newest := must.Read(t, filepath.Join(o.folder, "ledger.db-keys", "acme.1.checkpoint"))

	restore()
	o.start()
	record(10)
	time.Sleep(1500 * time.Millisecond) // more than the interval of signing
	if c, err := old.checkpoint(); err != nil || c != first {
		t.Errorf("the restored database has the checkpoint %+v, %v, want %+v", c, err, first)
	}
	state, err := o.logState()
	must.OK(t, err)
	ready, err := getAs(t, o.token)(o.url + "/readyz")
	must.OK(t, err)
	if !strings.Contains(state.Problem, "older than the log") || !strings.Contains(string(ready), `"unsigned":1`) ||
		strings.Count(o.log.String(), "THE TRANSPARENCY LOG IS NOT SIGNED") != 1 {
		t.Errorf("problem: %q, readiness: %s, log:\n%s", state.Problem, ready, o.log.String())
	}

	verify(4, "consistency  FAILED: ROLLBACK", "repo acme/api ✗ NOT VERIFIED")

	// However often the command is interrupted, it replaces the log once.
	newEpoch := func() (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		command := exec.Command("ledgerd", "log", "new-epoch", "acme", "--reason", "restored", "--database", o.database)
		command.Env = append(os.Environ(), o.env...)
		command.Stdout, command.Stderr = &out, &out
		must.OK(t, command.Start())
		return command, &out
	}
	for range 10 {
		command, _ := newEpoch()
		time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond))))
		command.Process.Kill()
		command.Wait()
	}
	command, out := newEpoch()
	if err := command.Wait(); err != nil && !strings.Contains(out.String(), "already begun epoch 2") &&
		!strings.Contains(out.String(), "is in order") {
		t.Fatalf("ledgerd log new-epoch: %v\n%s", err, out)
	}
	waitFor(t, "the new log", 10*time.Second, func() bool {
		state, err = o.logState()
		return err == nil && strings.HasSuffix(state.Origin, "/log/2")
	})
	record(10)
	renewed := o.reader()
	renewed.url += "/2"
	state, err = o.logState()
	must.OK(t, err)
	if state.Problem != "" || state.Origin != "ledger.example.com/v1/orgs/acme/log/2" || state.Key == old.vkey {
		t.Errorf("the log is %+v", state)
	}
	entries, err := renewed.check()
	must.OK(t, err)
	if c, err := old.checkpoint(); err != nil || c != first {
		t.Errorf("the old log has the checkpoint %+v, %v, want %+v", c, err, first)
	}
	_, err = old.check()
	must.OK(t, err)
	wantFirstLeaf(o, entries[0], newest, old.vkey)
	verify(4, "epoch        FAILED: NEW LOG", "repo acme/api ✗ NOT VERIFIED")
	verify(3, "epoch        ok: accepted", "repo acme/api ? INCOMPLETE", "--accept-epoch")
	verify(3, "consistency  ok: ", "repo acme/api ? INCOMPLETE", "--rederive")

	o.signal(syscall.SIGTERM)
	o.start()
	record(1)
	if again := o.reader(); again.vkey != renewed.vkey {
		t.Errorf("after a restart, the key is %s, want %s", again.vkey, renewed.vkey)
	}
	o.ledgerd("check")
}

// verifier returns a function that verifies the repo as somebody who remembers the log, and
// checks the exit status and two parts of the report.
func (o *org) verifier() func(status int, part, result string, flags ...string) {
	state := o.t.TempDir()
	return func(status int, part, result string, flags ...string) {
		o.t.Helper()
		command := exec.Command("ledgerd", append([]string{"verify", "repo", "acme/api"}, flags...)...)
		command.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "LEDGERD_URL="+o.url, "LEDGERD_TOKEN="+o.token)
		out, _ := command.CombinedOutput()
		if got := command.ProcessState.ExitCode(); got != status || !strings.Contains(string(out), part) ||
			!strings.Contains(string(out), result) {
			o.t.Errorf("ledgerd verify %q: status %d, want %d with %q and %q:\n%s", flags, got, status, part, result, out)
		}
	}
}

// wantFirstLeaf checks that the first leaf of a new log is the event that names the last
// checkpoint of the old one.
func wantFirstLeaf(o *org, entry, checkpoint []byte, vkey string) {
	o.t.Helper()
	var leaf struct{ Event, Type string }
	must.OK(o.t, json.Unmarshal(entry, &leaf))
	body, err := getAs(o.t, o.token)(o.url + "/v1/orgs/acme/events/" + leaf.Event)
	must.OK(o.t, err)
	var event struct {
		Reason   string
		Previous struct {
			Origin, Checkpoint string
			Size               int64
		}
	}
	must.OK(o.t, json.Unmarshal(body, &event))
	p := event.Previous
	if leaf.Type != "key" || event.Reason != "restored" || p.Origin != "ledger.example.com/v1/orgs/acme/log" ||
		p.Checkpoint != string(checkpoint) || p.Size < 40 {
		o.t.Errorf("the first event of the new log is %s", body)
	}
	_, err = openCheckpoint(p.Checkpoint, vkey)
	must.OK(o.t, err)
}
