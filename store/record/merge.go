package record

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// checkMerge sets what a claim of a merge is recorded with, if r is one. It reports false if
// the claim cannot be recorded now. s is nil if the commit is new.
func (re *Recorder) checkMerge(t *txn.Tx, v *view, d *facts.Deriver, s *facts.Commit, r *Recording) (ok bool,
	err error) {
	m := r.Attestation.Merge
	if m == nil {
		return true, nil
	}
	var f mergeFact
	if s != nil {
		if f.replaced, r.Err, err = re.replacedClaims(t, d, s, r); err != nil || r.Err != nil {
			return false, err
		}
	}
	f.reason, err = re.whyRefused(t, d, s, m)
	r.merge = &f
	return err == nil, err
}

// replacedClaims returns the claims that a new one replaces. If the commit has the maximum of
// claims, one by somebody whose claims may carry evidence replaces the oldest by somebody whose
// claims do not, so that nobody else can use up the claims of a commit. Otherwise it is refused.
func (re *Recorder) replacedClaims(t *txn.Tx, d *facts.Deriver, s *facts.Commit, r *Recording) (replaced []int64,
	refused, err error) {
	claims, err := re.facts.ClaimsOf(t.Reader, []any{s.ID})
	if err != nil {
		return nil, nil, err
	}
	for _, c := range claims {
		if c.Source == r.Attestation.Merge.Source.SHA && slices.Contains(r.people, c.Person) {
			replaced = append(replaced, c.Row)
		}
	}
	if len(claims)-len(replaced) < ledger.MaxMergeClaims {
		return replaced, nil, nil
	}

	if d.Contract.MayCarry(r.Attestation.Signer.DN) {
		idle := slices.IndexFunc(claims, func(c facts.ClaimRow) bool { return !d.Contract.MayCarry(c.Signer.DN) })
		if idle >= 0 {
			return append(replaced, claims[idle].Row), nil, nil
		}
	}
	return nil, ledger.Errorf(ledger.CodeTooManyMerges,
		"the commit has %d claims of merges, the maximum: replace one of them, by the same person about the same source",
		len(claims)), nil
}

// whyRefused returns why nothing carries by a claim about a commit, by what is known now. s is nil if the commit is
// new.
func (re *Recorder) whyRefused(t *txn.Tx, d *facts.Deriver, s *facts.Commit, m *attestation.Merge) (string, error) {
	var c ancestry.Proven
	if s != nil && s.IsProven() {
		lineage, err := facts.FindLineage(t.Reader, s.ID)
		if err != nil {
			return "", err
		}
		c = ancestry.Proven{SHA: s.SHA, Tree: s.Tree, Parents: lineage.Parents}
	}
	return ancestry.WhyRefused(re.history.Of(t.Reader, d.Repo.ID), c, m)
}

// addMerge records what a statement claims of a merge, if r is one. The commit's state is
// derived again, with the evidence that carries.
func (re *Recorder) addMerge(t *txn.Tx, v *view, s *facts.Commit, r *Recording) error {
	f := r.merge
	if f == nil {
		return nil
	}
	m := r.Attestation.Merge
	source, err := re.sideOf(t, v, s.Deriver, m.Source.SHA)
	if err != nil {
		return err
	}
	parent, err := re.sideOf(t, v, s.Deriver, m.Parent.SHA)
	if err != nil {
		return err
	}
	if err := t.Flush(); err != nil {
		return err
	}

	for _, id := range f.replaced {
		if _, err := t.Exec("DELETE FROM merges WHERE attestation_id = ?", id); err != nil {
			return fmt.Errorf("replace a claim of a merge: %w", err)
		}
	}
	_, err = t.Exec(`
INSERT INTO merges (attestation_id, commit_id, source_id, parent_id, kind, parent_state, reason)
VALUES (?, ?, ?, ?, ?, 0, ?)`, s.Newest, s.ID, source.ID, parent.ID, string(m.Kind), f.reason)
	if err != nil {
		return fmt.Errorf("insert claim of a merge: %w", err)
	}
	err = errors.Join(markMerged(t, s.CommitRow, facts.IsMerge), markMerged(t, source, facts.IsMerged),
		markMerged(t, parent, facts.IsSide))
	if err != nil {
		return err
	}
	_, err = t.Exec(`
INSERT INTO merge_sides (commit_id, version) VALUES (?, 0), (?, 0) ON CONFLICT (commit_id) DO NOTHING`,
		source.ID, parent.ID)
	if err != nil {
		return fmt.Errorf("insert the sides of a merge: %w", err)
	}
	re.facts.AddWork(r.cause(), s.ID)
	re.facts.WatchAgain(r.cause(), source.ID)
	return re.settleParent(t, v, &facts.Commit{CommitRow: parent, Deriver: s.Deriver}, r.cause())
}

// settleParent derives what the commit of the mainline meets, before the state of the merge is derived.
func (re *Recorder) settleParent(t *txn.Tx, v *view, p *facts.Commit, cause ledger.Cause) error {
	if err := re.states.Renew(t, p); err != nil {
		return err
	}
	if err := re.facts.FollowStanding(t, p); err != nil {
		return err
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := re.facts.Gather(t.Reader, []*facts.Commit{p}); err != nil {
		return err
	}

	if err := re.states.SettleDue(t, p, ledger.Cause{}); err != nil {
		return err
	}
	if err := re.states.SettleCommit(t, p, cause); err != nil {
		return err
	}
	if other := v.commits[commitKey{p.RepoID, p.SHA}]; other != nil {
		other.Facts.Deployed = p.Facts.Deployed
	}
	return nil
}

// sideOf returns a commit that a claim names. It registers the commit if it is
// unknown.
func (re *Recorder) sideOf(t *txn.Tx, v *view, d *facts.Deriver, sha string) (*facts.CommitRow, error) {
	key := commitKey{d.Repo.ID, sha}
	if s := v.commits[key]; s != nil {
		return s.CommitRow, nil
	}
	if err := t.Flush(); err != nil {
		return nil, err
	}
	c, isNew, err := re.facts.FindOrAddCommit(t, d, sha)
	if err != nil {
		return nil, fmt.Errorf("register a side of a merge: %w", err)
	}
	if isNew {
		v.commits[key] = &facts.Commit{CommitRow: c, Deriver: d}
	}
	return c, nil
}

// markMerged notes what claims say of a commit.
func markMerged(t *txn.Tx, c *facts.CommitRow, role facts.MergeRole) error {
	c.Merged |= role
	_, err := t.Exec("UPDATE commits SET merged = merged | ?1 WHERE id = ?2 AND merged & ?1 = 0", int64(role), c.ID)
	if err != nil {
		return fmt.Errorf("mark a merge: %w", err)
	}
	return nil
}
