package fault_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
)

// mountFor mounts a file system for a server of PostgreSQL.
func mountFor(t *testing.T) string {
	t.Helper()
	dir := mount(t, "-t", "tmpfs", "-o", "size=192m", "tmpfs")
	must.OK(t, os.Chmod(filepath.Dir(dir), 0o755)) // the server has a user of its own
	return dir
}

// expectFull checks that for some time, all replicas say that the disk is full, and serve reads.
func (r *replicas) expectFull() {
	r.t.Helper()
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(50 * time.Millisecond) {
		for _, one := range r.list {
			status, body := r.get(one.url + "/readyz")
			if status != http.StatusServiceUnavailable || !strings.Contains(body, "the disk is full") {
				r.t.Fatalf("/readyz: %d %s; want 503, and that the disk is full", status, body)
			}
			if status, body := r.get(one.url + "/v1/orgs/acme/repos"); status != http.StatusOK {
				r.t.Fatalf("a read: %d %s", status, body)
			}
		}
	}
}

// While the disk of PostgreSQL is full, writes are refused. If only its tables are on it, reads go on. Without
// space for the WAL, PostgreSQL itself crashes, and does not start. Servers recover by themselves in both cases.
func TestFaultFullDiskOfPostgres(t *testing.T) {
	slow(t)
	for name, foldersOn := range map[string]func(t *testing.T, dir string) pgtest.Folders{
		"tables": func(t *testing.T, dir string) pgtest.Folders {
			wal := must.Get(os.MkdirTemp("", "wal"))(t)
			t.Cleanup(func() { must.OK(t, os.RemoveAll(wal)) })
			return pgtest.Folders{Data: dir, WAL: wal}
		},
		"WAL": func(_ *testing.T, dir string) pgtest.Folders { return pgtest.Folders{WAL: dir} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := mountFor(t)
			cluster := pgtest.StartIn(t, foldersOn(t, dir), "min_wal_size=32MB", "max_wal_size=64MB")
			r := newReplicas(t, 2, cluster.NewDatabase(t))
			runs := times(1, 6)
			for range runs {
				ballast := fill(t, dir, 1<<20)
				r.under(func() {
					for _, one := range r.list {
						unready := func() bool { return statusOf(one.url) == http.StatusServiceUnavailable }
						waitFor(t, "the disk to be full", &one.log, unready)
					}
					waitForRefusals(r.t, r.load, &r.list[0].log, 20)
				})

				if name == "tables" {
					r.expectFull()
				}
				must.OK(t, os.Remove(ballast))
				if !cluster.IsRunning(t) { // it gives up if it cannot recover from a crash
					cluster.Run(t)
				}
				for _, one := range r.list {
					waitFor(t, "the replica to recover", &one.log, func() bool { return statusOf(one.url) == http.StatusOK })
				}
			}
			r.finish("two servers: full disk of PostgreSQL ("+name+")", runs)
		})
	}
}
