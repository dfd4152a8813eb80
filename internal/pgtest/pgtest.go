// Package pgtest starts private PostgreSQL servers for tests.
package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A Cluster is a PostgreSQL server with its data in a temporary folder.
type Cluster struct {
	bin, dir string
	data     string // the folder of the data
	port     int
}

// Start starts a server on a free port. It stops when the test ends. settings are of the form
// name=value. It needs PostgreSQL on the machine.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	return StartIn(t, Folders{}, settings...)
}

// Folders are where a server keeps its data, such as on small disks. By default, Data is a temporary
// folder, and WAL is in it.
type Folders struct{ Data, WAL string }

// StartIn is like Start, but keeps the data in folders.
func StartIn(t testing.TB, f Folders, settings ...string) *Cluster {
	t.Helper()
	c := newCluster(t, f.Data)
	// The locale C is on every system, and the same on all of them.
	args := []string{"-D", c.data, "-U", "ledgerd", "-A", "trust", "--encoding=UTF8", "--locale=C", "--no-sync"}
	if f.WAL != "" {
		asServer(t, f.WAL, nil)
		args = append(args, "-X", filepath.Join(f.WAL, "wal"))
	}
	c.run(t, "initdb", args...)
	for _, s := range append([]string{
		"listen_addresses='127.0.0.1'", fmt.Sprintf("unix_socket_directories='%s'", c.dir),
		"max_connections=800", "shared_buffers=64MB",
	}, settings...) {
		c.Configure(t, s)
	}
	c.Configure(t, fmt.Sprint("port=", c.port))
	c.Run(t)
	must.OK(t, c.Exec(t.Context(), c.AdminURL(), "CREATE DATABASE "+empty))
	must.OK(t, c.Exec(t.Context(), c.url(empty), "CREATE EXTENSION citext"))
	return c
}

// newCluster returns a cluster without data, which stops when the test ends.
func newCluster(t testing.TB, folder string) *Cluster {
	t.Helper()
	testenv.From(t, testenv.Push, "starts PostgreSQL")
	c := &Cluster{bin: programs(), port: freePort(t)}
	if c.bin == "" {
		testenv.Missing(t, "PostgreSQL 14 or newer")
	}

	var err error
	c.dir, err = os.MkdirTemp("", "pg") // short, because it has a socket
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, os.RemoveAll(c.dir)) })
	asServer(t, c.dir, nil)
	if folder == "" {
		folder = c.dir
	} else {
		asServer(t, folder, nil)
	}
	c.data = filepath.Join(folder, "data")
	t.Cleanup(func() {
		if c.IsRunning(t) {
			c.Stop(t, "immediate")
		}
	})
	return c
}

// Fast are settings for tests that survive no crash, and whose databases end before a vacuum pays.
func Fast() []string {
	return []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off"}
}

// programs returns the folder of the newest PostgreSQL of the machine, or "".
func programs() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // its folder has all programs
			return filepath.Dir(path)
		}
	}
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(dirs) == 0 {
		return ""
	}
	slices.Sort(dirs)
	return dirs[len(dirs)-1]
}

func freePort(t testing.TB) int {
	t.Helper()
	address, err := testenv.FreeAddress()
	must.OK(t, err)
	_, port, _ := strings.Cut(address, ":")
	number, err := strconv.Atoi(port)
	must.OK(t, err)
	return number
}

// run runs a program of PostgreSQL.
func (c *Cluster) run(t testing.TB, program string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	command := exec.Command(filepath.Join(c.bin, program), args...)
	command.Dir, command.Stdout, command.Stderr = c.dir, &output, &output
	asServer(t, "", command)
	if err := command.Run(); err != nil {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		t.Fatalf("%s %s: %v\n%s\n%s", program, strings.Join(args, " "), err, output.Bytes(), log)
	}
}

// Configure adds a setting of the form name=value, for the next start or Reload.
func (c *Cluster) Configure(t testing.TB, setting string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(c.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	must.OK(t, err)
	defer file.Close()
	_, err = fmt.Fprintln(file, setting)
	must.OK(t, err)
}

// Run starts the server, and waits until it accepts connections.
func (c *Cluster) Run(t testing.TB) {
	t.Helper()
	c.run(t, "pg_ctl", "-D", c.data, "-l", filepath.Join(c.dir, "log"), "-w", "-s", "start")
}

// Stop stops the server. The mode is smart, fast or immediate.
func (c *Cluster) Stop(t testing.TB, mode string) {
	t.Helper()
	c.run(t, "pg_ctl", "-D", c.data, "-m", mode, "-w", "-s", "stop")
}

// IsRunning reports whether the server runs.
func (c *Cluster) IsRunning(t testing.TB) bool {
	t.Helper()
	status := exec.Command(filepath.Join(c.bin, "pg_ctl"), "-D", c.data, "status")
	status.Dir = c.dir
	asServer(t, "", status)
	return status.Run() == nil
}

// Address is the host and the port, as in URLs.
func (c *Cluster) Address() string { return fmt.Sprint("127.0.0.1:", c.port) }

// AdminURL is the URL of a database that always exists.
func (c *Cluster) AdminURL() string { return c.url("postgres") }

// url returns the URL of a database.
func (c *Cluster) url(database string) string {
	return fmt.Sprintf("postgres://ledgerd@%s/%s?sslmode=disable", c.Address(), database)
}

// empty is the database that those of tests are copied from. It has nothing but an extension.
const empty = "empty"

// NewDatabase creates a database without tables, which is removed when the test ends, and returns its URL.
func (c *Cluster) NewDatabase(t testing.TB) (url string) {
	t.Helper()
	return c.newCopy(t, empty)
}

// Copies fills a database, and returns what creates copies of it, which are removed when their tests end.
// Nothing may be connected to a database that was filled.
func (c *Cluster) Copies(t testing.TB, fill func(url string)) (newCopy func(testing.TB) (url string)) {
	t.Helper()
	original, err := c.copy(t.Cleanup, empty)
	must.OK(t, err)
	fill(c.url(original))
	return func(t testing.TB) string {
		t.Helper()
		return c.newCopy(t, original)
	}
}

func (c *Cluster) newCopy(t testing.TB, original string) (url string) {
	t.Helper()
	name, err := c.copy(t.Cleanup, original)
	must.OK(t, err)
	return c.url(name)
}

// copy creates a copy of a database. Tests have databases of their own rather than schemas in one, since
// each table makes statements about the catalog slower for all schemas of a database.
func (c *Cluster) copy(cleanup func(func()), original string) (name string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.AdminURL())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)

	var version int
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version)
	if err != nil {
		return "", fmt.Errorf("read the version of the server: %w", err)
	}
	name = "ledger_" + strings.ToLower(rand.Text())
	statement := fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, original)
	if version >= 150000 { // older ones always copy files
		statement += " STRATEGY file_copy"
	}
	if _, err := conn.Exec(ctx, statement); err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	cleanup(func() {
		// It stays if the server does not run, and goes with the server's folder.
		_ = c.Exec(context.Background(), c.AdminURL()+"&synchronous_commit=off",
			fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
	})
	return name, nil
}

// Exec runs a script in a database.
func (c *Cluster) Exec(ctx context.Context, url, script string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, script)
	if closeErr := conn.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}
