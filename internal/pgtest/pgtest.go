// Package pgtest starts private PostgreSQL servers for tests.
package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Cluster is a PostgreSQL server with its data in a temporary folder.
type Cluster struct {
	bin, dir  string
	port      int
	databases atomic.Int64
}

// Start starts a server on a free port. It stops when the test ends. settings are of the form
// name=value. Without PostgreSQL on the machine, the test is skipped, but fails in CI.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{bin: programs()}
	if c.bin == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has no PostgreSQL")
		}
		t.Skip("needs PostgreSQL 14 or newer, such as the Debian package postgresql")
	}

	dir, err := os.MkdirTemp("", "pg") // short, because it has a socket
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	c.dir, c.port = dir, freePort(t)
	asServer(t, dir, nil)
	c.run(t, "initdb", "-D", c.data(), "-U", "ledgerd", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	for _, s := range append([]string{
		"listen_addresses='127.0.0.1'", fmt.Sprint("port=", c.port), fmt.Sprintf("unix_socket_directories='%s'", dir),
		"max_connections=400", "shared_buffers=64MB",
	}, settings...) {
		c.configure(t, s)
	}
	c.Run(t)
	t.Cleanup(func() { c.Stop(t, "immediate") })
	check(t, c.Exec(t.Context(), c.AdminURL(), "CREATE DATABASE ledgers"))
	check(t, c.Exec(t.Context(), c.url("ledgers", ""), "CREATE EXTENSION citext"))
	return c
}

// Fast are settings for tests that survive no crash.
func Fast() []string { return []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off"} }

// programs returns the folder of the newest PostgreSQL of the machine, or "".
func programs() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

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

// configure appends a setting.
func (c *Cluster) configure(t testing.TB, setting string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	defer file.Close()
	_, err = fmt.Fprintln(file, setting)
	check(t, err)
}

// Run starts the server, and waits until it accepts connections.
func (c *Cluster) Run(t testing.TB) {
	t.Helper()
	c.run(t, "pg_ctl", "-D", c.data(), "-l", filepath.Join(c.dir, "log"), "-w", "-s", "start")
}

// Stop stops the server. The mode is smart, fast or immediate.
func (c *Cluster) Stop(t testing.TB, mode string) {
	t.Helper()
	c.run(t, "pg_ctl", "-D", c.data(), "-m", mode, "-w", "-s", "stop")
}

// AdminURL is the URL of a database that always exists.
func (c *Cluster) AdminURL() string { return c.url("postgres", "") }

// url returns the URL of a database, and of a schema in it if that is not empty.
func (c *Cluster) url(database, schema string) string {
	url := fmt.Sprintf("postgres://ledgerd@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
	if schema != "" {
		url += "&search_path=" + schema + ",public"
	}
	return url
}

// NewDatabase creates an empty database, and returns its URL. It is a schema, which is created
// faster.
func (c *Cluster) NewDatabase(t testing.TB) (url string) {
	t.Helper()
	name := fmt.Sprint("ledger", c.databases.Add(1))
	check(t, c.Exec(context.Background(), c.url("ledgers", ""), "CREATE SCHEMA "+name))
	return c.url("ledgers", name)
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

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
