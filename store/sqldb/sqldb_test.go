package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ledgerd/ledgerd/internal/must"
)

// testDialect is a minimal dialect of SQLite.
var testDialect = Dialect{
	Rewrite:   []string{"/*+ordered*/ JOIN", "CROSS JOIN", "/*+rows*/", "VALUES"},
	IndexHint: [2]string{"INDEXED BY ", ""},
	NextID:    "SELECT coalesce(max(id), 0) + 1 FROM ",
	Explain:   "EXPLAIN QUERY PLAN ",
	Classify: func(err error) Class {
		if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT {
			return Duplicate
		}
		return Other
	},
}

// connect returns a connection to a new database in memory, after running script.
func connect(t *testing.T, script string) *Conn {
	t.Helper()
	db := must.Get(sql.Open("sqlite", ":memory:"))(t)
	t.Cleanup(func() { must.OK(t, db.Close()) })
	c, err := Connect(t.Context(), db, &testDialect)
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, c.Close()) })
	must.OK(t, c.Run(script))
	return c
}

// numbers returns the results of a query for one integer column.
func numbers(t *testing.T, c *Conn, query string) []int64 {
	t.Helper()
	list, err := All(c, scanNumber, query)
	must.OK(t, err)
	return list
}

func scanNumber(row Scanner) (n int64, err error) { return n, row.Scan(&n) }

// upTo returns the numbers from 1 to n.
func upTo(n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(i + 1)
	}
	return list
}

func TestAllMethodsClassifyErrors(t *testing.T) {
	const insert = "INSERT INTO things (name) VALUES (?)"
	methods := map[string]func(c *Conn) error{
		"Exec":   func(c *Conn) error { _, err := c.Exec(insert, "a"); return err },
		"Run":    func(c *Conn) error { return c.Run("INSERT INTO things (name) VALUES ('a')") },
		"Insert": func(c *Conn) error { _, err := c.Insert(insert, "a"); return err },
		"Each":   func(c *Conn) error { return c.Each(func(Scanner) error { return nil }, insert+" RETURNING id", "a") },
	}
	for name, call := range methods {
		t.Run(name, func(t *testing.T) {
			c := connect(t, `
CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
INSERT INTO things (name) VALUES ('a')`)

			err := call(c)
			if ClassOf(fmt.Errorf("insert: %w", err)) != Duplicate {
				t.Errorf("error %v has class %d, want Duplicate", err, ClassOf(err))
			}
			if _, ok := errors.AsType[*sqlite.Error](err); !ok {
				t.Errorf("error %v does not wrap that of the driver", err)
			}
		})
	}
	if class := ClassOf(errors.New("something else")); class != Other {
		t.Errorf("error from outside the database has class %d, want Other", class)
	}
}

func TestPreparedStatementsAreBounded(t *testing.T) {
	c := connect(t, "CREATE TABLE things (id INTEGER PRIMARY KEY)")
	most := 0
	for i := range 2*maxPrepared + 10 {
		var n int
		must.OK(t, c.Row(fmt.Sprint("SELECT ", i)).Scan(&n))
		if n != i {
			t.Fatalf("SELECT %d returned %d", i, n)
		}
		most = max(most, len(c.Statements()))
	}
	if most != maxPrepared {
		t.Errorf("at most %d statements were prepared, want %d", most, maxPrepared)
	}
}

func TestStatementsInUseStayPrepared(t *testing.T) {
	c := connect(t, "CREATE TABLE things (id INTEGER PRIMARY KEY); INSERT INTO things VALUES (1), (2), (3)")
	var seen []int64
	must.OK(t, c.Each(func(row Scanner) error {
		id, err := scanNumber(row)
		seen = append(seen, id)
		for i := range maxPrepared {
			var n int
			err = errors.Join(err, c.Row(fmt.Sprint("SELECT ", i+1000*len(seen))).Scan(&n))
		}
		return err
	}, "SELECT id FROM things ORDER BY id"))
	if !slices.Equal(seen, upTo(3)) {
		t.Errorf("the query returned %d, want 1 to 3", seen)
	}
}

func TestNextIDFollowsTheLastRow(t *testing.T) {
	c := connect(t, "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)")
	for want := range int64(3) {
		next, end, err := c.NextIDs("things")
		must.OK(t, err)
		id, err := c.Insert("INSERT INTO things (name) VALUES (?)", "a")
		must.OK(t, err)
		if next != want+1 || id != next || end != math.MaxInt64 {
			t.Errorf("NextID returned %d and Insert %d, want %d", next, id, want+1)
		}
	}
}

func TestPlanNamesTheIndex(t *testing.T) {
	c := connect(t, `
CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT);
CREATE INDEX things_by_name ON things (name)`)
	steps, err := c.Plan("SELECT id FROM things /*+index things_by_name*/ WHERE name = ? AND id > ?")
	must.OK(t, err)
	if len(steps) != 1 || !strings.Contains(steps[0], "things_by_name") {
		t.Errorf("plan is %q, want one step by things_by_name", steps)
	}
}

func TestSQLTranslatesHints(t *testing.T) {
	noIndexHints := Dialect{Rewrite: []string{"/*+ordered*/ JOIN", "JOIN"}}
	parens := Dialect{IndexHint: [2]string{"USE INDEX (", ")"}}

	cases := []struct {
		name      string
		dialect   *Dialect
		statement string
		want      string
	}{
		{
			"no hint", &testDialect,
			"SELECT a FROM b JOIN c /* why */ WHERE d = '*/'", "SELECT a FROM b JOIN c /* why */ WHERE d = '*/'",
		},
		{"order", &testDialect, "SELECT a FROM b /*+ordered*/ JOIN c", "SELECT a FROM b CROSS JOIN c"},
		{"two orders", &testDialect, "FROM b /*+ordered*/ JOIN c /*+ordered*/ JOIN d", "FROM b CROSS JOIN c CROSS JOIN d"},
		{"index", &testDialect, "FROM b /*+index b_by_a*/ WHERE a = ?", "FROM b INDEXED BY b_by_a WHERE a = ?"},
		{"index in parentheses", &parens, "FROM b /*+index b_by_a*/ WHERE a = ?", "FROM b USE INDEX (b_by_a) WHERE a = ?"},
		{"two indexes", &parens, "FROM b /*+index x*/ JOIN c /*+index y*/", "FROM b USE INDEX (x) JOIN c USE INDEX (y)"},
		{
			"order and index", &testDialect,
			"FROM b /*+ordered*/ JOIN c /*+index x*/ ON 1", "FROM b CROSS JOIN c INDEXED BY x ON 1",
		},
		{
			"engine without index hints", &noIndexHints,
			"FROM b /*+ordered*/ JOIN c /*+index x*/", "FROM b JOIN c /*+index x*/",
		},
		{
			"comment before an index", &parens,
			"SELECT a /* why */ FROM b /*+index x*/", "SELECT a /* why */ FROM b USE INDEX (x)",
		},
		{"comment after an order", &testDialect, "FROM b /*+ordered*/ JOIN c /* why */", "FROM b CROSS JOIN c /* why */"},
		{"hint of another engine", &testDialect, "FROM b /*+other*/ WHERE a", "FROM b /*+other*/ WHERE a"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.dialect.SQL(tc.statement); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	for statement, want := range map[string]int{
		"SELECT 1":                          0,
		"SELECT ?":                          1,
		"SELECT ?, ?":                       2,
		"SELECT ?1, ?2, ?1":                 2,
		"SELECT ?2":                         2,
		"SELECT ?1 WHERE a IN (?1, ?9)":     9,
		"SELECT ?1, ?1 WHERE a > ? LIMIT ?": 3,
	} {
		if got := parameters(statement); got != want {
			t.Errorf("%s: got %d, want %d", statement, got, want)
		}
	}
}
