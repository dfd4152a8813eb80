package browse

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxColumns limits the environments that have a column of their own.
const maxColumns = 6

// A grid lays out the environments of an org as a table, with a row for each repo and a column for each
// environment.
type grid struct {
	// Columns are the names of the environments that most repos have, those of the most
	// repos first.
	Columns []string
	// HasOthers reports whether a row has Others.
	HasOthers bool
	Rows      []gridRow
}

// A gridRow has the environments of a repo.
type gridRow struct {
	Repo string
	// Cells has a cell for each column: nil if the repo does not have the environment.
	Cells []*ledger.Environment
	// Others are the environments without a column.
	Others []*ledger.Environment
}

// gridOf lays out environments, whose rows are in the order of their repos.
func gridOf(list []ledger.Environment) grid {
	repos := make(map[string]int)
	for _, e := range list {
		repos[e.Name]++
	}
	columns := slices.SortedFunc(maps.Keys(repos), func(a, b string) int {
		return cmp.Or(cmp.Compare(repos[b], repos[a]), cmp.Compare(a, b))
	})
	g := grid{Columns: columns[:min(len(columns), maxColumns)]}

	for i := range list {
		e := &list[i]
		if n := len(g.Rows); n == 0 || g.Rows[n-1].Repo != e.Repo {
			g.Rows = append(g.Rows, gridRow{Repo: e.Repo, Cells: make([]*ledger.Environment, len(g.Columns))})
		}
		row := &g.Rows[len(g.Rows)-1]
		if column := slices.Index(g.Columns, e.Name); column >= 0 {
			row.Cells[column] = e
		} else {
			row.Others, g.HasOthers = append(row.Others, e), true
		}
	}
	return g
}
