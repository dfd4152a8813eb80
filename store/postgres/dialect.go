package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// dialect is the dialect of PostgreSQL. It has statistics and chooses plans by them, so the hints
// of statements stay comments.
var dialect = sqldb.Dialect{
	Rewrite: []string{
		"overlaps", `"overlaps"`, // a reserved word
		"AS BLOB)", "AS bytea)",
		"ping ->> 'id'", "ping::jsonb ->> 'id'",
		"coalesce(e.body, o.ping)", "coalesce(e.body, convert_to(o.ping, 'UTF8'))",
	},
	Numbered: true,
	NextID:   "SELECT nextval('ids') AS ",
	IDs:      idsPerValue,
	Classify: classify,
}

// idsPerValue is the increment of the sequence of row ids.
const idsPerValue = 64

// Codes of errors (PostgreSQL, appendix A).
const (
	uniqueViolation  = "23505"
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
	serialization    = "40001"
	diskFull         = "53100"
	queryCanceled    = "57014"
	readOnly         = "25006" // the server is a standby
	idleInTx         = "25P03" // the server has ended the transaction
	noRight          = "42501"
)

// classify implements sqldb.Dialect.Classify.
func classify(err error) sqldb.Class {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classOfCode(e.Code)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || isLost(err) {
		return sqldb.Unreachable
	}
	return sqldb.Other
}

// isLost reports whether an error says that the connection was lost.
func isLost(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// classOfCode returns the class of an error of the server.
func classOfCode(code string) sqldb.Class {
	switch code {
	case uniqueViolation:
		return sqldb.Duplicate
	case diskFull:
		return sqldb.Full
	case lockNotAvailable, deadlockDetected, serialization:
		return sqldb.Locked
	case readOnly, idleInTx:
		return sqldb.Unreachable
	case queryCanceled:
		return sqldb.Other
	}

	switch code[:2] {
	case "08", "28", "3D", "53", "57": // connections, passwords, no such database, resources, shutdown
		return sqldb.Unreachable
	case "58", "XX": // the system, and corruption
		return sqldb.Failing
	}
	if code == noRight {
		return sqldb.Failing
	}
	return sqldb.Other
}

// SQL translates a statement to the syntax of PostgreSQL.
func SQL(statement string) string { return dialect.SQL(statement) }

// failing gives an error of the driver its class.
func failing(err error) error {
	if _, ok := errors.AsType[*sqldb.Error](err); ok {
		return err
	}
	return &sqldb.Error{Class: classify(err), Err: err}
}

// uncertain returns the error of a transaction whose COMMIT was sent. If the connection was lost
// before the answer came, it may be on disk.
func uncertain(err error) error {
	// After FATAL, the server has ended the session, perhaps after the COMMIT.
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.SeverityUnlocalized == "ERROR" || pgconn.SafeToRetry(err) {
		return failing(err)
	}
	return &sqldb.Error{Class: sqldb.Uncertain, Err: err}
}
