package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A write re-evaluates fewer commits if their change records are long, but at least one.
func TestLongChangesMakeBatchesSmaller(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	register := func(commit, paths int) {
		t.Helper()
		var n ledger.Registration
		for i := range paths {
			n.Changes = append(n.Changes, radar.Change{Status: "A", Path: fmt.Sprintf("%s/%d.go", strings.Repeat("a", 1000), i),
				Mode: "100644"})
		}
		_, _, err := w.Register(t.Context(), "acme", "api", numbered(commit), n)
		must.OK(t, err)
	}
	// They follow a commit without changes. Of more than 2,000 paths, none is read.
	for commit, paths := range []int{10, 10, 1900, 1900, 10, 10_000, 10} {
		register(1+commit, paths)
	}

	var sizes []int
	must.OK(t, w.db.Change(t.Context(), "", func(t *txn.Tx) error {
		for after, repo := int64(0), int64(0); ; {
			if err := t.Row("SELECT id FROM repos WHERE name = 'api' ORDER BY id LIMIT 1").Scan(&repo); err != nil {
				return err
			}
			ids, err := states.NextCommits(t, repo, after)
			if err != nil || len(ids) == 0 {
				return err
			}
			sizes, after = append(sizes, len(ids)), ids[len(ids)-1]
		}
	}))
	if got := fmt.Sprint(sizes); got != "[4 4]" {
		t.Errorf("batches of %s commits, want [4 4]", got)
	}
}
