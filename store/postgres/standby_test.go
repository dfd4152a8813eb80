package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A commit that the synchronous standby does not get is not confirmed, and others do not see it, until the
// standby has it. If the primary were lost in the meantime, so would the commit.
func TestCommitWithoutStandby(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	db := openEngine(t, cluster.NewDatabase(t))
	standby := cluster.NewStandby(t)
	cluster.Synchronous(t)
	must.OK(t, insert(t.Context(), db, "before"))
	standby.Stop(t, "immediate")

	if err := insert(t.Context(), db, "acme"); sqldb.ClassOf(err) != sqldb.Uncertain {
		t.Errorf("got %v, want an error of the class Uncertain", err)
	}
	for range 3 { // and for what would end the wait
		err := insert(t.Context(), db, "umbrella")
		if sqldb.ClassOf(err) != sqldb.Unreachable || !strings.Contains(err.Error(), "standby does not confirm") {
			t.Errorf("got %v, want an error of the class Unreachable that names the standby", err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	if err := db.Ready(); err == nil {
		t.Error("the engine is ready")
	}
	if n, err := count(t.Context(), db); n != 1 || err != nil {
		t.Errorf("without the standby: %d orgs, %v; want 1", n, err)
	}
	standby.Run(t)
	must.Wait(t, "the commit to be visible", func() bool {
		n, err := count(t.Context(), db)
		return n == 2 && err == nil
	})
	must.Wait(t, "writes to work", func() bool { return insert(t.Context(), db, "globex") == nil })
}

// If something else ends the wait for the standby, such as a statement_timeout or an administrator, the
// server answers the COMMIT as if all was well, with a warning.
func TestCommitWhoseWaitIsCanceled(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	url := cluster.NewDatabase(t)
	cancelWaits := func() {
		must.OK(t, cluster.Exec(t.Context(), url,
			"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
	}
	for name, setting := range map[string]string{
		"with the default settings": "", "without warnings": "&client_min_messages=error",
	} {
		t.Run(name, func(t *testing.T) {
			db := openEngine(t, url+setting)
			standby := cluster.NewStandby(t)
			cluster.Synchronous(t)
			standby.Stop(t, "immediate")

			ended := make(chan error, 1)
			go func() { ended <- insert(t.Context(), db, name) }()
			var err error
			must.Wait(t, "the write to end", func() bool {
				cancelWaits()
				select {
				case err = <-ended:
					return true
				default:
					return false
				}
			})
			if sqldb.ClassOf(err) != sqldb.Uncertain {
				t.Errorf("got %v, want an error of the class Uncertain", err)
			}
		})
		cluster.Configure(t, "synchronous_standby_names=''")
		cluster.Reload(t)
	}
}
