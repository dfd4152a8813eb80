package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Session is one connection, for a command that fills a database.
type Session struct {
	*sqldb.Conn
	conn *conn
}

// Connect connects to the database at a URL. It changes nothing in it.
func Connect(ctx context.Context, url string) (*Session, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	c := &conn{hosts: anyHost(config), traffic: new(traffic)}
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	s := &Session{sqldb.NewConn(c, &dialect), c}
	if err := checkServer(s.Conn); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// learnTypes registers the types of columns that the driver does not know.
func (s *Session) learnTypes() error {
	var oid uint32
	if err := s.Row("SELECT 'citext'::regtype::oid").Scan(&oid); err != nil {
		return fmt.Errorf("read the types: %w", err)
	}
	s.conn.pgx.TypeMap().RegisterType(&pgtype.Type{Name: "citext", OID: oid, Codec: pgtype.TextCodec{}})
	return nil
}

// Create creates the tables of a database that has none. It returns an error if the schema is then
// not that of this release.
func (s *Session) Create() error {
	version, err := checkObjects(s.Conn)
	if err == nil && version == 0 {
		err = migrate(s.Conn, Options{})
	}
	if err != nil {
		return err
	}
	if err := checkSchema(s.Conn); err != nil {
		return err
	}
	return s.learnTypes()
}

// CopyFrom adds rows to a table by a COPY. Values have the types of their columns: int64, string,
// []byte, or nil for NULL.
func (s *Session) CopyFrom(ctx context.Context, table string, columns []string, rows [][]any) error {
	if err := s.Send(); err != nil {
		return err
	}
	_, err := s.conn.pgx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
	return err
}
