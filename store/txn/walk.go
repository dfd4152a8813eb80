package txn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Walk reads the rows of a list by one index, in the order of the list.
type Walk[T any] struct {
	// From is a table with its index, and Where is the condition for the part of the
	// index that the walk reads. Args are its parameters.
	From, Where string
	Args        []any
	// Keys are the columns that order the list, and Key returns their values in a row.
	Keys []string
	Key  func(Keyed[T]) []any
	Down bool // whether the order is descending
	// Stop is the last key that the walk reads, or nil if it reads to the end. It is not
	// part of Where, because SQLite uses only one limit of each side of an index.
	Stop []any

	// Columns and Joins complete the query for the rows, which Scan reads.
	Columns, Joins string
	Scan           func(Scanner) (Keyed[T], error)
	// Filter is the condition that the index does not cover, which begins with AND. It
	// is empty if the index covers all. FilterArgs are its parameters.
	Filter     string
	FilterArgs []any
}

// WindowRows is the number of rows that a walk with a filter examines in one turn. Most
// often the first ones fill the page.
const WindowRows = 500

// Run reads up to limit rows after a position, and examines at most budget rows.
func (w Walk[T]) Run(c *sqldb.Conn, position []any, limit, budget int) (p Section[T], err error) {
	if w.Filter == "" {
		p, err = w.Read(c, position, nil, min(limit, budget))
		p.Examined = len(p.Rows)
		return p, err
	}

	for p.Examined < budget {
		if p.Examined > 0 {
			if err := c.Long(); err != nil {
				return p, err
			}
		}
		window := min(WindowRows, budget-p.Examined)
		p.Examined += window

		var next Section[T]
		var to []any
		err := c.InTurn(func() (err error) {
			if to, err = w.edge(c, position, window); err != nil {
				return err
			}
			next, err = w.Read(c, position, to, limit-len(p.Rows))
			return err
		})
		p.Rows, p.End = append(p.Rows, next.Rows...), next.End
		if err != nil || next.End != nil || to == nil {
			return p, err
		}
		position, p.End = to, to
		if len(p.Rows) == limit {
			return p, nil
		}
	}
	return p, nil
}

// edge returns the key of the n-th row after a position, or nil if there are fewer.
func (w Walk[T]) edge(c *sqldb.Conn, position []any, n int) (key []any, err error) {
	where, args := w.between(position, w.Stop)
	query := "SELECT " + strings.Join(w.Keys, ", ") + " FROM " + w.From + " WHERE " + where + w.order() +
		" LIMIT 1 OFFSET ?"
	err = c.EachLong(func(row Scanner) error {
		key = make([]any, len(w.Keys))
		dest := make([]any, len(w.Keys))
		for i := range key {
			dest[i] = &key[i]
		}
		return row.Scan(dest...)
	}, query, append(args, n-1)...)
	if err != nil {
		return nil, fmt.Errorf("find the end of the page: %w", err)
	}
	return key, nil
}

// ErrFull ends a query when the page is full.
var ErrFull = errors.New("the page is full")

// Read reads up to limit rows that match the filter, after a position and up to to, or to
// the end of the walk if to is nil. The section ends earlier if its rows are too large.
func (w Walk[T]) Read(c *sqldb.Conn, position, to []any, limit int) (p Section[T], err error) {
	if to == nil {
		to = w.Stop
	}
	where, args := w.between(position, to)
	query := "SELECT " + w.Columns + " FROM " + w.From + w.Joins + " WHERE " + where + w.Filter + w.order() + " LIMIT ?"
	args = append(append(args, w.FilterArgs...), limit+1)

	each := c.Each
	if w.Filter != "" {
		each = c.EachLong
	}
	p, err = collect(limit, w.Scan, w.Key, func(visit func(Scanner) error) error { return each(visit, query, args...) })
	if err != nil {
		return p, fmt.Errorf("read rows: %w", err)
	}
	return p, nil
}

// ReadPage reads up to limit rows of a query that examines only the rows it returns. The
// last parameter of the query is the number of rows.
func ReadPage[T any](
	c *sqldb.Conn, scan func(Scanner) (Keyed[T], error), limit int, query string, args ...any,
) (Section[T], error) {
	return AskPage(c, scan, limit, query, args...)()
}

// AskPage asks the query of ReadPage.
func AskPage[T any](
	c *sqldb.Conn, scan func(Scanner) (Keyed[T], error), limit int, query string, args ...any,
) func() (Section[T], error) {
	asked := c.Ask(query, append(args, limit+1)...)
	return func() (Section[T], error) { return collect(limit, scan, IDOf[T], asked.Each) }
}

// collect scans the rows that each visits, until there are more than limit or they are too
// large. There is at least one row if any is visited.
func collect[T any](
	limit int, scan func(Scanner) (Keyed[T], error), key func(Keyed[T]) []any, each func(func(Scanner) error) error,
) (p Section[T], err error) {
	counter := &sizeCounter{}
	err = each(func(row Scanner) error {
		counter.row = row
		r, err := scan(counter)
		if err != nil {
			return err
		}
		if len(p.Rows) == limit || len(p.Rows) > 0 && counter.size > MaxPageBytes {
			p.End = key(p.Rows[len(p.Rows)-1])
			return ErrFull
		}
		p.Rows = append(p.Rows, r)
		return nil
	})
	if errors.Is(err, ErrFull) {
		err = nil
	}
	return p, err
}

// between returns the conditions for the rows after a position, and up to to. Both may be
// nil.
func (w Walk[T]) between(position, to []any) (where string, args []any) {
	where, args = w.Where, slices.Clone(w.Args)
	after, upTo := ">", "<="
	if w.Down {
		after, upTo = "<", ">="
	}
	if position != nil {
		where, args = where+" AND "+w.compare(after), append(args, position...)
	}
	if to != nil {
		where, args = where+" AND "+w.compare(upTo), append(args, to...)
	}
	return where, args
}

// compare returns the comparison of the keys with parameters.
func (w Walk[T]) compare(operator string) string {
	if len(w.Keys) == 1 {
		return w.Keys[0] + " " + operator + " ?"
	}
	return "(" + strings.Join(w.Keys, ", ") + ") " + operator + " (?" + strings.Repeat(", ?", len(w.Keys)-1) + ")"
}

func (w Walk[T]) order() string {
	if w.Down {
		return " ORDER BY " + strings.Join(w.Keys, " DESC, ") + " DESC"
	}
	return " ORDER BY " + strings.Join(w.Keys, ", ")
}

// RunAll reads a list by several walks in the same order, and merges their rows. A row
// that several walks find is in the list once.
func RunAll[T any](c *sqldb.Conn, walks []Walk[T], position []any, limit int) (p Section[T], err error) {
	switch len(walks) {
	case 0:
		return p, nil
	case 1:
		return walks[0].Run(c, position, limit, MaxExamined)
	}

	type keyedRow struct {
		key []any
		row Keyed[T]
	}
	var rows []keyedRow
	for _, w := range walks {
		next, err := w.Run(c, position, limit, MaxExamined/len(walks))
		if err != nil {
			return p, err
		}
		for _, r := range next.Rows {
			rows = append(rows, keyedRow{w.Key(r), r})
		}
		if next.End != nil && (p.End == nil || w.before(next.End, p.End)) {
			p.End = next.End
		}
	}

	w := walks[0]
	slices.SortFunc(rows, func(a, b keyedRow) int {
		if w.Down {
			a, b = b, a
		}
		return CompareKeys(a.key, b.key)
	})
	rows = slices.CompactFunc(rows, func(a, b keyedRow) bool { return CompareKeys(a.key, b.key) == 0 })
	for _, r := range rows {
		if p.End != nil && w.before(p.End, r.key) {
			break // rows of some walks are missing from here on
		}
		if len(p.Rows) == limit {
			p.End = w.Key(p.Rows[limit-1])
			break
		}
		p.Rows = append(p.Rows, r.row)
	}
	return p, nil
}

// before reports whether a is before b in the order of the walk.
func (w Walk[T]) before(a, b []any) bool {
	if w.Down {
		a, b = b, a
	}
	return CompareKeys(a, b) < 0
}

// CompareKeys compares keys, whose values are numbers.
func CompareKeys(a, b []any) int {
	return slices.CompareFunc(a, b, func(a, b any) int { return cmp.Compare(a.(int64), b.(int64)) })
}

// A sizeCounter adds up the lengths of the strings and byte slices in the rows that it
// scans. It does not count named types of strings, whose values are short.
type sizeCounter struct {
	row  Scanner
	size int
}

// Scan implements Scanner.
func (c *sizeCounter) Scan(dest ...any) error {
	err := c.row.Scan(dest...)
	for _, d := range dest {
		switch d := d.(type) {
		case *string:
			c.size += len(*d)
		case *[]byte:
			c.size += len(*d)
		}
	}
	return err
}

// MaxWalks is the maximum number of indexes that one page is read by.
const MaxWalks = 50
