package transfer

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"hash"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// eachRow calls visit with each row of a table, which it may keep. The values are in the order of
// the columns: int64, string, []byte, or nil for NULL.
func eachRow(c *sqldb.Conn, t table, visit func(row []any) error) error {
	return c.EachLong(func(scanner sqldb.Scanner) error {
		row, err := scanRow(scanner, t)
		if err != nil {
			return err
		}
		return visit(row)
	}, t.selectAll())
}

// scanRow scans a row. Text is scanned as such, since the type of some columns is of an extension.
func scanRow(scanner sqldb.Scanner, t table) ([]any, error) {
	row, dest, texts := make([]any, len(t.columns)), make([]any, len(t.columns)), make([]sql.NullString, len(t.columns))
	for i, c := range t.columns {
		dest[i] = &row[i]
		if c.kind == "text" {
			dest[i] = &texts[i]
		}
	}
	if err := scanner.Scan(dest...); err != nil {
		return nil, err
	}

	for i := range row {
		if texts[i].Valid {
			row[i] = texts[i].String
		}
		if b, ok := row[i].([]byte); ok && b == nil { // so SQLite's driver returns an empty blob
			row[i] = []byte{}
		}
	}
	return row, nil
}

// sizeOf returns the approximate size of a row in memory, in bytes.
func sizeOf(row []any) (size int) {
	for _, v := range row {
		size += 32
		switch v := v.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		}
	}
	return size
}

// A sum sums up the rows of a table.
type sum struct {
	rows   int64
	hash   hash.Hash // of the rows in their order
	buffer []byte
}

func newSum() *sum { return &sum{hash: sha256.New()} }

// equals reports whether two sums are of the same rows.
func (s *sum) equals(other *sum) bool {
	return s.rows == other.rows && bytes.Equal(s.hash.Sum(nil), other.hash.Sum(nil))
}

// add adds the next row. Values are hashed with their type and length.
func (s *sum) add(row []any) {
	b := s.buffer[:0]
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
		case string:
			b = binary.BigEndian.AppendUint64(append(b, 't'), uint64(len(v)))
			b = append(b, v...)
		case []byte:
			b = binary.BigEndian.AppendUint64(append(b, 'b'), uint64(len(v)))
			b = append(b, v...)
		}
	}
	s.hash.Write(b)
	s.buffer, s.rows = b, s.rows+1
}
