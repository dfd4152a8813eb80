package store

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

// A deriver applies a contract to commits of one repo.
type deriver struct {
	repo     repoRow
	contract *ledger.Contract
}

// deriver returns what derives the states of the repo's commits under its
// active contract.
func (rd reader) deriver(r repoRow) (*deriver, error) {
	contract, err := rd.contract(r)
	return &deriver{r, contract}, err
}

func (d *deriver) policyCause() ledger.Cause {
	return ledger.Cause{Type: ledger.CausePolicy, ID: strconv.Itoa(d.repo.policyVersion)}
}

// A subject is a commit and what a derivation knows of it.
type subject struct {
	*commitRow
	d     *deriver
	facts ledger.Facts
}

// gather reads the facts of commits, each of them once in the list.
func (rd reader) gather(list []*subject) error {
	byID := make(map[int64]*subject, len(list))
	var attested, blockable, changing []any
	for _, s := range list {
		byID[s.id] = s
		s.facts = ledger.Facts{
			Author:   s.author,
			Branch:   s.branch,
			Target:   cmp.Or(s.target, s.d.repo.defaultBranch),
			Attested: s.attestations > 0,
			Deployed: s.state == ledger.Deployed,
		}
		if s.attestations > 0 {
			attested = append(attested, s.id)
		}
		if s.d.contract.Radar.Blocks() {
			blockable = append(blockable, s.id)
		}
		if s.d.contract.NeedsChanges() {
			changing = append(changing, s.id)
		}
	}
	if err := rd.gatherEvidence(byID, attested); err != nil {
		return fmt.Errorf("read evidence: %w", err)
	}
	if err := rd.gatherOverlaps(byID, blockable); err != nil {
		return fmt.Errorf("read overlaps: %w", err)
	}
	if err := rd.gatherChanges(byID, changing); err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	return nil
}

// gatherOne is gather for one commit.
func (rd reader) gatherOne(d *deriver, c *commitRow) (*subject, error) {
	s := &subject{commitRow: c, d: d}
	return s, rd.gather([]*subject{s})
}

// gatherEvidence reads the evidence of commits: the latest attestation of each
// signer for each predicate.
func (rd reader) gatherEvidence(byID map[int64]*subject, ids []any) error {
	type latest struct{ commit, attestation int64 }
	var list []latest
	err := rd.EachIn(func(row scanner) error {
		var l latest
		err := row.Scan(&l.commit, &l.attestation)
		list = append(list, l)
		return err
	}, "SELECT commit_id, attestation_id FROM latest WHERE commit_id IN ", 1, ids)
	if err != nil {
		return err
	}
	found := make(map[int64]ledger.Evidence, len(list))
	var missing []any
	for _, l := range list {
		if e, ok := rd.known.evidence.get(l.attestation); ok {
			found[l.attestation] = e
		} else {
			missing = append(missing, l.attestation)
		}
	}
	if err := rd.readEvidence(found, missing); err != nil {
		return err
	}
	for _, l := range list {
		f := &byID[l.commit].facts
		f.Evidence = append(f.Evidence, found[l.attestation])
	}
	return nil
}

// readEvidence adds attestations to found, by their rows.
func (rd reader) readEvidence(found map[int64]ledger.Evidence, rows []any) error {
	return rd.EachIn(func(row scanner) error {
		var id, predicateID, signerID int64
		var emails string
		var e ledger.Evidence
		err := row.Scan(&id, &predicateID, &signerID, &e.Attestation, &emails, &e.Status, &e.RecordedAt, &e.WhilePromotable)
		if err != nil {
			return err
		}
		if emails != "" {
			e.Emails = strings.Split(emails, "\n")
		}
		if e.Predicate, err = rd.predicate(predicateID); err != nil {
			return err
		}
		if e.Signer, err = rd.signer(signerID); err != nil {
			return err
		}
		found[id] = e
		rd.known.evidence.put(id, e)
		return nil
	}, `
SELECT id, predicate_id, signer_id, attestation_id, emails, status, recorded_at, while_promotable
FROM attestations WHERE id IN `, 1, rows)
}

const selectBlocking = `
SELECT o.later, o.level, e.sha, e.branch, o.path, o.reason, l.opened_at, e.opened_at
FROM overlaps o JOIN tips l ON l.commit_id = o.later JOIN tips e ON e.commit_id = o.earlier
WHERE (l.` + isInFlight + ` OR l.` + isDeployed + `) AND e.` + isLive + ` AND e.place < l.place AND o.later IN `

// gatherOverlaps reads what may keep commits from being PROMOTABLE, of those
// whose contract's radar blocks. Age is for the derivation to judge.
func (rd reader) gatherOverlaps(byID map[int64]*subject, ids []any) error {
	return rd.EachIn(func(row scanner) error {
		var commitID int64
		var o ledger.OpenOverlap
		var later, earlier ledger.Time // when each came into flight
		err := row.Scan(&commitID, &o.Level, &o.Commit, &o.Branch, &o.Path, &o.Reason, &later, &earlier)
		if err != nil {
			return err
		}
		s := byID[commitID]
		if radar := s.d.contract.Radar; o.Level >= radar.Block {
			o.Until = min(later, earlier).Add(time.Duration(radar.MaxAge))
			s.facts.Overlaps = append(s.facts.Overlaps, o)
		}
		return nil
	}, selectBlocking, 1, ids)
}

// gatherChanges reads the paths that commits change.
func (rd reader) gatherChanges(byID map[int64]*subject, ids []any) error {
	return rd.EachIn(func(row scanner) error {
		var commitID int64
		var text []byte
		if err := row.Scan(&commitID, &text); err != nil {
			return err
		}
		changes, err := decodeChanges(text)
		f := &byID[commitID].facts
		f.HasChanges = changes != nil
		for _, change := range changes {
			f.Changes = append(f.Changes, change.Path)
			if change.OldPath != "" {
				f.Changes = append(f.Changes, change.OldPath)
			}
		}
		return err
	}, "SELECT commit_id, changes FROM commit_details WHERE commit_id IN ", 1, ids)
}

// expiry tells what ended at the given moment: evidence, or else an overlap.
func (s *subject) expiry(at ledger.Time) ledger.Cause {
	id := s.d.contract.RanOut(s.facts, at)
	if id == "" {
		for _, o := range s.facts.Overlaps {
			if o.Until == at {
				return ledger.Cause{Type: ledger.CauseRadar, ID: o.Commit}
			}
		}
	}
	return ledger.Cause{Type: ledger.CauseExpiry, ID: id}
}

// isDue reports whether the policy has changed or evidence has run out since the
// state was derived.
func (s *subject) isDue(now ledger.Time) bool {
	return s.state != ledger.Deployed &&
		(s.policyVersion != s.d.repo.policyVersion || s.expires != 0 && s.expires <= now)
}

// settleDue settles a commit that is due and that Evaluate has not reached yet:
// what is done to the commit next must find it where it belongs.
func (t *tx) settleDue(s *subject) error {
	switch {
	case !s.isDue(t.now):
		return nil
	case s.policyVersion != s.d.repo.policyVersion:
		return t.settle(s, s.d.policyCause())
	}
	return t.settle(s, s.expiry(s.expires))
}

// settle derives a commit's state from its facts and records what follows: the
// state, its transitions and their events.
func (t *tx) settle(s *subject, cause ledger.Cause) error {
	derived := s.d.contract.Derive(s.facts, t.now)
	if s.state == ledger.Deployed && derived.State != ledger.Deployed {
		if err := t.returnTip(s); err != nil {
			return err
		}
		derived = s.d.contract.Derive(s.facts, t.now)
	}
	for from, path := s.state, ledger.Path(s.state, derived.State); len(path) > 0; from, path = path[0], path[1:] {
		if err := t.transition(s, from, path[0], cause); err != nil {
			return err
		}
	}
	s.expires, s.policyVersion = derived.Expires, s.d.repo.policyVersion
	if derived.State == ledger.Deployed {
		s.expires = 0 // age does not end a deployment
	}
	t.keep(s.commitRow)
	if derived.State == s.state {
		return nil
	}
	t.countState(s.repoID, s.state, -1)
	t.countState(s.repoID, derived.State, 1)
	s.state, s.stateSince, s.isMoved = derived.State, t.now, true
	s.facts.Deployed = s.state == ledger.Deployed
	if s.state == ledger.Deployed {
		return t.deployTip(s.id)
	}
	return nil
}

func (t *tx) transition(s *subject, from, to ledger.State, cause ledger.Cause) error {
	event, err := t.stateEvent(s.d.repo, s.sha, from, to, cause)
	if err != nil {
		return err
	}
	t.batch.rows.transitions.Add(s.id, event, int64(from), int64(to), int64(t.now), string(cause.Type), cause.ID)
	return nil
}

// drain derives the commits of the worklist, which are of one repo. None is added
// to it meanwhile: only an attestation ends a deployment, and so has the radar look
// at a commit.
func (t *tx) drain(d *deriver) error {
	work := t.work
	t.work = worklist{}
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
	switch {
	case e.reached && s.isDue(t.now):
		return t.settleDue(s)
	case e.cause == ledger.Cause{}:
		return nil
	case t.evaluating && s.policyVersion != s.d.repo.policyVersion:
		return nil // Evaluate has yet to reach it
	}
	return t.settle(s, e.cause)
}

// subjects reads commits of a repo and their facts, as the write has left them.
func (t *tx) subjects(d *deriver, ids []int64) ([]*subject, error) {
	if err := t.flush(); err != nil {
		return nil, err
	}
	keys := make([]any, len(ids))
	for i, id := range ids {
		keys[i] = id
	}
	byID := make(map[int64]*subject, len(ids))
	err := t.EachIn(func(row scanner) error {
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
	return list, t.gather(list)
}

// deployTip takes a commit that was deployed out of flight.
func (t *tx) deployTip(commitID int64) error {
	_, err := t.Exec("UPDATE tips SET flight = ?, ended_at = ?, "+renumber+" WHERE commit_id = ? AND flight = ?",
		radarindex.Deployed, t.now, commitID, radarindex.InFlight)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	return nil
}

// returnTip takes a commit that was rolled back into flight again, and has the
// radar look at it: what came into flight meanwhile was not compared with it. Its
// facts then hold what may keep it from being PROMOTABLE.
func (t *tx) returnTip(s *subject) error {
	_, err := t.Exec("UPDATE tips SET flight = ?, ended_at = 0, policy_version = 0, "+renumber+" WHERE commit_id = ? AND flight = ?",
		radarindex.InFlight, s.id, radarindex.Deployed)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	tip, _, err := t.findTip(s.id)
	if err != nil || !tip.Flies(s.d.contract.Radar, t.now) {
		return err
	}
	n, err := t.registrationOf(s.id)
	if err != nil {
		return err
	}
	if _, err := t.lookAt(s.d, tip, n, nil); err != nil || !s.d.contract.Radar.Blocks() {
		return err
	}
	s.facts.Overlaps = nil
	return t.gatherOverlaps(map[int64]*subject{s.id: s}, []any{s.id})
}
