package store

import (
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Of an org with more repos than are examined, there may be more items of each kind, except
// violations, whose number is known.
func TestAttentionCountsOfManyRepos(t *testing.T) {
	s := openWithRepo(t)
	insertRepos(t, s, maxAttentionRepos)

	list, err := s.Attention(t.Context(), "acme", AttentionFilter{Query: txn.Query{Limit: 1}, Admin: true})
	must.OK(t, err)
	if len(list.Counts) != len(attention.Kinds()) {
		t.Errorf("counts of %d kinds, want %d", len(list.Counts), len(attention.Kinds()))
	}
	for _, c := range list.Counts {
		if c.Count != 0 || c.More != (c.Kind != attention.Violation) {
			t.Errorf("%s: %d, more: %t", c.Kind, c.Count, c.More)
		}
	}
}
