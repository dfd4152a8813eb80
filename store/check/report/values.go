package report

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// unreadable reports a value that cannot be read, so that its row is left out.
func (r *Reporter) unreadable(e *sqldb.ValueError) { r.unread(e, "so the row is left out") }

// unread reports a value that cannot be read, and what follows. If it is read several times, that is one problem.
func (r *Reporter) unread(e *sqldb.ValueError, follows string) {
	columns, from := split(e.Query)
	table, column, err := tableOf(from, ""), "a value", e.Err
	if e.Column >= 0 && e.Column < len(columns) {
		prefix, name := nameOf(columns[e.Column])
		table, column = tableOf(from, prefix), name
		err = cmp.Or(errors.Unwrap(err), err) // without the number of the column
	}
	row := "row of " + table
	for i, v := range e.Row {
		if i == e.Column || i >= len(columns) {
			continue
		}
		if prefix, name := nameOf(columns[i]); tableOf(from, prefix) == table {
			row += shown(name, v)
		}
	}

	r.problemOnce(Problem{
		Check: "value", Row: row, Problem: fmt.Sprintf("%s cannot be read, %s: %v", column, follows, err),
	})
}

// shown returns a column and its value if that names the row in a problem. Others may be secrets.
func shown(column string, value any) string {
	switch v := value.(type) {
	case int64:
		if column == "id" || strings.HasSuffix(column, "_id") {
			return fmt.Sprintf(" %s %d", column, v)
		}
	case string:
		if strings.HasSuffix(column, "_id") || column == "sha" || column == "dn" {
			return fmt.Sprintf(" %s %s", column, v)
		}
	case []byte:
		if column == "digest" {
			return fmt.Sprintf(" %s %x", column, v)
		}
	}
	return ""
}

var (
	tables    = regexp.MustCompile(`\b(?:FROM|JOIN) (\w+)(?: (\w+))?`)
	columnsOf = regexp.MustCompile(`(?:(\w+)\.)?(\w+)`)
)

// split returns the columns of a query, and the text from its first FROM on.
func split(query string) (columns []string, from string) {
	text := strings.TrimPrefix(strings.TrimSpace(query), "SELECT ")
	depth, begin := 0, 0
	for i, char := range text {
		switch {
		case char == '(':
			depth++
		case char == ')':
			depth--
		case depth == 0 && char == ',':
			columns, begin = append(columns, text[begin:i]), i+1
		case depth == 0 && strings.HasPrefix(text[i:], "FROM "):
			return append(columns, text[begin:i]), text[i:]
		}
	}
	return nil, text
}

// nameOf returns the name of a column, and the prefix that says of which table it is; empty without one.
func nameOf(column string) (prefix, name string) {
	column = strings.TrimPrefix(strings.TrimSpace(column), "coalesce(")
	if m := columnsOf.FindStringSubmatch(column); m != nil {
		return m[1], m[2]
	}
	return "", column
}

// tableOf returns the table for which a prefix stands; the first one without a prefix.
func tableOf(from, prefix string) (first string) {
	for _, m := range tables.FindAllStringSubmatch(from, -1) {
		if prefix != "" && (m[2] == prefix || m[1] == prefix) {
			return m[1]
		}
		if first == "" {
			first = m[1]
		}
	}
	return first
}
