package store

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/store/boards"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Of an org with more repos than are examined, there may be more items of each kind, except
// violations, whose number is known.
func TestAttentionCountsOfManyRepos(t *testing.T) {
	s := openWithRepo(t)
	insertRepos(t, s, boards.MaxAttentionRepos)

	list, err := s.Attention(t.Context(), "acme", boards.AttentionFilter{Query: txn.Query{Limit: 1}, Admin: true})
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

// insertRepos adds the repos r0, r1 and so on to the first org.
func insertRepos(t *testing.T, s *Store, n int) {
	t.Helper()
	must.OK(t, s.db.Change(t.Context(), "", func(t *txn.Tx) error {
		for i := range n {
			_, err := t.Insert(`
INSERT INTO repos (org_id, name, default_branch, created_at, policy_version, policy_digest)
VALUES (1, ?, 'main', 1, 1, '')`, fmt.Sprint("r", i))
			if err != nil {
				return err
			}
		}
		return nil
	}))
}
