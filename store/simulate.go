package store

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Simulate re-evaluates the repo's commits that are not DEPLOYED against a draft contract.
// It is a dry run: it writes nothing. It reads the commits in batches, between which
// commits may change.
func (s *Store) Simulate(ctx context.Context, org, repo string, draft policy.Contract) (ledger.Simulation, error) {
	sim := ledger.Simulation{Sums: []ledger.MoveSum{}, Moves: []ledger.Move{}}
	for last, done := int64(0), false; !done; {
		var err error

		last, err = read(ctx, s, byOrg(org), func(rd reader) (int64, error) {
			r, err := rd.findRepo(org, repo)
			if err != nil {
				return last, err
			}

			commits, err := all(rd, scanCommitRow,
				selectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", r.id, last, evaluateBatch)
			if err != nil || len(commits) == 0 {
				done = true
				return last, err
			}
			return commits[len(commits)-1].id, rd.simulate(&sim, &deriver{repo: r, contract: &draft}, commits)
		})
		if err != nil {
			return sim, err
		}
	}
	return sim, nil
}

// simulate adds to sim the moves of the given commits that are not DEPLOYED.
func (rd reader) simulate(sim *ledger.Simulation, d *deriver, commits []*commitRow) error {
	var list []*subject
	for _, c := range commits {
		if c.state != ledger.Deployed {
			list = append(list, &subject{commitRow: c, d: d})
		}
	}
	if err := rd.gather(list); err != nil {
		return err
	}
	for _, s := range list {
		sim.Evaluated++
		if derived := d.contract.Derive(s.facts, rd.now); derived.State != s.state {
			sim.Add(move(s.commitRow, derived))
		}
	}
	return nil
}

// move returns the move of a commit to a derived state. The reasons are those of the
// requirements for the states between the old and the new one, and for the state after.
func move(c *commitRow, derived policy.Derivation) ledger.Move {
	m := ledger.Move{Commit: c.sha, From: c.state, To: derived.State, Reasons: []string{}}
	low, high := min(c.state, derived.State), max(c.state, derived.State)
	for _, r := range derived.Requirements {
		if r.Applies && r.State > low && r.State <= high+1 {
			reason := r.Reason
			if r.Met {
				reason = r.Predicate + ": " + reason
			}
			m.Reasons = append(m.Reasons, reason)
		}
	}
	return m
}
