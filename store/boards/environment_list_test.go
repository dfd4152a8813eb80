package boards

import (
	"testing"

	"github.com/ledgerd/ledgerd/store/txn"
)

// Commits with the same tree count once, and not at all if their tree runs.
func TestBehindCountsTrees(t *testing.T) {
	ready := readyCommits{since: 5, list: []readyCommit{
		{id: 9, treeID: 1}, {id: 8, treeID: 1, target: "main"}, {id: 7, treeID: 2},
		{id: 6, target: "release"}, {id: 5}, {id: 4},
	}}
	r := txn.Repo{DefaultBranch: "main"}
	for _, test := range []struct {
		run  running
		n    int
		more bool
	}{
		{running{commitID: 3}, 4, true},
		{running{commitID: 3, treeID: 2}, 3, true},
		{running{commitID: 5}, 2, false},
		{running{commitID: 4}, 3, true},
		{running{commitID: 5, target: "release"}, 1, false},
		{running{commitID: 9}, 0, false},
	} {
		if n, more := ready.behind(r, test.run); n != test.n || more != test.more {
			t.Errorf("%+v: behind %d, more: %t, want %d, %t", test.run, n, more, test.n, test.more)
		}
	}
}
