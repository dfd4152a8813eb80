package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A hardened connector makes connections on which a schema runs nothing, also not what somebody adds
// to it while the file is open: there are no triggers and no views, functions and virtual tables that
// reach beyond the database are only for statements of ledgerd, and no statement writes to the schema
// table, or to pages behind the back of SQLite.
type hardened struct{ driver.Connector }

// openHardened opens a database by its URI.
func openHardened(uri string) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(uri)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(hardened{connector}), nil
}

// Connect implements driver.Connector.
func (h hardened) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := h.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		configure(conn, sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
		configure(conn, sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, false),
		configure(conn, sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
		configure(conn, sqlite3.SQLITE_DBCONFIG_DEFENSIVE, true),
	)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// setDefensive switches the defensive mode of a connection.
func setDefensive(c *sqldb.Conn, on bool) error {
	return Raw(c, func(conn any) error { return configure(conn, sqlite3.SQLITE_DBCONFIG_DEFENSIVE, on) })
}

// vaSlot is the size of an argument in a list of libc.VaList, in bytes.
const vaSlot = 8

// configure calls sqlite3_db_config for an option that is on or off. The driver has no function for it,
// so the handle of the connection is read from the driver's own field.
func configure(conn any, option int32, on bool) error {
	handle := reflect.Indirect(reflect.ValueOf(conn)).FieldByName("db")
	if handle.Kind() != reflect.Uintptr {
		return fmt.Errorf("the driver's %T has no handle of the connection in its field db", conn)
	}
	value := int32(0)
	if on {
		value = 1
	}

	tls := libc.NewTLS()
	defer tls.Close()
	args := tls.Alloc(2 * vaSlot)
	defer tls.Free(2 * vaSlot)
	list := libc.VaList(args, value, uintptr(0)) // 0: the new value is not asked for
	if code := sqlite3.Xsqlite3_db_config(tls, uintptr(handle.Uint()), option, list); code != sqlite3.SQLITE_OK {
		return fmt.Errorf("set option %d of a connection: SQLite returns %d", option, code)
	}
	return nil
}
