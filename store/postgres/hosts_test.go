package postgres_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// withHosts returns a URL with two hosts.
func withHosts(url, host, first, second string) string {
	return strings.Replace(url, host, first+","+second, 1)
}

// watch watches until the test ends.
func watch(t *testing.T, s interface {
	Watch(ctx context.Context, checked func(changed bool, err error))
}) {
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Watch(ctx, func(bool, error) {}) })
	t.Cleanup(func() { stop(); running.Wait() })
}

// If the first host of a URL hangs, and does not end its connections, the second one is used.
func TestHostThatHangs(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	url := cluster.NewDatabase(t)
	p, _ := newProxy(t, url)
	db := openEngine(t, withHosts(url, cluster.Address(), p.Addr().String(), cluster.Address()))
	watch(t, db)
	must.OK(t, insert(t.Context(), db, "before"))
	for range 4 { // all connections of the lane
		must.OK(t, db.ReadLoose(t.Context(), sqldb.Reader{Lane: sqldb.Writes}, func(*sqldb.Conn) error { return nil }))
	}
	p.freeze(true)
	ended := make(chan error, 1)
	go func() { // in the background, without a time limit
		ended <- db.ReadLoose(context.Background(), sqldb.Reader{Lane: sqldb.Writes}, func(c *sqldb.Conn) error {
			return c.Row("SELECT 1").Scan(new(int64))
		})
	}()

	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := count(t.Context(), db)
		if err == nil {
			err = insert(t.Context(), db, "after")
		}
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the second host is not used: %v", err)
		}
	}

	select {
	case <-ended:
	case <-time.After(time.Minute):
		p.drop()
		t.Error("a read still waits for the first host")
	}
}

// A host that accepts connections and never answers costs no read: there is another one.
func TestReadsPassAHostThatHangs(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	url := cluster.NewDatabase(t)
	hung := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer hung.Close()

	db := openEngine(t, withHosts(url, cluster.Address(), hung.Addr().String(), cluster.Address()))
	if n, err := count(t.Context(), db); n != 0 || err != nil {
		t.Errorf("%d orgs, %v; want 0", n, err)
	}
}

// Only a primary is used, also if the URL does not ask for one.
func TestStandbyIsNotUsed(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	url := cluster.NewDatabase(t)
	db := openEngine(t, url)
	standby := cluster.NewStandby(t)

	alone := strings.Replace(url, cluster.Address(), standby.Address(), 1)
	s, err := store.Open(t.Context(), alone, store.Options{})
	if err == nil {
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "standby") {
		t.Errorf("a standby alone: got %v, want an error that says so", err)
	}
	both := openEngine(t, withHosts(url, cluster.Address(), standby.Address(), cluster.Address()))
	must.OK(t, insert(t.Context(), both, "acme"))
	if n, err := count(t.Context(), db); n != 1 || err != nil {
		t.Errorf("%d orgs, %v; want 1", n, err)
	}
}
