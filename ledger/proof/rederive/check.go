package rederive

import (
	"fmt"
	"math"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// maxLag is how long a ledger may take until states agree with a contract or an identity that
// was changed, or with evidence that has expired.
const maxLag = time.Minute

// Check derives the state of a commit again, in a repo with the given default branch, and
// compares it with the last one in the log. If that cannot be decided, why says so. The error
// says that the state does not follow. A DEPLOYED commit stays so: it must have become so, and
// not have been rolled back.
func (r *Replay) Check(sha, defaultBranch string, now ledger.Time) (state ledger.State, why string, err error) {
	d := &derivation{Replay: r, commit: r.commit(sha), branch: defaultBranch}
	logged, since := d.commit.stateBefore(math.MaxInt64)
	if d.commit.known == nil {
		return logged, "it is not known what it is", nil
	}
	if d.commit.ships {
		d.act()
		if why = d.commit.doubt(); why != "" {
			return logged, why, nil
		}
	}
	if logged == ledger.Deployed {
		if why, err = d.checkDeployed(since); err == nil && why == "" {
			why, err = d.checkStanding(since)
		}
	} else {
		why, err = d.checkPresent(logged, now)
	}
	return logged, why, err
}

// UsesFirst reports whether a state that was derived followed from version 1 of the contract, which
// comes with the repo and is in no event.
func (r *Replay) UsesFirst() bool { return r.isFirst }

// checkPresent checks a state that must follow from all evidence there is.
func (d *derivation) checkPresent(logged ledger.State, now ledger.Time) (why string, err error) {
	end := moment{math.MaxInt64, now}
	at := d.derive(end)
	if at.why != "" && !(at.isHighest && at.state < logged) {
		return at.why, nil
	}
	derived := at.state
	contract, _ := d.contractBefore(end.index)
	blocks := contract.Radar.Blocks()
	switch {
	case derived == logged && blocks && logged >= ledger.Promotable:
		return blockedOverlaps, nil
	case derived == logged:
		return "", nil
	case blocks && derived >= ledger.Promotable:
		return "it would be " + derived.String() + " without overlaps with other commits, which are not read " + seeRadar, nil
	}

	end.at = now.Add(-maxLag)
	if before := d.derive(end); before.state == logged || d.changedAt() > end.at {
		return "the ledger may still be deriving it again, as a contract, an identity or evidence has changed in the last " +
			"minute (run it again in a minute)", nil
	}
	if d.hasUnread && (contract.NeedsKnownAuthors() || derived > logged) {
		return unreadSigners, nil
	}
	if d.based > ancestry.MaxGaps && d.seen.objectAt > d.commit.lastEvent() {
		return lateObjects, nil
	}
	if d.shipped != 0 && d.learntAt() > d.shipped {
		return sinceDeployed, nil
	}
	return "", verify.Derived(logged, derived)
}

// changedAt returns when a contract, an identity, or evidence that may carry has last changed.
func (d *derivation) changedAt() ledger.Time {
	return max(d.versions[len(d.versions)-1].at, d.trusted.at, d.joined.at, d.seen.changed)
}

// checkDeployed checks a commit that has become DEPLOYED at the given moment.
func (d *derivation) checkDeployed(since moment) (why string, err error) {
	at := d.derive(since)
	if at.why != "" && !(at.isHighest && at.state != ledger.Deployed) {
		return at.why, nil
	}
	if derived := at.state; derived != ledger.Deployed {
		if d.learntAt() > since.index {
			return sinceDeployed, nil
		}
		if contract, _ := d.contractBefore(since.index); d.hasUnread && contract.NeedsKnownAuthors() {
			return unreadSigners, nil
		}
		return "", fmt.Errorf("it was DEPLOYED at %s, and by the evidence in the log it was %s then", since.at, derived)
	}

	if contract, _ := d.contractBefore(since.index); contract.Radar.Blocks() {
		why = blockedOverlaps
	}
	for i := range d.commit.recs {
		rec := &d.commit.recs[i]
		if rec.index < since.index || d.isDistrusted(rec) {
			continue
		}
		contract, ok := d.contractBefore(rec.index)
		if !ok {
			return unknownContract, nil
		}
		if !contract.RollsBack(d.known(&contract), rec.evidence) {
			continue
		}
		after := d.derive(moment{rec.index + 1, rec.at}) // the deployments of others may still count
		if after.why != "" {
			return after.why, nil
		}
		if after.state != ledger.Deployed {
			return "", fmt.Errorf("it is DEPLOYED, and %s has rolled it back", rec.evidence.Attestation)
		}
	}
	return why, nil
}

// checkStanding checks the last standing that the log has of a commit which is DEPLOYED since the
// given moment.
func (d *derivation) checkStanding(since moment) (why string, err error) {
	logged := d.commit.standing
	if logged.index <= since.index {
		return "", nil
	}
	at := d.derive(logged.moment)
	derived := at.state
	switch {
	case at.why != "" || min(derived, ledger.Promotable) == logged.to:
		return at.why, nil
	case d.learntAt() > logged.index:
		return "what is known of it, or of who signs, has changed since its standing did", nil
	case d.hasUnread:
		return unreadSigners, nil
	}
	return "", fmt.Errorf("its standing was logged as %s at %s, and by the evidence in the log it was %s then",
		logged.to, logged.at, min(derived, ledger.Promotable))
}

// lastEvent returns the last event of the log about a commit itself.
func (c *commit) lastEvent() int64 {
	last := max(c.logged.index, c.standing.index)
	if n := len(c.recs); n > 0 {
		last = max(last, c.recs[n-1].index)
	}
	if n := len(c.states); n > 0 {
		last = max(last, c.states[n-1].index)
	}
	return last
}

// doubt says why it is not known whether one of the commit's deployments counts. It is empty if that is known of all.
func (c *commit) doubt() string {
	for i := range c.recs {
		if why := c.recs[i].doubt; why != "" {
			return why
		}
	}
	return ""
}

// learntAt returns the last event of what is known of the commit and of those from which it inherits, or of who signs.
func (d *derivation) learntAt() int64 {
	return max(d.commit.logged.index, d.trusted.index, d.joined.index, d.seen.learnt)
}
