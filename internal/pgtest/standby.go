package pgtest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/must"
)

// NewStandby starts a standby of the server, which stops when the test ends.
func (c *Cluster) NewStandby(t testing.TB) *Cluster {
	t.Helper()
	standby := newCluster(t, "")
	standby.Follow(t, c)
	return standby
}

// Follow makes the server, which must not run, a standby of another one. What it had is deleted.
func (c *Cluster) Follow(t testing.TB, primary *Cluster) {
	t.Helper()
	must.OK(t, os.RemoveAll(c.data))
	c.run(t, "pg_basebackup", "-d", primary.AdminURL(), "-D", c.data, "-R", "-c", "fast", "--no-sync")
	c.Configure(t, fmt.Sprint("port=", c.port))
	c.Configure(t, fmt.Sprintf("unix_socket_directories='%s'", c.dir))
	c.Configure(t, "synchronous_standby_names=''") // for when it is promoted
	c.Configure(t, "wal_retrieve_retry_interval=100ms")
	c.Run(t)
}

// Leave lets a standby get nothing more from its primary.
func (c *Cluster) Leave(t testing.TB) {
	t.Helper()
	must.OK(t, c.Exec(t.Context(), c.AdminURL(), "ALTER SYSTEM SET primary_conninfo = ''"))
	c.Reload(t)
	c.await(t, "the standby to leave", func(ctx context.Context, conn *pgx.Conn) (has bool, err error) {
		return has, conn.QueryRow(ctx, "SELECT count(*) = 0 FROM pg_stat_wal_receiver").Scan(&has)
	})
}

// Synchronous makes commits wait for the server's standby, and returns when they do.
func (c *Cluster) Synchronous(t testing.TB) {
	t.Helper()
	c.Configure(t, "synchronous_standby_names='*'")
	c.Reload(t)
	isSynchronous := func(ctx context.Context, conn *pgx.Conn) (is bool, err error) {
		return is, conn.QueryRow(ctx, `
SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'`).Scan(&is)
	}
	c.await(t, "the standby to be synchronous", isSynchronous)

	// Commits wait as soon as the checkpointer has read the setting. It then writes a checkpoint, to which
	// the standby catches up.
	must.OK(t, c.Exec(t.Context(), c.AdminURL(), "CHECKPOINT"))
	hasCaughtUp := func(ctx context.Context, conn *pgx.Conn) (has bool, err error) {
		return has, conn.QueryRow(ctx, `
SELECT coalesce(min(flush_lsn) >= pg_current_wal_lsn(), false) FROM pg_stat_replication`).Scan(&has)
	}
	c.await(t, "the standby to catch up", hasCaughtUp)
}

// Reload lets the server read its settings again.
func (c *Cluster) Reload(t testing.TB) {
	t.Helper()
	c.run(t, "pg_ctl", "-D", c.data, "-s", "reload")
}

// Promote makes a standby the primary, and waits until it is.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	c.run(t, "pg_ctl", "-D", c.data, "-w", "-s", "promote")
}

// await polls done on a connection until it returns true.
func (c *Cluster) await(t testing.TB, what string, done func(context.Context, *pgx.Conn) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.AdminURL())
	must.OK(t, err)
	defer conn.Close(ctx)
	for {
		is, err := done(ctx, conn)
		if err != nil {
			t.Fatalf("wait for %s: %v", what, err)
		}
		if is {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
