package transfer

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// fileSchema describes the schema of a file. Other programs have tables in it, too: SQLite itself,
// and Litestream.
func fileSchema() description {
	const tables = `
FROM (SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND
    substr(name, 1, 7) <> 'sqlite_' AND substr(name, 1, 12) <> '_litestream_') t `
	const keys = "JOIN pragma_table_info(t.name) c WHERE c.pk > 0 ORDER BY t.name, c.pk"
	return description{
		columns:    "SELECT t.name, c.name, c.type" + tables + "JOIN pragma_table_info(t.name) c",
		keys:       "SELECT t.name, c.name" + tables + keys,
		references: `SELECT t.name, f."table"` + tables + "JOIN pragma_foreign_key_list(t.name) f",
		kinds:      map[string]string{"INTEGER": "integer", "TEXT": "text", "BLOB": "blob"},
	}
}

// inBackground describes reads that take as long as they need.
func inBackground() sqldb.Reader { return sqldb.Reader{Lane: sqldb.Writes} }

// fillFile creates a file, and runs fn with it as the target.
func fillFile(ctx context.Context, path string, fn func(target) error) (err error) {
	lock, err := sqlite.TakeLock(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	_, err = sqlite.Create(path, func(temp string) error { return fillTemp(ctx, temp, fn) })
	return err
}

// fillTemp creates the tables of a file, and runs fn.
func fillTemp(ctx context.Context, path string, fn func(target) error) (err error) {
	empty, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	if err := empty.Close(); err != nil {
		return err
	}

	hook := func() {}
	db, err := sqlite.Open(ctx, path, sqlite.Options{Hooks: sqldb.Hooks{
		BeforeCommit: func(*sqldb.Conn) error { return nil }, AfterCommit: hook, AfterRollback: hook,
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f := &file{db: db}
	err = db.Read(ctx, inBackground(), func(c *sqldb.Conn) (err error) {
		f.list, err = fileSchema().tables(c)
		return err
	})
	if err != nil {
		return err
	}
	return fn(f)
}

// A file is a target. Each write is a transaction.
type file struct {
	db   *sqlite.DB
	list []table
}

func (f *file) tables() []table { return f.list }

func (f *file) identity() string { return "" }

func (f *file) change(ctx context.Context, fn func(*sqldb.Conn) error) error {
	return f.db.Write(ctx, sqldb.Write{Do: fn})
}

func (f *file) read(ctx context.Context, fn func(*sqldb.Conn) error) error {
	return f.db.Read(ctx, inBackground(), fn)
}

func (f *file) write(ctx context.Context, t table, rows [][]any) error {
	return f.change(ctx, func(c *sqldb.Conn) error {
		buffer := sqldb.NewRows(t.insert(), "", len(t.columns))
		for _, row := range rows {
			buffer.Add(row...)
		}
		return buffer.Flush(c)
	})
}
