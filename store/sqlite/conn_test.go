package sqlite

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// connect returns a connection to a new database in memory, after running script.
func connect(t *testing.T, script string) *sqldb.Conn {
	t.Helper()
	db := must.Get(openHardened("file::memory:"))(t)
	t.Cleanup(func() { must.OK(t, db.Close()) })
	c, err := Connect(t.Context(), db)
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, c.Close()) })
	must.OK(t, c.Run(script))
	return c
}

// numbers returns the results of a query for one integer column.
func numbers(t *testing.T, c *sqldb.Conn, query string) []int64 {
	t.Helper()
	list, err := sqldb.All(c, scanNumber, query)
	must.OK(t, err)
	return list
}

func scanNumber(row sqldb.Scanner) (n int64, err error) { return n, row.Scan(&n) }

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
	methods := map[string]func(c *sqldb.Conn) error{
		"Exec":   func(c *sqldb.Conn) error { _, err := c.Exec(insert, "a"); return err },
		"Run":    func(c *sqldb.Conn) error { return c.Run("INSERT INTO things (name) VALUES ('a')") },
		"Insert": func(c *sqldb.Conn) error { _, err := c.Insert(insert, "a"); return err },
		"Each": func(c *sqldb.Conn) error {
			return c.Each(func(sqldb.Scanner) error { return nil }, insert+" RETURNING id", "a")
		},
	}
	for name, call := range methods {
		t.Run(name, func(t *testing.T) {
			c := connect(t, `
CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
INSERT INTO things (name) VALUES ('a')`)

			err := call(c)
			if sqldb.ClassOf(fmt.Errorf("insert: %w", err)) != sqldb.Duplicate {
				t.Errorf("error %v has class %d, want Duplicate", err, sqldb.ClassOf(err))
			}
			if _, ok := errors.AsType[*sqlite.Error](err); !ok {
				t.Errorf("error %v does not wrap that of the driver", err)
			}
		})
	}
	if class := sqldb.ClassOf(errors.New("something else")); class != sqldb.Other {
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
		most = max(most, len(connOf(c).stmts))
	}
	if most != maxPrepared {
		t.Errorf("at most %d statements were prepared, want %d", most, maxPrepared)
	}
}

func TestStatementsInUseStayPrepared(t *testing.T) {
	c := connect(t, "CREATE TABLE things (id INTEGER PRIMARY KEY); INSERT INTO things VALUES (1), (2), (3)")
	var seen []int64
	must.OK(t, c.Each(func(row sqldb.Scanner) error {
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
		next, end, err := c.AskIDs("things")()
		must.OK(t, err)
		id, err := c.Insert("INSERT INTO things (name) VALUES (?)", "a")
		must.OK(t, err)
		if next != want+1 || id != next || end != math.MaxInt64 {
			t.Errorf("AskIDs returned %d and Insert %d, want %d", next, id, want+1)
		}
	}
}

func TestPlanNamesTheIndex(t *testing.T) {
	c := connect(t, `
CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT);
CREATE INDEX things_by_name ON things (name)`)
	steps, err := Plan(c, "SELECT id FROM things /*+index things_by_name*/ WHERE name = ? AND id > ?")
	must.OK(t, err)
	if len(steps) != 1 || !strings.Contains(steps[0], "things_by_name") {
		t.Errorf("plan is %q, want one step by things_by_name", steps)
	}
}
