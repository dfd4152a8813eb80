package record

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
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
	if s == nil {
		f.reason = errUnprovenMerge.Error()
		r.merge = &f
		return true, nil
	}
	if f.replaced, r.Err, err = re.replacedClaims(t, d, s, r); err != nil || r.Err != nil {
		return false, err
	}

	reason, err := whyUnproven(t, s, m)
	if err != nil {
		return false, err
	}
	if f.reason = reason; reason == "" {
		ok, err := re.setParentState(t, v, d, r, &f)
		if err != nil || !ok {
			return false, err
		}
	}
	r.merge = &f
	return true, nil
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

var errUnprovenMerge = errors.New("the commit's object was unknown (register it, and claim again)")

// whyUnproven returns why a claim does not agree with the objects that the ledger has seen.
// It is empty if it does.
func whyUnproven(t *txn.Tx, s *facts.Commit, m *attestation.Merge) (string, error) {
	if !s.IsProven() {
		return errUnprovenMerge.Error(), nil
	}
	lineage, err := facts.FindLineage(t.Reader, s.ID)
	if err != nil {
		return "", err
	}

	parents := lineage.Parents
	switch {
	case m.Kind == attestation.Updated || m.Kind == attestation.Rebased:
		return fmt.Sprintf("nothing carries yet by a claim of the kind %s", m.Kind), nil
	case s.Tree != m.Tree:
		return fmt.Sprintf("the claim is about the tree %s, but the commit has %s",
			ledger.Short(m.Tree), ledger.Short(s.Tree)), nil
	case len(parents) == 0 || parents[0] != m.Parent.SHA:
		return fmt.Sprintf("%s is not the first parent of the commit", ledger.Short(m.Parent.SHA)), nil
	case m.Kind == attestation.Squashed && len(parents) != 1:
		return fmt.Sprintf("a squash has one parent, but the commit has %d", len(parents)), nil
	case m.Kind == attestation.Merged && (len(parents) != 2 || parents[1] != m.Source.SHA):
		return fmt.Sprintf("%s is not the second of two parents of the commit", ledger.Short(m.Source.SHA)), nil
	}
	return "", nil
}

// setParentState sets the present standing of the first parent that a claim names, if it is
// proven. It reports false if that cannot be derived now.
func (re *Recorder) setParentState(t *txn.Tx, v *view, d *facts.Deriver, r *Recording, f *mergeFact) (ok bool,
	err error) {
	sha := r.Attestation.Merge.Parent.SHA
	row, err := findParent(t, v, d, sha)
	if err != nil {
		return false, err
	}
	if row == nil || !row.IsProven() {
		f.reason = fmt.Sprintf("the object of the first parent, %s, was unknown (register it, and claim again)",
			ledger.Short(sha))
		return true, nil
	}

	p := &facts.Commit{CommitRow: row, Deriver: d}
	if err := re.facts.Gather(t.Reader, []*facts.Commit{p}); err != nil {
		return false, err
	}
	if p.IsUnevaluated() {
		r.Err = &unjudged{Recording: r, unevaluated: p.Unevaluated}
		return false, nil
	}
	if err := re.states.SettleDue(t, p, ledger.Cause{}); err != nil {
		return false, err
	}
	if other := v.commits[commitKey{d.Repo.ID, sha}]; other != nil {
		other.Facts.Deployed = p.Facts.Deployed
	}
	facts := p.Facts
	facts.Exceptions = nil // they stand for this commit only
	f.parentState, _ = d.Contract.Standing(facts, t.Now)
	return true, nil
}

// findParent finds a commit of the deriver's repo. It returns nil if it is unknown.
func findParent(t *txn.Tx, v *view, d *facts.Deriver, sha string) (*facts.CommitRow, error) {
	if s := v.commits[commitKey{d.Repo.ID, sha}]; s != nil {
		return s.CommitRow, t.Flush() // gather reads what this write has recorded
	}
	if err := t.Flush(); err != nil {
		return nil, err
	}
	c, err := facts.ScanCommitRow(t.Row(facts.SelectCommitRow+"WHERE repo_id = ? AND sha = ?", d.Repo.ID, sha))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the first parent: %w", err)
	}
	return c, nil
}

// addMerge records what a statement claims of a merge, if r is one. The commit's state is
// derived again, with the evidence that carries.
func (re *Recorder) addMerge(t *txn.Tx, v *view, s *facts.Commit, r *Recording) error {
	f := r.merge
	if f == nil {
		return nil
	}
	m := r.Attestation.Merge
	sourceID, err := re.sourceOf(t, v, s.Deriver, m.Source.SHA)
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
INSERT INTO merges (attestation_id, commit_id, source_id, kind, parent_state, reason) VALUES (?, ?, ?, ?, ?, ?)`,
		s.Newest, s.ID, sourceID, string(m.Kind), int64(f.parentState), f.reason)
	if err != nil {
		return fmt.Errorf("insert claim of a merge: %w", err)
	}
	if err := errors.Join(markMerged(t, s.ID, facts.IsMerge), markMerged(t, sourceID, facts.IsMerged)); err != nil {
		return err
	}
	_, err = t.Exec("INSERT INTO merge_sources (commit_id, version) VALUES (?, 0) ON CONFLICT (commit_id) DO NOTHING",
		sourceID)
	if err != nil {
		return fmt.Errorf("insert source of a merge: %w", err)
	}
	re.facts.AddWork(r.cause(), s.ID)
	re.facts.WatchAgain(r.cause(), sourceID)
	return nil
}

// sourceOf returns the row id of the source of a merge. It registers the commit if it is
// unknown.
func (re *Recorder) sourceOf(t *txn.Tx, v *view, d *facts.Deriver, sha string) (int64, error) {
	key := commitKey{d.Repo.ID, sha}
	if s := v.commits[key]; s != nil {
		return s.ID, nil
	}
	if err := t.Flush(); err != nil {
		return 0, err
	}
	c, isNew, err := re.facts.FindOrAddCommit(t, d, sha)
	if err != nil {
		return 0, fmt.Errorf("register the source of a merge: %w", err)
	}
	if isNew {
		v.commits[key] = &facts.Commit{CommitRow: c, Deriver: d}
	}
	return c.ID, nil
}

// markMerged sets a bit of commits.merged.
func markMerged(t *txn.Tx, commitID int64, role facts.MergeRole) error {
	_, err := t.Exec("UPDATE commits SET merged = merged | ?1 WHERE id = ?2 AND merged & ?1 = 0", int64(role), commitID)
	if err != nil {
		return fmt.Errorf("mark a merge: %w", err)
	}
	return nil
}
