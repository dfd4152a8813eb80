package lists

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/size"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Simulate derives the states of the repo's commits that are not DEPLOYED by a draft contract.
// It is a dry run: it writes nothing. It reads the commits in batches, between which
// commits may change.
func (li *Lists) Simulate(ctx context.Context, org, repo string, draft policy.Contract) (ledger.Simulation, error) {
	sim := ledger.Simulation{Sums: []ledger.MoveSum{}, Moves: []ledger.Move{}}
	for last := int64(0); ; {
		b, err := txn.Read(ctx, li.db, txn.ByOrg(org), func(rd txn.Reader) (simulated, error) {
			return li.nextSimulated(rd, org, repo, last, facts.Deriver{Contract: &draft})
		})
		if err != nil || b.last == 0 {
			return sim, err
		}
		last = b.last
		if err := li.evaluateSimulated(ctx, org, b.list); err != nil {
			return sim, err
		}
		b.addTo(&sim)
	}
}

// A simulated is a batch of commits that are not DEPLOYED, with a draft contract.
type simulated struct {
	list []*facts.Commit
	last int64 // the row id of the last commit of the batch; 0 if there are no more
	at   ledger.Time
}

func (li *Lists) nextSimulated(rd txn.Reader, org, repo string, after int64, d facts.Deriver) (b simulated, err error) {
	r, err := rd.FindRepo(org, repo)
	if err != nil {
		return b, err
	}
	active, err := li.policies.Contract(rd, r)
	if err != nil {
		return b, err
	}
	if err := size.Check(d.Contract, size.Of(active)); err != nil {
		return b, err
	}
	commits, err := txn.All(rd, facts.ScanCommitRow,
		facts.SelectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?", r.ID, after, states.MaxSettled)
	if err != nil || len(commits) == 0 {
		return b, err
	}

	b.last, b.at = commits[len(commits)-1].ID, rd.Now
	d.Repo = r
	for _, c := range commits {
		if c.State != ledger.Deployed {
			b.list = append(b.list, &facts.Commit{CommitRow: c, Deriver: &d})
		}
	}
	return b, li.facts.Gather(rd, b.list)
}

// evaluateSimulated evaluates the draft's expressions where no verdicts are stored. It
// stores none.
func (li *Lists) evaluateSimulated(ctx context.Context, org string, list []*facts.Commit) error {
	for _, c := range list {
		err := li.states.EvaluateStored(ctx, org, c.Unevaluated, func(v facts.VerdictRow) {
			c.SetVerdict(v.Attestation, v.Expression, v.Verdict)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addTo adds the moves of the commits to sim.
func (b *simulated) addTo(sim *ledger.Simulation) {
	for _, s := range b.list {
		sim.Evaluated++
		if derived := s.Deriver.Contract.Derive(s.Facts, b.at); derived.State != s.State {
			sim.Add(move(s.CommitRow, derived))
		}
	}
}

// move returns the move of a commit to a derived state. The reasons are those of the
// requirements for the states between the old and the new one, and for the state after.
func move(c *facts.CommitRow, derived policy.Derivation) ledger.Move {
	m := ledger.Move{Commit: c.SHA, From: c.State, To: derived.State, Reasons: []string{}}
	low, high := min(c.State, derived.State), max(c.State, derived.State)
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
