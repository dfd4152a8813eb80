package browse

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestOf(t *testing.T) {
	if g := gridOf(nil); len(g.Columns) > 0 || g.Rows != nil || g.HasOthers {
		t.Errorf("no environments: %+v", g)
	}

	var list []ledger.Environment
	add := func(repo string, names ...string) {
		for _, name := range names {
			list = append(list, ledger.Environment{Repo: repo, Name: name})
		}
	}
	add("api", "staging", "prod", "a", "b", "c", "d", "e", "f")
	add("web", "prod")
	add("docs", "prod", "staging")
	g := gridOf(list)
	if want := []string{"prod", "staging", "a", "b", "c", "d"}; !reflect.DeepEqual(g.Columns, want) {
		t.Errorf("columns %q, want %q", g.Columns, want)
	}
	var rows []string
	for _, r := range g.Rows {
		text := r.Repo
		for _, e := range append(r.Cells, r.Others...) {
			if e == nil {
				text += " -"
				continue
			}
			text += " " + e.Name
		}
		rows = append(rows, fmt.Sprintf("%s +%d", text, len(r.Others)))
	}
	want := []string{"api prod staging a b c d e f +2", "web prod - - - - - +0", "docs prod staging - - - - +0"}
	if !reflect.DeepEqual(rows, want) || !g.HasOthers {
		t.Errorf("rows %q, want %q", rows, want)
	}
}
