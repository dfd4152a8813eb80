package sqldb

import (
	"fmt"
	"testing"
)

// testDialect has what SQLite translates.
var testDialect = Dialect{
	Rewrite:   []string{"/*+ordered*/ JOIN", "CROSS JOIN", "/*+rows*/", "VALUES"},
	IndexHint: [2]string{"INDEXED BY ", ""},
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

func TestAddPanicsOnWrongNumberOfColumns(t *testing.T) {
	for _, row := range [][]any{{}, {int64(1)}, {int64(1), "a", "b"}} {
		t.Run(fmt.Sprint(len(row), " columns"), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Add does not panic")
				}
			}()
			NewRows("INSERT INTO things (id, name) VALUES ", "", 2).Add(row...)
		})
	}
}
