// Package postgres is the database engine that stores the ledger in PostgreSQL, 14 or newer. Any
// number of processes may use one database: each write locks a row first.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/ledgerd/ledgerd/store/engine"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// forever is longer than any read.
const forever = 365 * 24 * time.Hour

// maxStatements is the number of statements that are prepared on a connection.
const maxStatements = 512

// connections returns the number of connections of each lane. They connect when they are needed.
func connections() [sqldb.Lanes]int {
	return [sqldb.Lanes]int{
		sqldb.Requests: 8, sqldb.Writes: 4, sqldb.Checks: 2, sqldb.Long: min(max(1, runtime.GOMAXPROCS(0)/2), 8),
	}
}

// A DB is an open database. It implements sqldb.Engine.
type DB struct {
	engine.Core
	hosts   *hosts
	traffic *traffic
	size    atomic.Int64 // of the database, in bytes, as it was last seen; 0 if it is not known
	clock   *clock
	timeout time.Duration // see Options
	health  *engine.Health
	conn    *conn // of the writer
	hints   *hints
}

var _ sqldb.Engine = (*DB)(nil)

// Open opens the database at a URL such as postgres://user@host/database, and migrates its
// schema to the version of this release. The database must exist.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	db, err := newDB(url, o, newHosts)
	if err != nil {
		return nil, err
	}
	if err := db.open(ctx, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func newDB(url string, o Options, hostsOf func(*pgx.ConnConfig) *hosts) (*DB, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	db := &DB{
		hosts: hostsOf(config), traffic: new(traffic), clock: new(clock), timeout: cmp.Or(o.Timeout, defaultTimeout),
	}
	db.Closing = make(chan struct{})
	db.health = engine.NewHealth(o.Began, o.Ended, help)
	db.Readers = engine.Readers{
		Begin: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", MaxRead: engine.MaxRead(), Health: db.health,
	}
	return db, nil
}

// parse parses a URL.
func parse(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the URL of the database is not valid: write postgres://user@host:port/database, and the " +
			"password in the environment variable PGPASSWORD or the file ~/.pgpass")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	config.StatementCacheCapacity = maxStatements
	dialer := &net.Dialer{Timeout: config.ConnectTimeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
	}}
	limitSends(dialer)
	config.DialFunc = dialer.DialContext
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelPatience}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "ledgerd"
	}
	return config, nil
}

func (db *DB) open(ctx context.Context, o Options) (err error) {
	db.addReaders()
	db.conn = &conn{hosts: db.hosts, traffic: db.traffic, guard: new(guard)}
	if err := db.conn.Ready(ctx); err != nil {
		return err
	}
	c := sqldb.NewConn(db.conn, &dialect)
	if err := checkServer(c); err != nil {
		return err
	}
	if err := migrate(c, o); err != nil {
		return err
	}
	if db.conn.types, err = readTypes(c); err != nil {
		return err
	}
	if err := db.clock.measure(c); err != nil {
		return err
	}

	db.hints = startHints(db.hosts)
	tx := &transactions{
		conn: db.conn, sql: c, clock: db.clock, hooks: o.Hooks, hints: db.hints, timeout: db.timeout,
	}
	db.Writer = engine.NewWriter(tx, o.Hooks, db.health)
	db.Monitor = engine.StartMonitor(nil, sqldb.Write{Do: probe}, db.health, db.Writer)
	return nil
}

// probe is a write that fails if the disk is full. For a new table, the server needs space.
func probe(c *sqldb.Conn) error {
	return c.Run(`
DO $$ BEGIN
  IF has_database_privilege(current_database(), 'TEMP') THEN
    CREATE TEMP TABLE ledgerd_probe ON COMMIT DROP AS SELECT generate_series(1, 30000) AS n; -- a megabyte
  END IF;
END $$`)
}

// addReaders adds the connections of the lanes.
func (db *DB) addReaders() {
	for lane, n := range connections() {
		db.Readers.Lanes[lane] = engine.NewPool(db.Closing)
		for range n {
			c := sqldb.NewConn(&conn{hosts: db.hosts, traffic: db.traffic}, &dialect)
			if sqldb.Lane(lane) == sqldb.Requests {
				c.KeepShort()
			}
			db.Readers.Lanes[lane].Add(c)
		}
	}
}

// OpenReadOnly opens a database that has the schema of this release, for reading. Reads take as
// long as they need.
func OpenReadOnly(ctx context.Context, url string) (*DB, error) {
	db, err := newDB(url, Options{}, anyHost)
	if err != nil {
		return nil, err
	}
	for lane := range db.Readers.MaxRead {
		db.Readers.MaxRead[lane] = forever
	}
	if err := db.openReadOnly(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *DB) openReadOnly(ctx context.Context) error {
	db.addReaders()
	return db.ReadLoose(ctx, sqldb.Reader{Lane: sqldb.Writes}, func(c *sqldb.Conn) error {
		if err := checkServer(c); err != nil {
			return err
		}
		if err := checkSchema(c); err != nil {
			return err
		}
		return db.clock.measure(c)
	})
}

// CheckFile has nothing to check: the files are those of the server, which pg_amcheck checks.
func (db *DB) CheckFile(context.Context, func(damage string)) error { return nil }

// Risks returns what in the settings of the server lets it lose what it has confirmed, or fail under
// load.
func (db *DB) Risks(ctx context.Context) (risks []string, err error) {
	var fsync, fullPages string
	var limit, reserved int
	err = db.ReadLoose(ctx, sqldb.Reader{Lane: sqldb.Writes}, func(c *sqldb.Conn) error {
		return c.Row(`SELECT current_setting('fsync'), current_setting('full_page_writes'),
  current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int`).
			Scan(&fsync, &fullPages, &limit, &reserved)
	})
	if err != nil {
		return nil, fmt.Errorf("read the settings of the server: %w", err)
	}

	if fsync == "off" || fullPages == "off" {
		risks = append(risks, "fsync or full_page_writes is off: a crash of the host loses or damages what was confirmed")
	}
	needed := 3 // of the writer, Watch and hints
	for _, n := range connections() {
		needed += n
	}
	if limit-reserved < needed {
		risks = append(risks, fmt.Sprintf("max_connections leaves %d connections: a replica takes up to %d",
			limit-reserved, needed))
	}
	return risks, nil
}

// Changed returns nil: each read transaction has a snapshot.
func (db *DB) Changed() error { return nil }

// checkServer returns an error if the server cannot store a ledger.
func checkServer(c *sqldb.Conn) error {
	var number, encoding string
	err := c.Row("SELECT pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_encoding')").
		Scan(&number, &encoding)
	version, parsing := strconv.Atoi(number)
	switch {
	case err != nil || parsing != nil:
		return fmt.Errorf("read the version of the server: %w", cmp.Or(err, parsing))
	case version < 140000:
		return fmt.Errorf("the server has PostgreSQL %d, but ledgerd needs 14 or newer", version/10000)
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s: create one with ENCODING 'UTF8'", encoding)
	}
	return nil
}

// help is what the administrator can do about an incident.
func help(sqldb.IncidentKind) string {
	return "look at the log of PostgreSQL, and whether its address and password are right"
}

// Close implements sqldb.Engine.
func (db *DB) Close() error {
	close(db.Closing)
	if db.Writer != nil {
		db.Writer.Close()
		db.Monitor.Close()
		db.hints.close()
	}
	var errs []error
	if db.Readers.Lanes[0] != nil {
		errs = append(errs, db.Readers.Close())
	}
	if db.conn != nil {
		errs = append(errs, db.conn.Close())
	}
	return errors.Join(errs...)
}

// Stats implements sqldb.Engine.
func (db *DB) Stats() sqldb.Stats {
	return sqldb.Stats{
		FileBytes: db.size.Load(), RoundTrips: db.traffic.trips.Load(), Connects: db.traffic.connects.Load(),
		Lanes: db.Readers.Stats(),
	}
}

// Now returns the time of the database's clock, as it was last seen. It is a little behind rather
// than ahead.
func (db *DB) Now() time.Time { return db.clock.now() }
