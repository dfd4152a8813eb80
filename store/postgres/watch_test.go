package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
)

// Without notifications, as behind PgBouncer, Watch finds commits by looking each second, on one
// connection.
func TestWatchWithoutNotifications(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	url := cluster.NewDatabase(t)
	db := openEngine(t, url)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	looks := make(chan bool, 100)
	running.Go(func() {
		db.Watch(ctx, func(changed bool, err error) {
			if err != nil {
				t.Error(err)
			}
			looks <- changed
		})
	})

	<-looks
	began := time.Now()
	for range 3 {
		if <-looks {
			t.Error("a change is reported, but nothing was written")
		}
	}
	t.Logf("three looks took %v", time.Since(began))
	must.OK(t, cluster.Exec(t.Context(), url, "UPDATE ledger SET writes = writes + 1"))
	for changed := false; !changed; {
		select {
		case changed = <-looks:
		case <-time.After(30 * time.Second):
			t.Fatal("the change was not found")
		}
	}
}
