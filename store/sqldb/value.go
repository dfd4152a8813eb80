package sqldb

import (
	"database/sql"
	"errors"
	"strings"
)

// A Scanner is one row of a result.
type Scanner interface{ Scan(dest ...any) error }

// Lines returns the values of a column that has one in each line; nil without any.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// A ValueError is the error of a row with a value that cannot be read.
type ValueError struct {
	Query string
	// Column is the number of the column in the result of the query, from 0; -1 if the error is not of one.
	Column int
	// Row has the values of all columns, as the driver returns them; nil if they are not known.
	Row []any
	Err error
}

func (e *ValueError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the driver, or of the type of the value.
func (e *ValueError) Unwrap() error { return e.Err }

// A checkedRow is a row whose errors are those of its values.
type checkedRow struct {
	Scanner
	query  string
	values []any // where the last Scan has put them
	failed *ValueError
}

// Scan implements Scanner.
func (r *checkedRow) Scan(dest ...any) error {
	r.values, r.failed = dest, nil
	err := r.Scanner.Scan(dest...)
	if err == nil {
		return nil
	}
	r.failed = r.error(err)
	return r.failed
}

// error returns the error of a row.
func (r *checkedRow) error(err error) *ValueError {
	e := &ValueError{Query: r.query, Column: -1, Err: err}
	scan := func(column int, dest any) ([]any, error) {
		row, places := make([]any, len(r.values)), make([]any, len(r.values))
		for i := range row {
			places[i] = &row[i]
		}
		if dest != nil {
			places[column] = dest
		}
		return row, r.Scanner.Scan(places...)
	}

	row, failed := scan(0, nil)
	if failed != nil {
		return e
	}
	e.Row = row
	for i, dest := range r.values {
		if _, failed := scan(i, dest); failed != nil {
			e.Column = i
			break
		}
	}
	return e
}

// A singleRow is the row of Conn.Row. Its errors are those of its values.
type singleRow struct {
	Scanner
	query string
}

// Scan implements Scanner.
func (r singleRow) Scan(dest ...any) error {
	err := r.Scanner.Scan(dest...)
	if err == nil || errors.Is(err, sql.ErrNoRows) || ClassOf(err) != Other {
		return err
	}
	return &ValueError{Query: r.query, Column: -1, Err: err}
}
