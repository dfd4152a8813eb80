package lists

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/earlier"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// maxEarlier is the number of earlier commits of a branch that are asked for reviews.
	maxEarlier = 5
	// maxSkipped is the number of earlier commits among which these are, because others have no attestations.
	maxSkipped = 20
)

// noteEarlier adds to the reasons of missing reviews which earlier commit of the branch has them. A mainline's
// commits follow each other, so they need none.
func (li *Lists) noteEarlier(rd txn.Reader, s *facts.Commit, statuses []ledger.RequirementStatus) error {
	d := s.Deriver
	isMainline := s.Branch == d.Repo.DefaultBranch || slices.Contains(s.ClaimedTargets(), s.Branch)
	if s.Branch == "" || isMainline || !earlier.MissesReview(d.Contract, statuses) {
		return nil
	}
	ids, err := earlierCommits(rd, s)
	if err != nil || len(ids) == 0 {
		return err
	}
	commits, err := li.states.ReadCommits(rd, d, ids)
	if err != nil {
		return err
	}

	earlier.Note(d.Contract, statuses, s.Tree, func(yield func(earlier.Commit) bool) {
		for _, e := range commits {
			e.Facts.Targets, e.Facts.Target = s.Facts.Targets, s.Facts.Target // they may be those that are asked about
			e.Facts.Carried = nil                                             // who signed that has reviewed another commit
			derived := d.Contract.Derive(e.Facts, rd.Now)
			if !yield(earlier.Commit{SHA: e.SHA, Tree: e.Tree, Requirements: derived.Requirements}) {
				return
			}
		}
	})
	return nil
}

// earlierCommits returns the last attested commits of a branch that were registered before one of it, newest
// first. It leaves out those with many attestations, which take long to read.
func earlierCommits(rd txn.Reader, s *facts.Commit) (ids []int64, err error) {
	left := int64(txn.MaxExamined)
	err = rd.Each(func(row txn.Scanner) error {
		var id, attestations int64
		if err := row.Scan(&id, &attestations); err != nil {
			return err
		}
		if attestations > 0 && attestations <= left && len(ids) < maxEarlier {
			ids, left = append(ids, id), left-attestations
		}
		return nil
	}, `
SELECT id, attestations FROM commits /*+index commits_by_branch*/
WHERE repo_id = ? AND branch <> '' AND branch = ? AND id < ? ORDER BY id DESC LIMIT ?`,
		s.RepoID, s.Branch, s.ID, maxSkipped)
	if err != nil {
		return nil, fmt.Errorf("read earlier commits: %w", err)
	}
	return ids, nil
}
