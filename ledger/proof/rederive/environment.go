package rederive

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/running"
)

// An environment is what runs in an environment of the repo, by the deployments that count as they are derived again.
type environment struct {
	*running.Environment
	breaches []breach        // those that are open
	doubts   map[int64]doubt // by commit
	// learnt is as in basis.
	learnt int64
}

// A doubt says why it is not known whether a commit was deployed. finished is when the deployment did, as it says.
type doubt struct {
	why      string
	finished ledger.Time
}

// A breach is a deployment that breaks the policy.
type breach struct {
	running.Breach
	deployment *policy.Evidence
}

func newEnvironment() *environment {
	return &environment{Environment: running.New(), doubts: make(map[int64]doubt)}
}

// environmentOf returns the environment that evidence is about: a deployment, a rollback or a baseline. It is empty if
// it is about none.
func environmentOf(e *policy.Evidence) string {
	if name, ok := ledger.RollbackOf(e.Predicate, e.PredicateType); ok {
		return name
	}
	if name, ok := ledger.BaselineOf(e.Predicate, e.PredicateType); ok {
		return name
	}
	name, _ := ledger.EnvironmentOf(e.Predicate)
	return name
}

// breaks notes an open violation, unless the commit has one.
func (v *environment) breaks(s *running.Step, e *policy.Evidence) {
	if !v.isBroken(s.Commit) {
		b := running.Breach{Attestation: s.ID, Commit: s.Commit, FinishedAt: s.FinishedAt}
		v.breaches = append(v.breaches, breach{b, e})
	}
}

// isBroken reports whether a violation of a commit is open.
func (v *environment) isBroken(commit int64) bool {
	return slices.ContainsFunc(v.breaches, func(b breach) bool { return b.Commit == commit })
}

// apply does what a step has done.
func (v *environment) apply(s running.Step) {
	for _, d := range v.doubts {
		if s.Effect == policy.Deployed && policy.IsReplaced(s.SaidAt, d.finished) {
			v.doubts[s.Commit] = doubt{d.why, s.SaidAt}
			return
		}
	}
	v.Apply(s)
	row := v.Rows[s.Commit]
	if s.Effect == policy.TakenBack || s.Effect == policy.Deployed && row.Attestation == s.ID && row.Ended == 0 {
		delete(v.doubts, s.Commit)
	}
}

// excuse closes the violations of a commit whose deployments are made good.
func (v *environment) excuse(commit int64, isExcused func(d policy.Evidence) bool) {
	v.breaches = slices.DeleteFunc(v.breaches, func(b breach) bool {
		isGood := b.Commit == commit && isExcused(*b.deployment)
		if isGood {
			v.MakeGood(b.Breach)
		}
		return isGood
	})
}
