package states_test

import (
	"testing"

	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/states"
)

// A write puts a bounded number of rows right, which cost as much as their trees have commits.
func TestRepairsOfAWriteAreBounded(t *testing.T) {
	list := make([]states.Repair, 3*states.RepairBatch)
	if n := states.FirstRepairs(list); n != states.RepairBatch {
		t.Errorf("a write puts %d rows right, want %d", n, states.RepairBatch)
	}
	for i := range list {
		list[i].TreeCommits = facts.MaxTreeCommits
	}
	if n := states.FirstRepairs(list); n != 1 {
		t.Errorf("a write puts %d rows of a large tree right, want 1", n)
	}
}
