package sqldb

import (
	"math/bits"
	"strings"
)

// maxRows is how many rows one statement of Rows writes, and how many keys one
// of EachIn asks for, at most. Longer lists take several statements.
const maxRows = 128

// Rows gathers rows of one table, to write many with one statement: that costs
// much less than a statement for each.
type Rows struct {
	insert   string // up to and including VALUES
	conflict string // an ON CONFLICT clause, or empty
	columns  int
	args     []any
}

// NewRows returns a buffer for rows of so many columns. The statement insert
// ends with VALUES; conflict follows the rows.
func NewRows(insert, conflict string, columns int) *Rows {
	return &Rows{insert: insert, conflict: conflict, columns: columns}
}

// Add adds a row. Plain int64, string, []byte and nil cost the least.
func (r *Rows) Add(args ...any) {
	if len(args) != r.columns {
		panic("sqldb: a row of another table")
	}
	r.args = append(r.args, args...)
}

// Len returns how many rows wait.
func (r *Rows) Len() int { return len(r.args) / r.columns }

// Reset forgets the rows that wait.
func (r *Rows) Reset() {
	clear(r.args)
	r.args = r.args[:0]
}

// Flush writes the rows that wait, in their order.
func (r *Rows) Flush(c *Conn) error {
	defer r.Reset()
	for rest := r.args; len(rest) > 0; {
		n := rowsAtOnce(len(rest) / r.columns)
		if _, err := c.Exec(r.insert+tuples(n, r.columns)+r.conflict, rest[:n*r.columns]...); err != nil {
			return err
		}
		rest = rest[n*r.columns:]
	}
	return nil
}

// rowsAtOnce returns how many of n rows the next statement writes: a power of two
// or one and a half times that, so that few forms of a statement are prepared.
func rowsAtOnce(n int) int {
	power := 1 << (bits.Len(uint(n)) - 1)
	if half := power + power/2; power > 1 && half <= n {
		power = half
	}
	return min(power, maxRows)
}

// tuples writes the parameters of so many rows: (?, ?), (?, ?).
func tuples(rows, columns int) string {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return row + strings.Repeat(", "+row, rows-1)
}

// EachIn runs a query that ends with IN for keys of so many columns, many at a
// time, and calls visit for every row.
func (c *Conn) EachIn(visit func(Scanner) error, query string, columns int, keys []any) error {
	for rest := keys; len(rest) > 0; {
		n := min(len(rest)/columns, maxRows)
		padded := padKeys(rest[:n*columns], columns)
		list := "(VALUES " + tuples(len(padded)/columns, columns) + ")"
		if columns == 1 {
			list = "(?" + strings.Repeat(", ?", len(padded)-1) + ")"
		}
		if err := c.Each(visit, query+list, padded...); err != nil {
			return err
		}
		rest = rest[n*columns:]
	}
	return nil
}

// padKeys repeats the last key until there are a power of two: IN does not mind,
// and few forms of a query are prepared.
func padKeys(keys []any, columns int) []any {
	n := len(keys) / columns
	whole := 1 << bits.Len(uint(n-1))
	if whole == n {
		return keys
	}
	padded := make([]any, 0, whole*columns)
	padded = append(padded, keys...)
	for ; n < whole; n++ {
		padded = append(padded, keys[len(keys)-columns:]...)
	}
	return padded
}
