package states

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// settleSides settles the commits of the mainline on which a merge rests, if a policy or a revocation makes them all
// due: otherwise the merge would be derived from what they met before. They settle theirs first. A write settles
// MaxSettled of them; what further ones meet reaches the merge by the background.
func (st *States) settleSides(t *txn.Tx, s *facts.Commit) error {
	if s.Merged&facts.IsMerge == 0 || !s.IsOverruled() {
		return nil
	}
	if err := t.Flush(); err != nil {
		return err
	}

	sides, err := dueSides(t, s)
	if err != nil {
		return err
	}
	for _, id := range sides {
		if st.settledAhead >= MaxSettled {
			break
		}
		st.settledAhead++
		if err := st.settleCommit(t, id); err != nil {
			return err
		}
		if st.ahead == nil {
			st.ahead = make(map[int64]bool)
		}
		st.ahead[id] = true
	}
	return st.gatherAgain(t, s)
}

// Renew reads a commit again that was settled by settleSides after the write had read it.
func (st *States) Renew(t *txn.Tx, s *facts.Commit) error {
	if !st.ahead[s.ID] {
		return nil
	}
	delete(st.ahead, s.ID)
	if err := t.Flush(); err != nil {
		return err
	}
	c, err := facts.FindCommitRow(t.Reader, s.ID)
	if err != nil {
		return err
	}
	*s.CommitRow = *c
	return st.facts.Gather(t.Reader, []*facts.Commit{s})
}

// dueSides returns the commits of the mainline that claims about a merge name and that are due because of a policy or
// a revocation.
func dueSides(t *txn.Tx, s *facts.Commit) ([]int64, error) {
	list, err := txn.All(t.Reader, func(row txn.Scanner) (id int64, err error) { return id, row.Scan(&id) }, `
SELECT DISTINCT p.id FROM merges m /*+index merges_by_commit*/ /*+ordered*/ JOIN commits p ON p.id = m.parent_id
WHERE m.commit_id = ? AND m.reason = '' AND (p.policy_version <> ? OR p.distrusts <> ?) ORDER BY p.id`,
		s.ID, s.Deriver.Repo.PolicyVersion, s.Deriver.Repo.Distrusts)
	if err != nil {
		return nil, fmt.Errorf("find due commits of the mainline: %w", err)
	}
	return list, nil
}

// gatherAgain reads the facts of a merge again if what it inherits has changed in this write.
func (st *States) gatherAgain(t *txn.Tx, s *facts.Commit) error {
	if err := t.Flush(); err != nil {
		return err
	}
	list, before := []*facts.Commit{s}, s.Versions
	if err := st.facts.GatherVersions(t.Reader, list); err != nil || s.Versions == before {
		return err
	}
	return st.facts.Gather(t.Reader, list)
}
