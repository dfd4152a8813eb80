package postgres_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/postgres"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A database that cannot be used is an error that says why.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	admin := cluster.AdminURL()
	run := func(url, script string) { t.Helper(); must.OK(t, cluster.Exec(t.Context(), url, script)) }
	run(admin, "CREATE ROLE guest LOGIN")
	run(admin, "CREATE ROLE limited LOGIN CONNECTION LIMIT 0")
	run(admin, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")

	other, newer, closed := cluster.NewDatabase(t), cluster.NewDatabase(t), cluster.NewDatabase(t)
	run(other, "CREATE TABLE customers (id int)")
	must.OK(t, database(newer).Open(t, store.Options{}).Close())
	run(newer, "UPDATE ledger SET schema_version = 999")
	in := func(database string) string { return strings.Replace(admin, "/postgres?", "/"+database+"?", 1) }
	as := func(user, url string) string { return strings.Replace(url, "ledgerd@", user+"@", 1) }

	for name, tc := range map[string]struct{ url, want string }{
		"no URL":                      {"postgres://%", "is not valid: write postgres://user@host:port/database"},
		"no server":                   {"postgres://127.0.0.1:1/ledger", "connection refused"},
		"no such database":            {in("missing"), `database "missing" does not exist`},
		"no such user":                {as("nobody", admin), `role "nobody" does not exist`},
		"too many connections":        {as("limited", admin), "too many connections for role"},
		"no rights":                   {as("guest", closed), "permission denied"},
		"tables of another program":   {other, "not a database of ledgerd: another program has created tables in it"},
		"the schema of a newer one":   {newer, "schema version 999 is too new"},
		"an encoding other than UTF8": {in("latin"), "create one with ENCODING 'UTF8'"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), tc.url, store.Options{})
			if err == nil {
				s.Close()
				t.Fatal("the database was opened")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want that it contains %q", err, tc.want)
			}
		})
	}
}

// Passwords in URLs are not printed, neither in errors.
func TestPasswordsAreNotPrinted(t *testing.T) {
	for _, url := range []string{
		"postgres://ann:hunter2@127.0.0.1:1/ledger", "postgres://127.0.0.1:1/ledger?user=ann&password=hunter2",
		"postgres://ann:hunter2@%",
	} {
		_, err := store.Open(t.Context(), url, store.Options{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}

// A proxy forwards connections to a server, unless it is frozen: then nothing comes back, as when a
// host or a network is gone.
type proxy struct {
	net.Listener
	target string
	mu     sync.Mutex
	frozen bool
	conns  []net.Conn
}

// newProxy returns a proxy before the server of a URL, and the URL with its address.
func newProxy(t *testing.T, database string) (*proxy, string) {
	t.Helper()
	u := must.Get(url.Parse(database))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &proxy{Listener: l, target: u.Host}
	go p.serve()
	t.Cleanup(func() { l.Close(); p.drop() })
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return // closed
		}
		s, err := net.Dial("tcp", p.target)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, s)
		p.mu.Unlock()
		go p.forward(c, s)
		go p.forward(s, c)
	}
}

func (p *proxy) forward(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		for p.isFrozen() {
			time.Sleep(time.Millisecond)
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			if err != io.EOF {
				from.Close()
			}
			to.Close()
			return
		}
	}
}

func (p *proxy) isFrozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

func (p *proxy) freeze(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
}

// drop ends all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = false
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// openEngine opens the engine alone, with a short timeout.
func openEngine(t *testing.T, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, postgres.Options{Timeout: time.Second, Hooks: sqldb.Hooks{
		Begun: func(int64) {}, Stamp: func() int64 { return 0 }, BeforeCommit: func(*sqldb.Conn) error { return nil },
		AfterCommit: func() {}, AfterRollback: func() {},
	}})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, db.Close()) })
	return db
}

// insert writes an org.
func insert(ctx context.Context, db *postgres.DB, name string) error {
	return db.Write(ctx, sqldb.Write{Org: name, Do: func(c *sqldb.Conn) error {
		_, err := c.Exec("INSERT INTO orgs (name, created_at) VALUES (?, 0)", name)
		return err
	}})
}

func count(ctx context.Context, db *postgres.DB) (n int, err error) {
	return n, db.ReadLoose(ctx, sqldb.Reader{}, func(c *sqldb.Conn) error {
		return c.Row("SELECT count(*) FROM orgs").Scan(&n)
	})
}

// While the server does not answer, writes and reads fail in time, and the engine is not ready.
// When it answers again, everything works without a restart.
func TestServerThatDoesNotAnswer(t *testing.T) {
	p, url := newProxy(t, pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	db := openEngine(t, url)
	watching, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { db.Watch(watching, func(bool, error) {}) })
	defer func() { stop(); running.Wait() }()
	must.OK(t, insert(t.Context(), db, "before"))
	p.freeze(true)

	began := time.Now()
	if err := insert(t.Context(), db, "frozen"); sqldb.ClassOf(err) != sqldb.Unreachable {
		t.Errorf("write: got %v, want an error of the class Unreachable", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the write took %v", took)
	}
	if err := db.Ready(); err == nil {
		t.Error("the engine is ready")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := count(ctx, db); err == nil {
		t.Error("a read returns no error")
	}

	p.drop()
	for deadline := time.Now().Add(30 * time.Second); db.Ready() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not ready again: %v", db.Ready())
		}
	}
	must.OK(t, insert(t.Context(), db, "after"))
	if n, err := count(t.Context(), db); n != 2 || err != nil {
		t.Errorf("%d orgs, %v; want 2", n, err)
	}
}

// Connections that were lost while nobody used them cost no request.
func TestLostConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	p, url := newProxy(t, pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	db := openEngine(t, url)
	for i := range 5 {
		must.OK(t, insert(t.Context(), db, fmt.Sprint("org-", i)))
		n, err := count(t.Context(), db)
		if n != i+1 || err != nil {
			t.Errorf("%d orgs, %v; want %d", n, err, i+1)
		}
		p.drop()
		time.Sleep(10 * time.Millisecond)
	}
}

// A query whose rows or whose first statement cannot be had leaves the connection free for others.
func TestFailedStatements(t *testing.T) {
	t.Parallel()
	db := openEngine(t, pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	must.OK(t, insert(t.Context(), db, "acme"))
	returning := func(c *sqldb.Conn) error {
		_, err := c.Insert("INSERT INTO orgs (name, created_at) VALUES (?, 0)", "acme")
		return err
	}

	for name, do := range map[string]func(*sqldb.Conn) error{
		"a duplicate": func(c *sqldb.Conn) error {
			_, err := c.Exec("INSERT INTO orgs (name, created_at) VALUES (?, 0)", "acme")
			return err
		},
		"a duplicate with RETURNING": returning,
		"a duplicate after another statement": func(c *sqldb.Conn) error {
			if _, err := c.Exec("UPDATE orgs SET created_at = 1 WHERE name = ?", "acme"); err != nil {
				return err
			}
			return returning(c)
		},
		"a duplicate that was queued": func(c *sqldb.Conn) error {
			if err := c.Queue("INSERT INTO orgs (name, created_at) VALUES (?, 0)", "acme"); err != nil {
				return err
			}
			return c.Row("SELECT 1").Scan(new(int64))
		},
		"a duplicate while rows are read": func(c *sqldb.Conn) error {
			return c.Each(func(sqldb.Scanner) error { return returning(c) }, "SELECT id FROM orgs")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				err := db.Write(t.Context(), sqldb.Write{Org: "acme", Do: do})
				if sqldb.ClassOf(err) != sqldb.Duplicate {
					t.Errorf("got %v, want an error of the class Duplicate", err)
				}
			}
			must.OK(t, db.Ready())
			if n, err := count(t.Context(), db); n != 1 || err != nil {
				t.Errorf("%d orgs, %v; want 1", n, err)
			}
		})
	}
	must.OK(t, insert(t.Context(), db, "globex"))
}

// If the rows of a write are refused, as on a full disk, nothing of it is recorded: its counters are not, either.
func TestRowsThatAreRefused(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Fast()...)
	url := cluster.NewDatabase(t)
	s := database(url).Open(t, store.Options{})
	defer s.Close()
	_, err := s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	must.OK(t, cluster.Exec(t.Context(), url, `
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON events EXECUTE FUNCTION refuse()`))

	_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "ann")
	if err == nil || !strings.Contains(err.Error(), "the disk is full: nothing was written") {
		t.Errorf("got %v, want an error that says that the disk is full", err)
	}
	must.OK(t, cluster.Exec(t.Context(), url, `
DO $$ BEGIN ASSERT (SELECT next_seq FROM orgs) = (SELECT count(*) FROM events), 'events are missing'; END $$`))
}
