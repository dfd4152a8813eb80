// Package running replays what runs in an environment of a repo, from the attestations about it in the order of their
// recording.
package running

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A Step is an attestation that has changed what runs in an environment, or is about that.
type Step struct {
	ID, Commit int64  // the attestation and its commit, by their numbers; attestations have theirs in order
	Public     string // the ID of the attestation; empty if there are no violations
	Effect     policy.Effect
	Required   bool // a DEPLOYED requirement named the deployments
	// SaidAt is when it finished, as it says, and FinishedAt as is stored.
	SaidAt, FinishedAt ledger.Time
	To                 int64 // the commit that runs after a rollback; 0 if it names none
}

// Judge sets what the attestation has done to an environment, by the contract of its time. isBreach reports whether it
// is a violation if it is a deployment that the contract requires.
func (s *Step) Judge(c *policy.Contract, f policy.Facts, e policy.Evidence, environment string, isBreach bool) {
	predicateType := e.PredicateType
	if _, isRollback := ledger.RollbackOf(e.Predicate, e.PredicateType); isRollback {
		predicateType = ledger.ResultType
	}
	s.Required = c.RequiresDeployment(ledger.EnvironmentPredicate(environment), predicateType)
	s.Effect = c.Effect(f, e, s.Required, isBreach && s.Required && e.Status == ledger.Pass)
}

// A Deployment is a commit that was deployed, or is a baseline.
type Deployment struct {
	Attestation, Ended int64 // the attestations by which it runs, and that has ended it
	Required           bool
}

// An Environment is what runs in an environment of a repo, and what ran there.
type Environment struct {
	Rows      map[int64]Deployment // by commit
	Baselines map[int64]Deployment // the same
	Latest    int64                // the attestation that has last changed it
	// present are the deployments that have not ended, by attestation. Others may be among them.
	present []presence
}

// New returns an environment in which nothing was deployed.
func New() *Environment {
	return &Environment{Rows: make(map[int64]Deployment), Baselines: make(map[int64]Deployment)}
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
func (v *Environment) put(commit int64, d Deployment, finished ledger.Time) {
	v.Rows[commit] = d
	if d.Ended != 0 {
		return
	}
	n, _ := slices.BinarySearchFunc(v.present, d.Attestation, func(p presence, attestation int64) int {
		return cmp.Compare(p.attestation, attestation)
	})
	v.present = slices.Insert(v.present, n, presence{d.Attestation, commit, finished})
}

// runs returns the commit that runs, and when it was deployed; 0 if none does.
func (v *Environment) runs() (commit int64, finished ledger.Time) {
	for n := len(v.present); n > 0; n-- {
		p := v.present[n-1]
		if d := v.Rows[p.commit]; d.Attestation == p.attestation && d.Ended == 0 {
			return p.commit, p.finished
		}
		v.present = v.present[:n-1]
	}
	return 0, 0
}

// MaxRan limits the deployments that Ran returns.
const MaxRan = 100

// Ran returns the commits that run or ran: those of the newest deployments that have not ended, the newest first, and
// then that of the newest baseline.
func (v *Environment) Ran() (list []int64) {
	for _, p := range slices.Backward(v.present) {
		if d := v.Rows[p.commit]; d.Attestation == p.attestation && d.Ended == 0 && len(list) < MaxRan {
			list = append(list, p.commit)
		}
	}
	newest, at := int64(0), int64(0)
	for commit, d := range v.Baselines {
		if d.Attestation > at {
			newest, at = commit, d.Attestation
		}
	}
	if newest != 0 {
		list = append(list, newest)
	}
	return list
}

// Apply does what a step has done.
func (v *Environment) Apply(s Step) {
	switch s.Effect {
	case policy.Attempted:
		v.Latest = s.ID
	case policy.Deployed:
		if running, at := v.runs(); running != s.Commit && policy.IsReplaced(s.SaidAt, at) {
			if _, ok := v.Rows[s.Commit]; !ok {
				v.put(s.Commit, Deployment{s.ID, endedEarlier, s.Required}, 0)
			}
			return
		}
		v.put(s.Commit, Deployment{s.ID, 0, s.Required}, s.FinishedAt)
		v.Latest = s.ID

	case policy.TakenBack:
		if d, ok := v.Rows[s.Commit]; ok && d.Ended == 0 {
			d.Ended = s.ID
			v.put(s.Commit, d, 0)
			v.Latest = s.ID
		}
		if d, ok := v.Rows[s.To]; ok {
			v.put(s.To, Deployment{s.ID, 0, d.Required}, s.FinishedAt)
			v.Latest = s.ID
		}
	case policy.Based:
		v.Baselines[s.Commit] = Deployment{Attestation: s.ID}
		v.Latest = s.ID
	case policy.NoEffect, policy.Refused:
	}
}

// MakeGood makes a deployment count because an exception stands in for what it lacked.
func (v *Environment) MakeGood(b Breach) {
	if b.Attestation > v.Rows[b.Commit].Attestation {
		v.put(b.Commit, Deployment{b.Attestation, 0, true}, b.FinishedAt)
	}
}

// A Breach is a violation of the policy by a deployment to an environment.
type Breach struct {
	Attestation, Commit int64
	How                 ledger.ClosingType
	By                  string // the ID of the attestation that has closed it; empty if it is open
	FinishedAt          ledger.Time
}

// IsOpenAt reports whether a violation was opened before an attestation, and not closed by it or before.
func (b Breach) IsOpenAt(id int64, public string) bool {
	return b.Attestation < id && (b.By == "" || b.By > public)
}

// Replay applies steps, and what exceptions have made good, in the order of their recording.
func (v *Environment) Replay(steps []Step, breaches []Breach) {
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.ID, b.ID) })
	good := slices.DeleteFunc(slices.Clone(breaches), func(b Breach) bool { return b.How != ledger.ClosedByException })
	slices.SortStableFunc(good, func(a, b Breach) int { return strings.Compare(a.By, b.By) })

	for _, s := range steps {
		for ; len(good) > 0 && good[0].By < s.Public; good = good[1:] {
			v.MakeGood(good[0])
		}
		v.Apply(s)
	}
	for _, b := range good {
		v.MakeGood(b)
	}
}
