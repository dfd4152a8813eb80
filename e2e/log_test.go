package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// newLogOrg returns an org whose log is signed.
func newLogOrg(t *testing.T) *org {
	t.Helper()
	o := newOrg(t)
	o.env = append(o.env, "LEDGERD_BASE_URL=https://ledger.example.com")
	return o
}

// A logState is what GET /v1/orgs/{org}/log returns.
type logState struct {
	Origin  string `json:"origin"`
	Key     string `json:"key"`
	Events  int64  `json:"events"`
	Size    int64  `json:"size"`
	Problem string `json:"problem"`
}

func (o *org) logState() (s logState, err error) {
	body, err := getAs(o.t, o.token)(o.url + "/v1/orgs/acme/log")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

// reader waits until the newest checkpoint covers all events, and returns a reader of the log.
func (o *org) reader() *logReader {
	o.t.Helper()
	var state logState
	waitFor(o.t, "the checkpoint of all events", 10*time.Second, func() bool {
		var err error
		state, err = o.logState()
		return err == nil && state.Size > 0 && state.Size == state.Events
	})
	return &logReader{t: o.t, url: o.url + "/v1/orgs/acme/log", vkey: state.Key, get: getAs(o.t, o.token)}
}

// edit changes the database while the server is stopped.
func (o *org) edit(statement string) {
	o.t.Helper()
	if pgtest.OnPostgreSQL() {
		c, err := pgx.Connect(o.t.Context(), o.database)
		must.OK(o.t, err)
		defer c.Close(o.t.Context())
		_, err = c.Exec(o.t.Context(), "SET session_replication_role = replica") // no foreign keys, as for SQLite
		must.OK(o.t, err)
		changed, err := c.Exec(o.t.Context(), strings.ReplaceAll(statement, " AS BLOB)", " AS bytea)"))
		if n := changed.RowsAffected(); n == 0 || err != nil {
			o.t.Fatalf("%s changed nothing: %v", statement, err)
		}
		return
	}

	db := must.Get(sql.Open("sqlite", o.database))(o.t)
	result, err := db.Exec(statement)
	must.OK(o.t, err)
	if n, err := result.RowsAffected(); n == 0 || err != nil {
		o.t.Fatalf("%s changed nothing: %v", statement, err)
	}
	must.OK(o.t, db.Close())
}

// keep copies the database while the server is stopped. restore puts the copy in its place. On
// PostgreSQL, that is another database.
func (o *org) keep() (restore func()) {
	o.t.Helper()
	if pgtest.OnPostgreSQL() {
		file := filepath.Join(o.t.TempDir(), "kept.db")
		o.copyLedger(o.database, file)
		return func() {
			o.t.Helper()
			restored, err := pgtest.NewLocation(o.t.Cleanup, o.folder, "restored.db")
			must.OK(o.t, err)
			o.copyLedger(file, restored)
			o.database = restored
		}
	}

	kept := must.Read(o.t, o.database)
	return func() {
		o.t.Helper()
		for _, suffix := range []string{"-wal", "-shm"} {
			must.OK(o.t, os.RemoveAll(o.database+suffix))
		}
		must.OK(o.t, os.WriteFile(o.database, kept, 0o600))
	}
}

func (o *org) copyLedger(from, to string) {
	o.t.Helper()
	if out, err := exec.Command("ledgerd", "copy", "--from", from, "--to", to).CombinedOutput(); err != nil {
		o.t.Fatalf("ledgerd copy: %v\n%s", err, out)
	}
}

// buildFsck builds the fsck of Tessera, which checks logs in the form of C2SP tlog-tiles. Its
// module is not among those of ledgerd, so it is downloaded.
func buildFsck(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "go")
	program := filepath.Join(t.TempDir(), "fsck")
	for _, args := range [][]string{{"mod", "download"}, {"build", "-o", program, "."}} {
		command := exec.Command("go", args...)
		command.Dir = filepath.Join("testdata", "fsck")
		out, err := command.CombinedOutput()
		switch {
		case err != nil && args[0] == "mod":
			testenv.Missing(t, "the Go modules of fsck")
		case err != nil:
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return program
}

// Two programs that know nothing of ledgerd find the log in order, and every change of the
// stopped database.
func TestOthersCheckTheLog(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	t.Parallel()
	fsck := buildFsck(t)
	o := newLogOrg(t)
	o.start()
	for range 280 {
		_, err := o.attest()
		must.OK(t, err)
	}
	r := o.reader()
	runFsck := func() error {
		out, err := exec.Command(fsck, "--url", r.url, "--key", r.vkey, "--token", o.token).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %.300s", err, out)
		}
		return nil
	}
	clean := func() {
		t.Helper()
		must.OK(t, runFsck())
		entries, err := r.check()
		must.OK(t, err)
		if len(entries) < 290 { // with those of states
			t.Errorf("the log has %d entries", len(entries))
		}
	}
	clean()
	exported := filepath.Join(t.TempDir(), "log")
	o.ledgerd("log", "export", exported)
	checkExport(t, fsck, exported, r.vkey)
	if err := exec.Command(fsck, "--url", r.url, "--key", r.vkey).Run(); err == nil {
		t.Error("fsck reads the log without a token")
	}
	o.signal(syscall.SIGTERM)
	restore := o.keep()

	const last = "seq = (SELECT max(seq) FROM events)"
	for name, statement := range map[string]string{
		"body":             "UPDATE events SET body = (SELECT body FROM events WHERE seq = 21) WHERE seq = 20",
		"body of the last": "UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE " + last,
		"salt":             "UPDATE events SET salt = (SELECT salt FROM events WHERE seq = 21) WHERE seq = 20",
		"leaf":             "UPDATE events SET leaf = (SELECT leaf FROM events WHERE seq = 21) WHERE seq = 20",
		"leaf of the last": "UPDATE events SET leaf = (SELECT leaf FROM events WHERE seq = 21) WHERE " + last,
		"leaf without a body": "UPDATE events SET body = substr(body, 1, 0), salt = NULL, " +
			"leaf = (SELECT leaf FROM events WHERE seq = 21) WHERE seq = 20",
		"time":               "UPDATE events SET at = at + 1 WHERE seq = 20",
		"type":               "UPDATE events SET type = 'policy' WHERE seq = 20",
		"deleted event":      "DELETE FROM events WHERE seq = 20",
		"deleted last event": "DELETE FROM events WHERE " + last,
		"swapped pair": "UPDATE events SET seq = -1 WHERE seq = 20; UPDATE events SET seq = 20 WHERE seq = 21;" +
			"UPDATE events SET seq = 21 WHERE seq = -1",
		"tile": "UPDATE tiles SET hashes = CAST(substr(hashes, 33, 32) || substr(hashes, 33) AS BLOB) WHERE level = 0",
		"tile above": "UPDATE tiles SET hashes = (SELECT substr(hashes, 1, 32) FROM tiles WHERE level = 0 AND n = 0) " +
			"WHERE level = 1",
		"deleted tile": "DELETE FROM tiles WHERE level = 1",
		"root":         "UPDATE logs SET checkpoint = replace(checkpoint, '=\n', 'A=\n')",
		"size":         "UPDATE logs SET size = size - 1",
	} {
		o.edit(statement)
		o.start()
		if err := runFsck(); err == nil {
			t.Errorf("%s: fsck finds the log in order", name)
		}
		if _, err := r.check(); err == nil {
			t.Errorf("%s: the log is in order", name)
		}
		o.kill()
		restore()
	}
	o.start()
	clean()
}

// checkExport checks an exported log with fsck, and after every kind of change.
func checkExport(t *testing.T, fsck, folder, vkey string) {
	t.Helper()
	must.OK(t, exec.Command(fsck, "--url", "file://"+folder, "--key", vkey).Run())
	for _, file := range []string{"checkpoint", "tile/0/000", "tile/entries/000", "tile/1/000.p/1"} {
		name := filepath.Join(folder, filepath.FromSlash(file))
		text := must.Read(t, name)
		changed := bytes.Clone(text)
		changed[len(changed)/2] ^= 1
		for what, change := range map[string]func() error{
			"a changed bit": func() error { return os.WriteFile(name, changed, 0o600) },
			"a lost file":   func() error { return os.Remove(name) },
		} {
			must.OK(t, change())
			if err := exec.Command(fsck, "--url", "file://"+folder, "--key", vkey).Run(); err == nil {
				t.Errorf("%s with %s: fsck finds the log in order", file, what)
			}
			must.OK(t, os.WriteFile(name, text, 0o600))
		}
	}
}

// Every checkpoint that a server has served or has on disk is a prefix of what is there
// afterwards, however often it is killed while it records and signs.
func TestKilledServerKeepsItsCheckpoints(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	t.Parallel()
	o := newLogOrg(t)
	o.start()
	_, err := o.attest()
	must.OK(t, err)
	r := o.reader()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() { o.write(ctx, 0) })
	}

	served := make(map[checkpoint]bool) // of the poller, until it has ended
	running.Go(func() {
		for ctx.Err() == nil {
			if c, err := r.checkpoint(); err == nil {
				served[c] = true
			}
			time.Sleep(2 * time.Millisecond)
		}
	})

	onDisk := make(map[checkpoint]bool)
	kills := testenv.Pick(15, 15, 30)
	for range kills {
		time.Sleep(time.Duration(rand.Int64N(int64(1100 * time.Millisecond))))
		o.kill()
		note := must.Read(t, filepath.Join(o.folder, "ledger.db-keys", "acme.1.checkpoint"))
		c, err := openCheckpoint(string(note), r.vkey)
		must.OK(t, err)
		onDisk[c] = true
		o.start()
	}
	stop()
	running.Wait()

	entries, err := o.reader().check()
	must.OK(t, err)
	hashes := make([][32]byte, len(entries))
	for i, entry := range entries {
		hashes[i] = sha256.Sum256(append([]byte{0}, entry...))
	}
	for where, checkpoints := range map[string]map[checkpoint]bool{"served": served, "on disk": onDisk} {
		for c := range checkpoints {
			if c.size > int64(len(hashes)) || treeRoot(hashes[:c.size]) != c.root {
				t.Errorf("the checkpoint of size %d that was %s is not of this log of %d events", c.size, where, len(entries))
			}
		}
	}
	t.Logf("%d events, %d checkpoints served, %d on disk at a kill", len(entries), len(served), len(onDisk))
	if len(served) < kills/3 || len(onDisk) < kills/3 {
		t.Errorf("only %d checkpoints were served, and %d on disk", len(served), len(onDisk))
	}
	if strings.Contains(o.log.String(), "NOT SIGNED") {
		t.Errorf("the server has logged\n%s", o.log.String())
	}
}
