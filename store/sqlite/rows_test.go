package sqlite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

const thingsTable = `
CREATE TABLE things (at INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL UNIQUE, name TEXT NOT NULL)`

func newThings() *sqldb.Rows { return sqldb.NewRows("INSERT INTO things (id, name) VALUES ", "", 2) }

// addThings adds rows with ids from n down to 1, so that a test can check that
// they are written in order.
func addThings(rows *sqldb.Rows, n int) {
	for id := n; id > 0; id-- {
		rows.Add(int64(id), fmt.Sprint("thing ", id))
	}
}

func TestFlushWritesRowsInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 127, 128, 129, 300} {
		t.Run(fmt.Sprint(n, " rows"), func(t *testing.T) {
			c, rows := connect(t, thingsTable), newThings()
			addThings(rows, n)
			if rows.Len() != n {
				t.Errorf("Len: got %d, want %d", rows.Len(), n)
			}
			must.OK(t, rows.Flush(c))

			want := upTo(n)
			slices.Reverse(want)
			if got := numbers(t, c, "SELECT id FROM things ORDER BY at"); !slices.Equal(got, want) {
				t.Errorf("got %d, want %d", got, want)
			}
			if got := numbers(t, c, "SELECT id FROM things WHERE name <> 'thing ' || id"); len(got) > 0 {
				t.Errorf("rows %d have the name of another row", got)
			}
			if rows.Len() != 0 {
				t.Errorf("Len after Flush: got %d, want 0", rows.Len())
			}
		})
	}
}

func TestFlushPreparesFewStatements(t *testing.T) {
	c, rows := connect(t, thingsTable), newThings()
	for n := range 129 {
		must.OK(t, c.Run("DELETE FROM things"))
		addThings(rows, n)
		must.OK(t, rows.Flush(c))
	}
	if n := len(connOf(c).stmts); n > 14 {
		t.Errorf("%d statements are prepared, want at most 14", n)
	}
}

func TestFailedFlushEmptiesTheBuffer(t *testing.T) {
	c, rows := connect(t, thingsTable), newThings()
	addThings(rows, 200)
	rows.Add(int64(200), "again")
	if err := rows.Flush(c); sqldb.ClassOf(err) != sqldb.Duplicate {
		t.Fatalf("got %v, want an error of class Duplicate", err)
	}
	if rows.Len() != 0 {
		t.Errorf("Len after a failed Flush: got %d, want 0", rows.Len())
	}
	rows.Add(int64(1000), "next")
	must.OK(t, rows.Flush(c))
	if got := numbers(t, c, "SELECT id FROM things WHERE id > 200"); !slices.Equal(got, []int64{1000}) {
		t.Errorf("next row: got %d, want 1000", got)
	}
}

func TestFlushAppendsTheConflictClause(t *testing.T) {
	c := connect(t, thingsTable)
	rows := sqldb.NewRows("INSERT INTO things (id, name) VALUES ",
		" ON CONFLICT (id) DO UPDATE SET name = excluded.name", 2)
	for range 2 {
		addThings(rows, 3)
		rows.Add(int64(2), "thing 2")
		must.OK(t, rows.Flush(c))
	}
	if got := numbers(t, c, "SELECT id FROM things ORDER BY id"); !slices.Equal(got, upTo(3)) {
		t.Errorf("got %d, want 1 to 3", got)
	}
}

func TestResetDiscardsBufferedRows(t *testing.T) {
	c, rows := connect(t, thingsTable), newThings()
	addThings(rows, 5)
	rows.Reset()
	must.OK(t, rows.Flush(c))
	if got := numbers(t, c, "SELECT id FROM things"); len(got) > 0 {
		t.Errorf("rows %d were written", got)
	}
}

func TestEachInVisitsTheRowOfEachKeyOnce(t *testing.T) {
	shapes := []struct {
		name    string
		query   string
		columns int
		key     func(id int64) []any
	}{
		{"one column", "SELECT id FROM things WHERE id IN ", 1, func(id int64) []any { return []any{id} }},
		{"two columns", "SELECT id FROM things WHERE (id, name) IN ", 2, func(id int64) []any {
			return []any{id, fmt.Sprint("thing ", id)}
		}},
	}

	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			c, rows := connect(t, thingsTable), newThings()
			addThings(rows, 1000)
			must.OK(t, rows.Flush(c))

			before := len(connOf(c).stmts)
			for _, n := range []int{0, 1, 2, 3, 5, 127, 128, 129, 300} {
				var keys []any
				for _, id := range upTo(n) {
					keys = append(keys, shape.key(id)...)
				}
				original := slices.Clone(keys)

				var seen []int64
				must.OK(t, c.EachIn(func(row sqldb.Scanner) error {
					id, err := scanNumber(row)
					seen = append(seen, id)
					return err
				}, shape.query, shape.columns, keys))
				slices.Sort(seen)
				if !slices.Equal(seen, upTo(n)) {
					t.Errorf("%d keys: visited rows %d, want 1 to %d", n, seen, n)
				}
				if !slices.Equal(keys, original) {
					t.Errorf("%d keys: EachIn changed its argument", n)
				}
			}
			if prepared := len(connOf(c).stmts) - before; prepared > 14 {
				t.Errorf("%d queries are prepared, want at most 14", prepared)
			}
		})
	}
}
