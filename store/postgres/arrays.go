package postgres

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Lists are sent as arrays, one for each column: their statements have the same text whatever their
// length is, and few parameters.

// types are the types of the columns of all tables, by table and column.
type types map[[2]string]string

// readTypes reads the types of the columns.
func readTypes(c *sqldb.Conn) (types, error) {
	all := make(types)
	err := c.Each(func(row sqldb.Scanner) error {
		var table, column, kind string
		err := row.Scan(&table, &column, &kind)
		all[[2]string{table, column}] = kind
		return err
	}, `
SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`)
	if err != nil {
		return nil, fmt.Errorf("read the types of columns: %w", err)
	}
	return all, nil
}

var insertInto = regexp.MustCompile(`^\s*INSERT INTO (\w+) \(([\w,\s]+)\) VALUES $`)

// An inserting is an INSERT of rows from arrays.
type inserting struct {
	text  string
	kinds []string // the types of the columns
}

// inserting returns the INSERT of rows from arrays for one that ends with VALUES. It is nil if the
// columns are not known.
func (t types) inserting(insert, conflict string) *inserting {
	match := insertInto.FindStringSubmatch(insert)
	if match == nil {
		return nil
	}
	i := new(inserting)
	var arrays []string
	for column := range strings.SplitSeq(match[2], ",") {
		kind, ok := t[[2]string{match[1], strings.TrimSpace(column)}]
		if !ok {
			return nil
		}
		i.kinds = append(i.kinds, kind)
		arrays = append(arrays, fmt.Sprintf("?::%s[]", kind))
	}
	i.text = strings.TrimSuffix(insert, "VALUES ") + "SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")" + conflict
	return i
}

// column returns the values of a column as an array.
func column(kind string, n, columns int, args []any) any {
	switch kind {
	case "bigint":
		return array[int64](n, columns, args)
	case "bytea":
		return array[[]byte](n, columns, args)
	default:
		return array[string](n, columns, args)
	}
}

// array returns the values of a column, nil for NULL.
func array[T any](n, columns int, args []any) []*T {
	values := make([]*T, 0, len(args)/columns)
	for ; n < len(args); n += columns {
		switch v := argument(args[n]).(type) {
		case T:
			values = append(values, &v)
		case nil:
			values = append(values, nil)
		default:
			panic(fmt.Sprintf("postgres: %T in a column of another type", v)) // a mistake in a statement
		}
	}
	return values
}

// arguments converts arguments to the types of columns. Flags are numbers, as in SQLite.
func arguments(args []any) []any {
	converted := make([]any, len(args))
	for i, arg := range args {
		converted[i] = argument(arg)
	}
	return converted
}

func argument(arg any) any {
	switch arg.(type) {
	case nil, int64, []byte, []*int64, []*string, []*[]byte:
		return arg
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(arg)
	if err != nil {
		return arg // the driver reports it
	}
	switch v := value.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case string:
		return text(v)
	}
	return value
}

// text returns text that the database can store. It has neither zero bytes nor invalid UTF-8,
// which become U+FFFD.
func text(s string) string {
	if strings.ContainsRune(s, 0) {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
