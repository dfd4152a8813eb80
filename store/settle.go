package store

import (
	"cmp"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// settleDue settles a commit if it is due and the background has not reached it yet, so that the next change
// starts from the correct state. why is the cause if what it inherits has changed; if it is empty, settleDue
// finds it.
func (t *tx) settleDue(s *subject, why ledger.Cause) (err error) {
	switch {
	case !s.isDue(t.Now):
		return nil
	case s.policyVersion != s.d.repo.PolicyVersion:
		why = s.d.policyCause()
	case s.hasExpired(t.Now):
		why = s.expiry(s.expires)
	case why == ledger.Cause{}:
		if why, err = t.inheritedCause(s); err != nil {
			return err
		}
	}
	return t.settle(s, why)
}

// settle derives a commit's state from its facts. It records the state, the transitions
// and their events.
func (t *tx) settle(s *subject, cause ledger.Cause) error {
	if s.d.repo.Deleted {
		return t.suspend(s)
	}
	if s.isUnevaluated() {
		return t.postpone(s, cause)
	}

	o := s.d.contract.Outcome(s.facts, t.Now)
	if s.state == ledger.Deployed && o.State != ledger.Deployed {
		if err := t.returnTip(s); err != nil {
			return err
		}
		o = s.d.contract.Outcome(s.facts, t.Now)
	}

	state := o.State
	for from, path := s.state, policy.Path(s.state, state); len(path) > 0; from, path = path[0], path[1:] {
		if err := t.transition(s, from, path[0], cause); err != nil {
			return err
		}
	}

	s.expires, s.policyVersion, s.basis = o.Expires, s.d.repo.PolicyVersion, s.versions
	t.markDirty(s.commitRow)
	if err := t.moveStanding(s, o, cause); err != nil {
		return err
	}
	s.facts.Deployed = state == ledger.Deployed // still true if other signers' deployments count

	if state == s.state {
		return nil
	}
	t.countState(s.repoID, s.state, -1)
	t.countState(s.repoID, state, 1)
	s.state, s.stateSince, s.isMoved = state, t.Now, true
	if s.state == ledger.Deployed {
		return t.deployTip(s.id)
	}
	return nil
}

// moveStanding notes the standing of a commit that is moved to a state. It appends an event if the
// standing changes and the state does not.
func (t *tx) moveStanding(s *subject, o policy.Outcome, cause ledger.Cause) error {
	standing, failed := o.Standing, o.Failed
	switch {
	case o.State != ledger.Deployed:
		standing = ledger.Deployed
	case s.isHistory():
		s.expires = 0
		return nil
	case s.state == ledger.Deployed && len(s.unevaluated) > 0:
		return t.postpone(s, cause)
	case s.state == ledger.Deployed && s.standing != standing:
		if err := t.s.Journal.AppendStanding(t.kernel, s.d.repo, s.sha, s.standing, standing, cause); err != nil {
			return err
		}
	}

	if o.State == ledger.Deployed {
		failed = standing < ledger.Promotable
	}
	s.noteFailed(failed, t.Now)
	s.isMoved = s.isMoved || standing != s.standing
	s.standing = standing
	return nil
}

// suspend leaves the state of a commit of a deleted repo as it is. It is derived again if the
// repo is restored.
func (t *tx) suspend(s *subject) error {
	s.expires, s.policyVersion, s.basis = 0, s.d.repo.PolicyVersion, s.versions
	t.markDirty(s.commitRow)
	return nil
}

// postpone leaves a commit to the background, because expressions must be evaluated first: what
// is not evaluated yet does not count, and must not cost the commit its state.
func (t *tx) postpone(s *subject, cause ledger.Cause) error {
	s.expires = 0 // until its state is derived
	t.markDirty(s.commitRow)
	return t.s.jobs.Later(t.kernel, s.repoID, backlog.Settle, s.id, cause)
}

func (t *tx) transition(s *subject, from, to ledger.State, cause ledger.Cause) error {
	event, err := t.s.Journal.AppendState(t.kernel, s.d.repo, s.sha, from, to, cause)
	if err != nil {
		return err
	}
	t.batch.rows.transitions.Add(s.id, event, int64(from), int64(to), int64(t.Now), string(cause.Type), cause.ID)
	return nil
}

// drain settles the commits of the worklist, which are all of one repo. It adds none to
// the worklist: only an attestation can end a deployment and cause a scan.
func (t *tx) drain(d *deriver) error {
	work := t.takeWork()
	if len(work.order) == 0 {
		return nil
	}
	list, err := t.subjects(d, work.order)
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := t.settleAgain(s, work.entries[s.id]); err != nil {
			return err
		}
	}
	return nil
}

// settleAgain settles a commit of the worklist.
func (t *tx) settleAgain(s *subject, e workEntry) error {
	if e.runs != (ledger.Cause{}) {
		if err := t.watch(s); err != nil {
			return err
		}
		if s.keepsStanding() {
			e.cause = cmp.Or(e.cause, e.runs)
		}
	}
	switch {
	case e.reached && s.isDue(t.Now):
		return t.settleDue(s, e.cause)
	case e.cause == ledger.Cause{}, e.reached && s.isHistory():
		return nil
	case t.inBackground && s.policyVersion != s.d.repo.PolicyVersion:
		return nil // a job has not reached it yet
	}
	return t.settle(s, e.cause)
}

// subjects reads commits of a repo and their facts, including the changes of this write.
func (t *tx) subjects(d *deriver, ids []int64) ([]*subject, error) {
	if err := t.kernel.Flush(); err != nil {
		return nil, err
	}
	return t.readSubjects(d, ids)
}

// readSubjects reads commits of a repo and their facts.
func (rd reader) readSubjects(d *deriver, ids []int64) ([]*subject, error) {
	keys := make([]any, len(ids))
	for i, id := range ids {
		keys[i] = id
	}
	byID := make(map[int64]*subject, len(ids))
	err := rd.EachIn(func(row txn.Scanner) error {
		c, err := scanCommitRow(row)
		byID[c.id] = &subject{commitRow: c, d: d}
		return err
	}, selectCommitRow+"WHERE id IN ", 1, keys)
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}

	list := make([]*subject, len(ids))
	for i, id := range ids {
		if list[i] = byID[id]; list[i] == nil {
			return nil, fmt.Errorf("commit %d is missing", id)
		}
	}
	return list, rd.gather(list)
}

// subjectsOf returns commits of any repos, without their facts.
func (t *tx) subjectsOf(commits []*commitRow) ([]*subject, error) {
	repos := make(derivers)
	list := make([]*subject, len(commits))
	for i, c := range commits {
		d, err := repos.of(t.reader, c.repoID)
		if err != nil {
			return nil, err
		}
		list[i] = &subject{commitRow: c, d: d}
	}
	return list, nil
}

// returnTip puts a commit that was rolled back in flight again. It has the radar scan the
// commit, because newer commits were not compared with it, and updates the overlaps in
// its facts.
func (t *tx) returnTip(s *subject) error {
	_, err := t.Exec(`
UPDATE tips SET flight = ?, ended_at = 0, policy_version = 0, `+renumber+`
WHERE commit_id = ? AND flight = ?`, radarindex.InFlight, s.id, radarindex.Deployed)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	tip, _, err := t.findTip(s.id)
	if err != nil || !tip.InFlightAt(s.d.contract.Radar, t.Now) {
		return err
	}
	n, err := t.registrationOf(s.id)
	if err != nil {
		return err
	}
	if _, err := t.scanOverlaps(s.d, tip, n, nil); err != nil || !s.d.contract.Radar.Blocks() {
		return err
	}
	s.facts.Overlaps = nil
	return t.gatherOverlaps(map[int64]*subject{s.id: s}, []any{s.id})
}
