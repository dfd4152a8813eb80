package derived

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A step is an attestation that has changed what runs in an environment, or is about that.
type step struct {
	id, commit int64
	public     string // empty if there are no violations
	effect     policy.Effect
	required   bool // a DEPLOYED requirement named the deployments
	// saidAt is when it finished, as it says, and finishedAt as its row says.
	saidAt, finishedAt ledger.Time
	to                 int64 // the commit that runs after a rollback; 0 if it names none
}

// A deployment is a row of the table deployments, without its key.
type deployment struct {
	attestation, ended int64
	required           bool
}

// An environment is what runs in an environment of a repo, and what ran there.
type environment struct {
	rows      map[int64]deployment // by commit
	baselines map[int64]deployment // the same
	latest    int64                // the attestation that has last changed it
	// present are the deployments that have not ended, by attestation. Others may be among them.
	present []presence
}

// A presence is a commit that was deployed.
type presence struct {
	attestation, commit int64
	finished            ledger.Time
}

// endedEarlier is in place of the attestation that has ended a deployment, if another one had replaced
// it before it was recorded.
const endedEarlier = -1

// put sets the row of a commit. finished is when the attestation in it did.
func (v *environment) put(commit int64, d deployment, finished ledger.Time) {
	v.rows[commit] = d
	if d.ended != 0 {
		return
	}
	n, _ := slices.BinarySearchFunc(v.present, d.attestation, func(p presence, attestation int64) int {
		return cmp.Compare(p.attestation, attestation)
	})
	v.present = slices.Insert(v.present, n, presence{d.attestation, commit, finished})
}

// runs returns the commit that runs, and when it was deployed; 0 if none does.
func (v *environment) runs() (commit int64, finished ledger.Time) {
	for n := len(v.present); n > 0; n-- {
		p := v.present[n-1]
		if d := v.rows[p.commit]; d.attestation == p.attestation && d.ended == 0 {
			return p.commit, p.finished
		}
		v.present = v.present[:n-1]
	}
	return 0, 0
}

// apply does what a step has done.
func (v *environment) apply(s step) {
	switch s.effect {
	case policy.Attempted:
		v.latest = s.id
	case policy.Deployed:
		if running, at := v.runs(); running != s.commit && policy.IsReplaced(s.saidAt, at) {
			if _, ok := v.rows[s.commit]; !ok {
				v.put(s.commit, deployment{s.id, endedEarlier, s.required}, 0)
			}
			return
		}
		v.put(s.commit, deployment{s.id, 0, s.required}, s.finishedAt)
		v.latest = s.id

	case policy.TakenBack:
		if d, ok := v.rows[s.commit]; ok && d.ended == 0 {
			d.ended = s.id
			v.put(s.commit, d, 0)
			v.latest = s.id
		}
		if d, ok := v.rows[s.to]; ok {
			v.put(s.to, deployment{s.id, 0, d.required}, s.finishedAt)
			v.latest = s.id
		}
	case policy.Based:
		v.baselines[s.commit] = deployment{attestation: s.id}
		v.latest = s.id
	case policy.NoEffect, policy.Refused:
	}
}

// makeGood makes a deployment count because an exception stands in for what it lacked.
func (v *environment) makeGood(b breach) {
	if b.attestation > v.rows[b.commit].attestation {
		v.put(b.commit, deployment{b.attestation, 0, true}, b.finishedAt)
	}
}

// A breach is a violation of the policy by a deployment to an environment.
type breach struct {
	attestation, commit int64
	how                 ledger.ClosingType
	by                  string // the ID of the attestation that has closed it; empty if it is open
	finishedAt          ledger.Time
}

// isOpenAt reports whether a violation was opened before an attestation, and not closed by it or before.
func (b breach) isOpenAt(id int64, public string) bool {
	return b.attestation < id && (b.by == "" || b.by > public)
}

// replay applies steps, and what exceptions have made good, in the order of their recording.
func (v *environment) replay(steps []step, breaches []breach) {
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.id, b.id) })
	good := slices.DeleteFunc(slices.Clone(breaches), func(b breach) bool { return b.how != ledger.ClosedByException })
	slices.SortStableFunc(good, func(a, b breach) int { return strings.Compare(a.by, b.by) })

	for _, s := range steps {
		for ; len(good) > 0 && good[0].by < s.public; good = good[1:] {
			v.makeGood(good[0])
		}
		v.apply(s)
	}
	for _, b := range good {
		v.makeGood(b)
	}
}
