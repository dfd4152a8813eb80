package states

import (
	"cmp"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/txn"
)

// SettleDue settles a commit if it is due and the background has not reached it yet, so that the next change
// starts from the correct state. why is the cause if what it inherits has changed; if it is empty, SettleDue
// finds it.
func (st *States) SettleDue(t *txn.Tx, s *facts.Commit, why ledger.Cause) (err error) {
	if err := st.Renew(t, s); err != nil {
		return err
	}
	if err := st.settleSides(t, s); err != nil {
		return err
	}

	switch {
	case !s.IsDue(t.Now):
		return nil
	case s.PolicyVersion != s.Deriver.Repo.PolicyVersion:
		why = s.Deriver.PolicyCause()
	case s.HasExpired(t.Now):
		why = s.Expiry(s.Expires)
	case why == ledger.Cause{}:
		if why, err = facts.InheritedCause(t.Reader, s); err != nil {
			return err
		}
	}
	return st.SettleCommit(t, s, why)
}

// settleCommit settles a commit if it is due.
func (st *States) settleCommit(t *txn.Tx, id int64) error {
	c, err := facts.FindCommitRow(t.Reader, id)
	if err != nil {
		return err
	}
	list, err := st.commitsOf(t, []*facts.CommitRow{c})
	if err != nil {
		return err
	}
	if err := st.facts.Gather(t.Reader, list); err != nil {
		return err
	}
	return st.SettleDue(t, list[0], ledger.Cause{})
}

// settleSides settles the commits of the mainline on which a merge rests, if a policy or a revocation makes them all
// due: otherwise the merge would be derived from what they met before, and fall and rise again. If they are too many
// for one write, it leaves them to the background.
func (st *States) settleSides(t *txn.Tx, s *facts.Commit) error {
	if s.Merged&facts.IsMerge == 0 || !s.IsOverruled() {
		return nil
	}
	if err := t.Flush(); err != nil {
		return err
	}

	below, err := dueBelow(t, s)
	if err != nil || len(st.ahead)+len(below) > MaxSettled {
		return err
	}
	for _, id := range below {
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

// SettleCommit derives a commit's state from its facts. It records the state, the transitions
// and their events.
func (st *States) SettleCommit(t *txn.Tx, s *facts.Commit, cause ledger.Cause) error {
	if s.Deriver.Repo.Deleted {
		return st.suspend(s)
	}
	if s.IsUnevaluated() {
		return st.postpone(t, s, cause)
	}

	o := s.Deriver.Contract.Outcome(s.Facts, t.Now)
	if s.State == ledger.Deployed && o.State != ledger.Deployed {
		if err := st.returnTip(t, s); err != nil {
			return err
		}
		o = s.Deriver.Contract.Outcome(s.Facts, t.Now)
	}
	if o.State == ledger.Deployed && s.KeepsStanding() && len(s.Unevaluated) > 0 {
		return st.postpone(t, s, cause)
	}

	state := o.State
	for from, path := s.State, policy.Path(s.State, state); len(path) > 0; from, path = path[0], path[1:] {
		if err := st.transition(t, s, from, path[0], cause); err != nil {
			return err
		}
	}

	s.Expires, s.PolicyVersion = o.Expires, s.Deriver.Repo.PolicyVersion
	s.Basis, s.Distrusts = s.Versions, s.Deriver.Repo.Distrusts
	st.facts.MarkDirty(s.CommitRow)
	if err := st.moveStanding(t, s, o, cause); err != nil {
		return err
	}
	if err := st.facts.KeepMet(t, s, cause); err != nil {
		return err
	}
	s.Facts.Deployed = state == ledger.Deployed // still true if other signers' deployments count

	if state == s.State {
		return nil
	}
	st.facts.CountState(s.RepoID, s.State, -1)
	st.facts.CountState(s.RepoID, state, 1)
	s.State, s.StateSince, s.IsMoved = state, t.Now, true
	if s.State == ledger.Deployed {
		return overlaps.DeployTip(t, s.ID)
	}
	return nil
}

// moveStanding notes the standing of a commit that is moved to a state. It appends an event if the
// standing changes and the state does not.
func (st *States) moveStanding(t *txn.Tx, s *facts.Commit, o policy.Outcome, cause ledger.Cause) error {
	standing, failed := o.Standing, o.Failed
	switch {
	case o.State != ledger.Deployed:
		standing = ledger.Deployed
	case s.IsHistory():
		s.Expires = 0
		return nil
	case s.State == ledger.Deployed && s.Standing != standing:
		if err := st.journal.AppendStanding(t, s.Deriver.Repo, s.SHA, s.Standing, standing, cause); err != nil {
			return err
		}
	}

	if o.State == ledger.Deployed {
		failed = standing < ledger.Promotable
	}
	s.NoteFailed(failed, t.Now)
	s.IsMoved = s.IsMoved || standing != s.Standing
	s.Standing = standing
	return nil
}

// suspend leaves the state of a commit of a deleted repo as it is. It is derived again if the
// repo is restored.
func (st *States) suspend(s *facts.Commit) error {
	s.Expires, s.PolicyVersion = 0, s.Deriver.Repo.PolicyVersion
	s.Basis, s.Distrusts = s.Versions, s.Deriver.Repo.Distrusts
	st.facts.MarkDirty(s.CommitRow)
	return nil
}

// postpone leaves a commit to the background, because expressions must be evaluated first: what
// is not evaluated yet does not count, and must not cost the commit its state.
func (st *States) postpone(t *txn.Tx, s *facts.Commit, cause ledger.Cause) error {
	s.Expires = 0 // until its state is derived
	st.facts.MarkDirty(s.CommitRow)
	return st.jobs.Later(t, s.RepoID, backlog.Settle, s.ID, cause)
}

func (st *States) transition(t *txn.Tx, s *facts.Commit, from, to ledger.State, cause ledger.Cause) error {
	event, err := st.journal.AppendState(t, s.Deriver.Repo, s.SHA, from, to, cause)
	if err != nil {
		return err
	}
	st.rows.transitions.Add(s.ID, event, int64(from), int64(to), int64(t.Now), string(cause.Type), cause.ID)
	return nil
}

// Drain settles the commits of the worklist, which are all of one repo. It adds none to
// the worklist: only an attestation can end a deployment and cause a scan.
func (st *States) Drain(t *txn.Tx, d *facts.Deriver) error {
	work := st.facts.TakeWork()
	if len(work.Order) == 0 {
		return nil
	}
	list, err := st.readCommits(t, d, work.Order)
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := st.settleAgain(t, s, work.Entries[s.ID]); err != nil {
			return err
		}
	}
	return nil
}

// settleAgain settles a commit of the worklist.
func (st *States) settleAgain(t *txn.Tx, s *facts.Commit, e facts.WorkEntry) error {
	if err := st.Renew(t, s); err != nil {
		return err
	}
	if e.Runs != (ledger.Cause{}) {
		if err := st.facts.FollowStanding(t, s); err != nil {
			return err
		}
		if s.KeepsStanding() {
			e.Cause = cmp.Or(e.Cause, e.Runs)
		}
	}

	switch {
	case e.Reached && s.IsDue(t.Now):
		return st.SettleDue(t, s, e.Cause)
	case e.Cause == ledger.Cause{}, e.Reached && s.IsHistory():
		return nil
	case st.inBackground && s.PolicyVersion != s.Deriver.Repo.PolicyVersion:
		return nil // a job has not reached it yet
	}
	if err := st.settleSides(t, s); err != nil {
		return err
	}
	return st.SettleCommit(t, s, e.Cause)
}

// readCommits reads commits of a repo and their facts, including the changes of this write.
func (st *States) readCommits(t *txn.Tx, d *facts.Deriver, ids []int64) ([]*facts.Commit, error) {
	if err := t.Flush(); err != nil {
		return nil, err
	}
	return st.ReadCommits(t.Reader, d, ids)
}

// ReadCommits reads commits of a repo and their facts.
func (st *States) ReadCommits(rd txn.Reader, d *facts.Deriver, ids []int64) ([]*facts.Commit, error) {
	keys := make([]any, len(ids))
	for i, id := range ids {
		keys[i] = id
	}
	byID := make(map[int64]*facts.Commit, len(ids))
	err := rd.EachIn(func(row txn.Scanner) error {
		c, err := facts.ScanCommitRow(row)
		byID[c.ID] = &facts.Commit{CommitRow: c, Deriver: d}
		return err
	}, facts.SelectCommitRow+"WHERE id IN ", 1, keys)
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}

	list := make([]*facts.Commit, len(ids))
	for i, id := range ids {
		if list[i] = byID[id]; list[i] == nil {
			return nil, fmt.Errorf("commit %d is missing", id)
		}
	}
	return list, st.facts.Gather(rd, list)
}

// commitsOf returns commits of any repos, without their facts.
func (st *States) commitsOf(t *txn.Tx, commits []*facts.CommitRow) ([]*facts.Commit, error) {
	repos := st.facts.Derivers()
	list := make([]*facts.Commit, len(commits))
	for i, c := range commits {
		d, err := repos.Of(t.Reader, c.RepoID)
		if err != nil {
			return nil, err
		}
		list[i] = &facts.Commit{CommitRow: c, Deriver: d}
	}
	return list, nil
}

// returnTip puts a commit that was rolled back in flight again. It has the radar scan the
// commit, because newer commits were not compared with it, and updates the overlaps in
// its facts.
func (st *States) returnTip(t *txn.Tx, s *facts.Commit) error {
	if err := overlaps.ReturnTip(t, s.ID); err != nil {
		return err
	}
	tip, _, err := facts.FindTip(t.Reader, s.ID)
	if err != nil || !tip.InFlightAt(s.Deriver.Contract.Radar, t.Now) {
		return err
	}
	n, err := facts.RegistrationOf(t.Reader, s.ID)
	if err != nil {
		return err
	}
	if _, err := st.radar.ScanOverlaps(t, s.Deriver, tip, n, nil); err != nil || !s.Deriver.Contract.Radar.Blocks() {
		return err
	}
	s.Facts.Overlaps = nil
	return facts.GatherOverlaps(t.Reader, map[int64]*facts.Commit{s.ID: s}, []any{s.ID})
}
