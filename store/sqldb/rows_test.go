package sqldb

import (
	"fmt"
	"slices"
	"testing"
)

const thingsTable = `
CREATE TABLE things (at INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL UNIQUE, name TEXT NOT NULL)`

func newThings() *Rows { return NewRows("INSERT INTO things (id, name) VALUES ", "", 2) }

// addThings adds rows with ids from n down to 1, so that a test can check the order
// in which they are written.
func addThings(rows *Rows, n int) {
	for id := n; id > 0; id-- {
		rows.Add(int64(id), fmt.Sprint("thing ", id))
	}
}

func TestRowsAreWrittenInTheirOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 127, 128, 129, 300} {
		t.Run(fmt.Sprint(n, " rows"), func(t *testing.T) {
			c, rows := connect(t, thingsTable), newThings()
			addThings(rows, n)
			if rows.Len() != n {
				t.Errorf("%d rows wait, want %d", rows.Len(), n)
			}
			check(t, rows.Flush(c))
			want := upTo(n)
			slices.Reverse(want)
			if got := numbers(t, c, "SELECT id FROM things ORDER BY at"); !slices.Equal(got, want) {
				t.Errorf("got %d, want %d", got, want)
			}
			if got := numbers(t, c, "SELECT id FROM things WHERE name <> 'thing ' || id"); len(got) > 0 {
				t.Errorf("the rows %d have the names of others", got)
			}
			if rows.Len() != 0 {
				t.Errorf("%d rows wait after they were written", rows.Len())
			}
		})
	}
}

func TestRowsPrepareFewStatements(t *testing.T) {
	c, rows := connect(t, thingsTable), newThings()
	for n := range maxRows + 1 {
		check(t, c.Run("DELETE FROM things"))
		addThings(rows, n)
		check(t, rows.Flush(c))
	}
	if n := len(c.Statements()); n > 14 {
		t.Errorf("%d forms of the statement are prepared, want at most 14", n)
	}
}

func TestARowOfAnotherLengthPanics(t *testing.T) {
	for _, row := range [][]any{{}, {int64(1)}, {int64(1), "a", "b"}} {
		t.Run(fmt.Sprint(len(row), " columns"), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it does not panic")
				}
			}()
			newThings().Add(row...)
		})
	}
}

func TestAFlushThatFailsLeavesNoRowsWaiting(t *testing.T) {
	c, rows := connect(t, thingsTable), newThings()
	addThings(rows, 200)
	rows.Add(int64(200), "again")
	if err := rows.Flush(c); ClassOf(err) != Duplicate {
		t.Fatalf("got %v, want a fault of class Duplicate", err)
	}
	if rows.Len() != 0 {
		t.Errorf("%d rows wait", rows.Len())
	}
	rows.Add(int64(1000), "next")
	check(t, rows.Flush(c))
	if got := numbers(t, c, "SELECT id FROM things WHERE id > 200"); !slices.Equal(got, []int64{1000}) {
		t.Errorf("the next row: got %d, want 1000", got)
	}
}

func TestAConflictClauseFollowsTheRows(t *testing.T) {
	c := connect(t, thingsTable)
	rows := NewRows("INSERT INTO things (id, name) VALUES ", " ON CONFLICT (id) DO UPDATE SET name = excluded.name", 2)
	for range 2 {
		addThings(rows, 3)
		rows.Add(int64(2), "thing 2")
		check(t, rows.Flush(c))
	}
	if got := numbers(t, c, "SELECT id FROM things ORDER BY id"); !slices.Equal(got, upTo(3)) {
		t.Errorf("got %d, want 1 to 3", got)
	}
}

func TestResetForgetsWhatWaits(t *testing.T) {
	c, rows := connect(t, thingsTable), newThings()
	addThings(rows, 5)
	rows.Reset()
	check(t, rows.Flush(c))
	if got := numbers(t, c, "SELECT id FROM things"); len(got) > 0 {
		t.Errorf("the rows %d were written", got)
	}
}

func TestEachInVisitsTheRowOfEachKeyOnce(t *testing.T) {
	shapes := []struct {
		name    string
		query   string
		columns int
		key     func(id int64) []any
	}{
		{"keys of one column", "SELECT id FROM things WHERE id IN ", 1, func(id int64) []any { return []any{id} }},
		{"keys of two columns", "SELECT id FROM things WHERE (id, name) IN ", 2, func(id int64) []any {
			return []any{id, fmt.Sprint("thing ", id)}
		}},
	}
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			c, rows := connect(t, thingsTable), newThings()
			addThings(rows, 1000)
			check(t, rows.Flush(c))
			before := len(c.Statements())
			for _, n := range []int{0, 1, 2, 3, 5, 127, 128, 129, 300} {
				var keys []any
				for _, id := range upTo(n) {
					keys = append(keys, shape.key(id)...)
				}
				given := slices.Clone(keys)
				var seen []int64
				check(t, c.EachIn(func(row Scanner) error {
					id, err := scanNumber(row)
					seen = append(seen, id)
					return err
				}, shape.query, shape.columns, keys))
				slices.Sort(seen)
				if !slices.Equal(seen, upTo(n)) {
					t.Errorf("%d keys: visited %d", n, seen)
				}
				if !slices.Equal(keys, given) {
					t.Errorf("%d keys: they were changed", n)
				}
			}
			if forms := len(c.Statements()) - before; forms > 14 {
				t.Errorf("%d forms of the query are prepared, want at most 14", forms)
			}
		})
	}
}
