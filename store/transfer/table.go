package transfer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A table is a table of the schema, as the database itself describes it.
type table struct {
	name    string
	columns []column // by name
	key     []string // columns of the primary key
	refers  []string // tables that it has foreign keys to
}

// A column is a column of a table. Its type is that of its values: integer, text or blob.
type column struct{ name, kind string }

// names returns the names of the columns.
func (t table) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// selectAll is a query for all rows. Their order is the same on every engine, because text
// compares by its bytes.
func (t table) selectAll() string {
	columns := strings.Join(t.names(), ", ")
	order := columns
	if len(t.key) > 0 {
		order = strings.Join(t.key, ", ")
	}
	return "SELECT " + columns + " FROM " + t.name + " ORDER BY " + order
}

// insert is the begin of an INSERT of rows, up to VALUES.
func (t table) insert() string {
	return "INSERT INTO " + t.name + " (" + strings.Join(t.names(), ", ") + ") VALUES "
}

// row names a row by its primary key.
func (t table) row(values []any) string {
	var parts []string
	for i, c := range t.columns {
		if !slices.Contains(t.key, c.name) {
			continue
		}
		if b, ok := values[i].([]byte); ok {
			parts = append(parts, fmt.Sprintf("%s %x", c.name, b))
		} else {
			parts = append(parts, fmt.Sprintf("%s %v", c.name, values[i]))
		}
	}
	return fmt.Sprintf("the row of table %s with %s", t.name, strings.Join(parts, ", "))
}

// A description has the queries that describe a schema. Each returns names of tables first: with
// the name and type of each column, with the columns of the primary key in their order, and with
// the tables of foreign keys.
type description struct {
	columns, keys, references string
	// kinds has the kinds of columns by their types.
	kinds map[string]string
}

// tables reads the tables of a database, each after those that it refers to.
func (d description) tables(c *sqldb.Conn) ([]table, error) {
	byName := make(map[string]*table)
	err := c.Each(func(row sqldb.Scanner) error {
		var name, columnName, columnType string
		if err := row.Scan(&name, &columnName, &columnType); err != nil {
			return err
		}
		kind, ok := d.kinds[columnType]
		if !ok {
			return fmt.Errorf("column %s of table %s has the type %s, which no column of a ledger has", columnName, name,
				columnType)
		}
		if byName[name] == nil {
			byName[name] = &table{name: name}
		}
		byName[name].columns = append(byName[name].columns, column{columnName, kind})
		return nil
	}, d.columns)
	if err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}

	pairs := func(query string, add func(t *table, name string)) error {
		return c.Each(func(row sqldb.Scanner) error {
			var of, name string
			err := row.Scan(&of, &name)
			if t := byName[of]; t != nil {
				add(t, name)
			}
			return err
		}, query)
	}
	if err := pairs(d.keys, func(t *table, name string) { t.key = append(t.key, name) }); err != nil {
		return nil, fmt.Errorf("read the primary keys: %w", err)
	}
	if err := pairs(d.references, func(t *table, name string) { t.refers = append(t.refers, name) }); err != nil {
		return nil, fmt.Errorf("read the foreign keys: %w", err)
	}
	return inOrder(byName)
}

// inOrder returns the tables in an order in which each comes after those that it refers to.
func inOrder(byName map[string]*table) (ordered []table, err error) {
	var names []string
	for name, t := range byName {
		names = append(names, name)
		slices.SortFunc(t.columns, func(a, b column) int { return strings.Compare(a.name, b.name) })
	}
	slices.Sort(names)

	done := make(map[string]bool)
	for len(ordered) < len(names) {
		before := len(ordered)
		for _, name := range names {
			waits := func(other string) bool { return other != name && !done[other] }
			if !done[name] && !slices.ContainsFunc(byName[name].refers, waits) {
				ordered, done[name] = append(ordered, *byName[name]), true
			}
		}
		if len(ordered) == before {
			return nil, fmt.Errorf("the foreign keys of tables form a cycle")
		}
	}
	return ordered, nil
}

// sameTables returns an error unless two databases have the same tables, columns and primary keys.
func sameTables(from, to []table) error {
	if err := contains(from, to, "target"); err != nil {
		return err
	}
	return contains(to, from, "source")
}

// contains returns an error unless a database has all tables and columns of another.
func contains(wanted, tables []table, side string) error {
	for _, t := range wanted {
		i := slices.IndexFunc(tables, func(other table) bool { return other.name == t.name })
		if i < 0 {
			return fmt.Errorf("the %s has no table %s", side, t.name)
		}
		for _, c := range t.columns {
			if !slices.Contains(tables[i].columns, c) {
				return fmt.Errorf("the %s has no column %s of the type %s in its table %s", side, c.name, c.kind, t.name)
			}
		}
		if !slices.Equal(t.key, tables[i].key) {
			return fmt.Errorf("the %s has another primary key in its table %s", side, t.name)
		}
	}
	return nil
}
