package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/postgres"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// serverSchema describes the schema of a database on a server. The table ledger and two columns of
// orgs are only there, and are not copied.
func serverSchema() description {
	const ours = "relnamespace = current_schema()::regnamespace"
	return description{
		columns: `
SELECT c.relname, a.attname, t.typname
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.` + ours + ` AND c.relkind IN ('r', 'p') AND c.relname <> 'ledger' AND a.attnum > 0 AND NOT a.attisdropped
  AND NOT (c.relname = 'orgs' AND a.attname IN ('writes', 'stamp'))`,
		keys: `
SELECT c.relname, a.attname
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
  JOIN unnest(i.indkey) WITH ORDINALITY k (attnum, n) ON true
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE c.` + ours + ` AND i.indisprimary
ORDER BY c.relname, k.n`,
		references: `
SELECT c.relname, r.relname
FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class r ON r.oid = f.confrelid
WHERE c.` + ours + ` AND f.contype = 'f'`,
		kinds: map[string]string{"int8": "integer", "text": "text", "citext": "text", "bytea": "blob"},
	}
}

// identityQuery identifies the database of a connection. Two servers do not start in the same
// microsecond.
const identityQuery = `
SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
  (SELECT oid FROM pg_database WHERE datname = current_database()), current_schema()::regnamespace::oid)`

// identify reads the identity of the database of a connection.
func identify(c *sqldb.Conn) (id string, err error) {
	if err := c.Row(identityQuery).Scan(&id); err != nil {
		return "", fmt.Errorf("read the identity of the database: %w", err)
	}
	return id, nil
}

// A server is a target on a server. All that is written is one transaction, during which nobody
// else can write.
type server struct {
	*postgres.Session
	list []table
	id   string
}

// fillServer creates the tables of a database, and runs fn with it as the target.
func fillServer(ctx context.Context, url string, fn func(target) error) error {
	session, err := postgres.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer session.Close() // which undoes the transaction
	if err := session.Create(); err != nil {
		return err
	}

	session.SetContext(ctx)
	s := &server{Session: session}
	if err := s.begin(); err != nil {
		return err
	}
	if err := fn(s); err != nil {
		return err
	}
	if err := s.finish(); err != nil {
		return err
	}
	if err := s.Run("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// begin begins the transaction, and locks the database.
func (s *server) begin() (err error) {
	err = s.Run(`
SET lock_timeout = '10s';
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := takeTime(s.Conn); err != nil {
		return err
	}
	if err := s.lock(); err != nil {
		return err
	}
	if s.id, err = identify(s.Conn); err != nil {
		return err
	}
	s.list, err = serverSchema().tables(s.Conn)
	return err
}

// takeTime lets a transaction take as long as it needs.
func takeTime(c *sqldb.Conn) error {
	_, err := c.Exec("SELECT set_config('statement_timeout', '0', true), " +
		"set_config('idle_in_transaction_session_timeout', '0', true)")
	if err != nil {
		return fmt.Errorf("set timeouts: %w", err)
	}
	return nil
}

// lock locks the row that each write of a server locks, and makes the COMMIT wait for the disk.
func (s *server) lock() error {
	var stamp int64
	err := s.Row("SELECT stamp FROM ledger WHERE id = 1 FOR UPDATE").Scan(&stamp)
	if sqldb.ClassOf(err) == sqldb.Locked {
		return errors.New("another process writes to the database (stop the servers that use it)")
	}
	if err != nil {
		return fmt.Errorf("lock the database: %w", err)
	}
	_, err = s.Exec("SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN " +
		"set_config('synchronous_commit', 'on', true) END")
	return err
}

// finish makes new times, ids and rows follow those of the copy.
func (s *server) finish() error {
	stamp, err := store.LastStamp(s.Conn)
	if err != nil {
		return err
	}
	_, err = s.Exec("UPDATE ledger SET stamp = greatest(stamp, ?), writes = writes + 1 WHERE id = 1", int64(stamp))
	if err != nil {
		return fmt.Errorf("set the latest time: %w", err)
	}
	if err := s.skipIDs(); err != nil {
		return fmt.Errorf("set the next row id: %w", err)
	}

	names := make([]string, len(s.list))
	for i, t := range s.list {
		names[i] = `"` + t.name + `"`
	}
	if err := s.Run("ANALYZE " + strings.Join(names, ", ")); err != nil {
		return fmt.Errorf("update the statistics: %w", err)
	}
	return nil
}

// skipIDs makes the sequence of row ids follow the greatest id.
func (s *server) skipIDs() error {
	last := int64(0)
	for _, t := range s.list {
		if !slices.Contains(t.names(), "id") {
			continue
		}
		var id int64
		if err := s.Row("SELECT coalesce(max(id), 0) FROM " + t.name).Scan(&id); err != nil {
			return err
		}
		last = max(last, id)
	}
	if last == 0 {
		return nil
	}
	_, err := s.Exec("SELECT setval('ids', greatest(?, (SELECT last_value FROM ids)))", last)
	return err
}

func (s *server) tables() []table { return s.list }

func (s *server) identity() string { return s.id }

func (s *server) change(_ context.Context, fn func(*sqldb.Conn) error) error { return fn(s.Conn) }

func (s *server) read(_ context.Context, fn func(*sqldb.Conn) error) error { return fn(s.Conn) }

func (s *server) write(ctx context.Context, t table, rows [][]any) error {
	for _, row := range rows {
		if err := checkText(t, row); err != nil {
			return err
		}
	}
	return s.CopyFrom(ctx, t.name, t.names(), rows)
}

// checkText returns an error if a row has text that PostgreSQL cannot store.
func checkText(t table, row []any) error {
	for i, v := range row {
		text, ok := v.(string)
		switch {
		case !ok:
		case strings.ContainsRune(text, 0):
			return fmt.Errorf("PostgreSQL cannot store the column %s of %s: the text has a zero byte", t.columns[i].name,
				t.row(row))
		case !utf8.ValidString(text):
			return fmt.Errorf("PostgreSQL cannot store the column %s of %s: the text is not valid UTF-8", t.columns[i].name,
				t.row(row))
		}
	}
	return nil
}
