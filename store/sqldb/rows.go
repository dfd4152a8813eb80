package sqldb

import (
	"math/bits"
	"strings"
)

// maxRows is the maximum number of rows in a statement of TupleRows, and of keys in a query of
// TupleList. Longer lists take several statements.
const maxRows = 128

// Rows buffers rows of one table and writes many of them per statement. This is
// much cheaper than one statement per row.
type Rows struct {
	insert   string // up to and including VALUES
	conflict string // an ON CONFLICT clause, or empty
	columns  int
	args     []any
}

// NewRows returns a buffer for rows with the given number of columns. The text
// insert ends with VALUES. The text conflict is an ON CONFLICT clause or empty.
func NewRows(insert, conflict string, columns int) *Rows {
	return &Rows{insert: insert, conflict: conflict, columns: columns}
}

// Add adds a row. Values of type int64, string and []byte, and nil, are the
// cheapest. It panics if the number of values is not the number of columns.
func (r *Rows) Add(args ...any) {
	if len(args) != r.columns {
		panic("sqldb: wrong number of columns in Rows.Add")
	}
	r.args = append(r.args, args...)
}

// Len returns the number of buffered rows.
func (r *Rows) Len() int { return len(r.args) / r.columns }

// Reset discards the buffered rows.
func (r *Rows) Reset() {
	clear(r.args)
	r.args = r.args[:0]
}

// Flush writes the buffered rows in order. The buffer is empty afterwards, even
// if Flush fails.
func (r *Rows) Flush(c *Conn) error {
	defer r.Reset()
	for rest := r.args; len(rest) > 0; {
		var statement string
		var args []any
		statement, args, rest = c.driver.Rows(r.insert, r.conflict, r.columns, rest)
		if err := c.Queue(statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// TupleRows implements Driver.Rows with a list of VALUES.
func TupleRows(insert, conflict string, columns int, args []any) (statement string, first, rest []any) {
	n := rowsPerStatement(len(args) / columns)
	return insert + tuples(n, columns) + conflict, args[:n*columns], args[n*columns:]
}

// rowsPerStatement returns how many of n rows the next statement writes: a power
// of two or one and a half times a power of two. This limits the number of
// different statements that are prepared.
func rowsPerStatement(n int) int {
	power := 1 << (bits.Len(uint(n)) - 1)
	if half := power + power/2; power > 1 && half <= n {
		power = half
	}
	return min(power, maxRows)
}

// tuples returns the parameters of the given number of rows, such as (?, ?), (?, ?).
func tuples(rows, columns int) string {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return row + strings.Repeat(", "+row, rows-1)
}

// TupleList implements Driver.List with a list of parameters.
func TupleList(query string, columns int, keys []any) (list string, first, rest []any) {
	n := min(len(keys)/columns, maxRows)
	first = padKeys(keys[:n*columns], columns)
	if columns == 1 {
		return query + "(?" + strings.Repeat(", ?", len(first)-1) + ")", first, keys[n:]
	}
	return query + "(/*+rows*/ " + tuples(len(first)/columns, columns) + ")", first, keys[n*columns:]
}

// padKeys repeats the last key until the number of keys is a power of two. IN
// ignores duplicates, and this limits the number of different queries that are
// prepared.
func padKeys(keys []any, columns int) []any {
	n := len(keys) / columns
	size := 1 << bits.Len(uint(n-1))
	if size == n {
		return keys
	}
	padded := make([]any, 0, size*columns)
	padded = append(padded, keys...)
	for ; n < size; n++ {
		padded = append(padded, keys[len(keys)-columns:]...)
	}
	return padded
}
