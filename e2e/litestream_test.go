package e2e_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// litestreamConfig replicates a database into a folder, and has a socket for litestream sync.
const litestreamConfig = `
dbs:
  - path: %q
    replica:
      path: %q
socket:
  enabled: true
  path: %q
`

// The host of a server is lost while 64 clients attest. What Litestream has restored passes the
// check, and has each event that was answered before the last sync. It goes on as a ledger.
func TestLitestream(t *testing.T) {
	testenv.Need(t, "litestream")
	t.Parallel()
	o := newOrg(t)
	o.env = append(o.env, "LEDGERD_EXTERNAL_CHECKPOINTS=true")
	o.start()
	_, err := o.attest() // begins the write-ahead log
	must.OK(t, err)
	replicator := startLitestream(t, o.database)

	load, log := o.attestAtOnce(64), o.database+"-wal"
	before, largest := walResets(t, log), int64(0)
	// At least ten seconds; on a slow machine, until Litestream has its turn.
	least, most := time.Now().Add(10*time.Second), time.Now().Add(2*time.Minute)
	for time.Now().Before(least) || time.Now().Before(most) && walResets(t, log) == before {
		time.Sleep(50 * time.Millisecond)
		info := must.Get(os.Stat(log))(t)
		largest = max(largest, info.Size())
	}
	resets := walResets(t, log) - before
	t.Logf("%d attestations, %d resets of the write-ahead log, which had up to %d MB",
		len(load.answered()), resets, largest>>20)
	if resets == 0 {
		t.Error("Litestream has not kept the write-ahead log short: it was never reset")
	}

	replicated := load.answered()
	replicator.sync()
	replicator.kill()
	load.stop()
	o.kill()
	if t.Failed() || len(replicated) < 100 {
		t.Fatalf("%d attestations were answered before the last sync\n%s", len(replicated), replicator.log.String())
	}

	restored := &org{t: t, database: filepath.Join(t.TempDir(), "replica.db")}
	replicator.restore(restored.database)
	if out := restored.ledgerd("check"); !strings.Contains(out, ".db: OK (") {
		t.Error(out)
	}
	wantEvents(t, restored.database, replicated)

	o.database = filepath.Join(t.TempDir(), "restored.db")
	o.ledgerd("restore", restored.database)
	o.start()
	if _, err := o.attest(); err != nil {
		t.Error(err)
	}
	if out := o.ledgerd("check"); !strings.Contains(out, ".db: OK (") {
		t.Error(out)
	}
}

// walResets returns how often SQLite has begun a write-ahead log again from its start, plus a
// constant: it is the first salt of the log (sqlite.org/fileformat2.html#the_write_ahead_log).
func walResets(t *testing.T, log string) uint32 {
	t.Helper()
	file, err := os.Open(log)
	must.OK(t, err)
	defer file.Close()
	salt := make([]byte, 4)
	_, err = file.ReadAt(salt, 16)
	must.OK(t, err)
	return binary.BigEndian.Uint32(salt)
}

// A litestream is a running Litestream that replicates a database.
type litestream struct {
	t                         *testing.T
	database, replica, socket string
	process                   *exec.Cmd
	log                       testenv.Buffer
}

// startLitestream starts Litestream, and returns when its socket answers.
func startLitestream(t *testing.T, database string) *litestream {
	t.Helper()
	dir := t.TempDir()
	l := &litestream{t: t, database: database, replica: filepath.Join(dir, "replica"),
		socket: filepath.Join(dir, "socket")}
	config := filepath.Join(dir, "litestream.yml")
	must.OK(t, os.WriteFile(config, fmt.Appendf(nil, litestreamConfig, l.database, l.replica, l.socket), 0o600))

	l.process = exec.Command("litestream", "replicate", "-config", config)
	l.process.Stdout, l.process.Stderr = &l.log, &l.log
	must.OK(t, l.process.Start())
	t.Cleanup(l.kill)
	waitFor(t, "Litestream", 10*time.Second, func() bool {
		_, err := os.Stat(l.socket)
		return err == nil
	})
	return l
}

// sync returns when all that is in the database now is in the replica.
func (l *litestream) sync() { l.run("sync", "-wait", "-socket", l.socket, l.database) }

// restore makes a database from the replica.
func (l *litestream) restore(to string) { l.run("restore", "-o", to, "file://"+l.replica) }

func (l *litestream) run(args ...string) {
	l.t.Helper()
	if out, err := exec.Command("litestream", args...).CombinedOutput(); err != nil {
		l.t.Fatalf("litestream %s: %v\n%s\n%s", args[0], err, out, l.log.String())
	}
}

// kill ends Litestream with SIGKILL.
func (l *litestream) kill() {
	l.process.Process.Kill()
	l.process.Wait()
}
