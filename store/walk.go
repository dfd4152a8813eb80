package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A walk reads the rows of a list by one index, in the order of the list.
type walk[T any] struct {
	// from is a table with its index, and where is the condition for the part of the
	// index that the walk reads. args are its parameters.
	from, where string
	args        []any
	// keys are the columns that order the list, and key returns their values in a row.
	keys []string
	key  func(keyed[T]) []any
	down bool // whether the order is descending
	// stop is the last key that the walk reads, or nil if it reads to the end. It is not
	// part of where, because SQLite uses only one limit of each side of an index.
	stop []any

	// columns and joins complete the query for the rows, which scan reads.
	columns, joins string
	scan           func(scanner) (keyed[T], error)
	// filter is the condition that the index does not cover, which begins with AND. It
	// is empty if the index covers all. filterArgs are its parameters.
	filter     string
	filterArgs []any
}

// windowRows is the number of rows that a walk with a filter examines in one turn. Most
// often the first ones fill the page.
const windowRows = 500

// run reads up to limit rows after a position, and examines at most budget rows.
func (w walk[T]) run(c *sqldb.Conn, position []any, limit, budget int) (p part[T], err error) {
	if w.filter == "" {
		p, err = w.read(c, position, nil, min(limit, budget))
		p.examined = len(p.rows)
		return p, err
	}

	for p.examined < budget {
		if p.examined > 0 {
			if err := c.Long(); err != nil {
				return p, err
			}
		}
		window := min(windowRows, budget-p.examined)
		p.examined += window

		var next part[T]
		var to []any
		err := c.InTurn(func() (err error) {
			if to, err = w.edge(c, position, window); err != nil {
				return err
			}
			next, err = w.read(c, position, to, limit-len(p.rows))
			return err
		})
		p.rows, p.end = append(p.rows, next.rows...), next.end
		if err != nil || next.end != nil || to == nil {
			return p, err
		}
		position, p.end = to, to
		if len(p.rows) == limit {
			return p, nil
		}
	}
	return p, nil
}

// edge returns the key of the n-th row after a position, or nil if there are fewer.
func (w walk[T]) edge(c *sqldb.Conn, position []any, n int) (key []any, err error) {
	where, args := w.between(position, w.stop)
	query := "SELECT " + strings.Join(w.keys, ", ") + " FROM " + w.from + " WHERE " + where + w.order() +
		" LIMIT 1 OFFSET ?"
	err = c.EachLong(func(row scanner) error {
		key = make([]any, len(w.keys))
		dest := make([]any, len(w.keys))
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

// errFull ends a query when the page is full.
var errFull = errors.New("the page is full")

// read reads up to limit rows that match the filter, after a position and up to to, or to
// the end of the walk if to is nil. The part ends earlier if its rows are too large.
func (w walk[T]) read(c *sqldb.Conn, position, to []any, limit int) (p part[T], err error) {
	if to == nil {
		to = w.stop
	}
	where, args := w.between(position, to)
	query := "SELECT " + w.columns + " FROM " + w.from + w.joins + " WHERE " + where + w.filter + w.order() + " LIMIT ?"
	args = append(append(args, w.filterArgs...), limit+1)

	each := c.Each
	if w.filter != "" {
		each = c.EachLong
	}
	p, err = collect(limit, w.scan, w.key, func(visit func(scanner) error) error { return each(visit, query, args...) })
	if err != nil {
		return p, fmt.Errorf("read rows: %w", err)
	}
	return p, nil
}

// readPage reads up to limit rows of a query that examines only the rows it returns. The
// last parameter of the query is the number of rows.
func readPage[T any](
	c *sqldb.Conn, scan func(scanner) (keyed[T], error), limit int, query string, args ...any,
) (part[T], error) {
	return collect(limit, scan, idOf[T], func(visit func(scanner) error) error {
		return c.Each(visit, query, append(args, limit+1)...)
	})
}

// collect scans the rows that each visits, until there are more than limit or they are too
// large. There is at least one row if any is visited.
func collect[T any](
	limit int, scan func(scanner) (keyed[T], error), key func(keyed[T]) []any, each func(func(scanner) error) error,
) (p part[T], err error) {
	counter := &sizeCounter{}
	err = each(func(row scanner) error {
		counter.row = row
		r, err := scan(counter)
		if err != nil {
			return err
		}
		if len(p.rows) == limit || len(p.rows) > 0 && counter.size > maxPageBytes {
			p.end = key(p.rows[len(p.rows)-1])
			return errFull
		}
		p.rows = append(p.rows, r)
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return p, err
}

// between returns the conditions for the rows after a position, and up to to. Both may be
// nil.
func (w walk[T]) between(position, to []any) (where string, args []any) {
	where, args = w.where, slices.Clone(w.args)
	after, upTo := ">", "<="
	if w.down {
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
func (w walk[T]) compare(operator string) string {
	if len(w.keys) == 1 {
		return w.keys[0] + " " + operator + " ?"
	}
	return "(" + strings.Join(w.keys, ", ") + ") " + operator + " (?" + strings.Repeat(", ?", len(w.keys)-1) + ")"
}

func (w walk[T]) order() string {
	if w.down {
		return " ORDER BY " + strings.Join(w.keys, " DESC, ") + " DESC"
	}
	return " ORDER BY " + strings.Join(w.keys, ", ")
}

// runAll reads a list by several walks in the same order, and merges their rows. A row
// that several walks find is in the list once.
func runAll[T any](c *sqldb.Conn, walks []walk[T], position []any, limit int) (p part[T], err error) {
	switch len(walks) {
	case 0:
		return p, nil
	case 1:
		return walks[0].run(c, position, limit, maxExamined)
	}

	type keyedRow struct {
		key []any
		row keyed[T]
	}
	var rows []keyedRow
	for _, w := range walks {
		next, err := w.run(c, position, limit, maxExamined/len(walks))
		if err != nil {
			return p, err
		}
		for _, r := range next.rows {
			rows = append(rows, keyedRow{w.key(r), r})
		}
		if next.end != nil && (p.end == nil || w.before(next.end, p.end)) {
			p.end = next.end
		}
	}

	w := walks[0]
	slices.SortFunc(rows, func(a, b keyedRow) int {
		if w.down {
			a, b = b, a
		}
		return compareKeys(a.key, b.key)
	})
	rows = slices.CompactFunc(rows, func(a, b keyedRow) bool { return compareKeys(a.key, b.key) == 0 })
	for _, r := range rows {
		if p.end != nil && w.before(p.end, r.key) {
			break // rows of some walks are missing from here on
		}
		if len(p.rows) == limit {
			p.end = w.key(p.rows[limit-1])
			break
		}
		p.rows = append(p.rows, r.row)
	}
	return p, nil
}

// before reports whether a is before b in the order of the walk.
func (w walk[T]) before(a, b []any) bool {
	if w.down {
		a, b = b, a
	}
	return compareKeys(a, b) < 0
}

// compareKeys compares keys, whose values are numbers.
func compareKeys(a, b []any) int {
	return slices.CompareFunc(a, b, func(a, b any) int { return cmp.Compare(a.(int64), b.(int64)) })
}

// A sizeCounter adds up the lengths of the strings and byte slices in the rows that it
// scans. It does not count named types of strings, whose values are short.
type sizeCounter struct {
	row  scanner
	size int
}

// Scan implements scanner.
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
