package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// modelDeployment is like the deployments to prod.
var modelDeployment = Evidence{Predicate: "deploy:prod", PredicateType: ledger.ResultType}

// modelRollback returns the last rollback from prod. If a requirement is about deployments to
// prod, only those who match its signers roll back.
func modelRollback(c Contract, f Facts) (last Evidence) {
	for _, e := range f.Evidence {
		required, may := false, false
		for _, r := range c.Requirements {
			if r.State == ledger.Deployed && modelIsAbout(r, modelDeployment) {
				required = true
				may = may || modelApplies(c, r, f) && modelIsSigner(r.Signers, e.Signer)
			}
		}
		if e.Predicate == "rollback:prod" && modelLatest(f.Evidence, e) && (may || !required) &&
			e.Attestation > last.Attestation {
			last = e
		}
	}
	return last
}

// modelIsAgain reports whether evidence is a deployment to prod after a rollback.
func modelIsAgain(e, undone Evidence) bool {
	return e.Source == 0 && e.Predicate == "deploy:prod" && e.Attestation > undone.Attestation
}

// compareRollback checks whether the gate of prod is shut: the commit was rolled back, no exception
// is in force, and no deployment has counted since. Whether one has may also depend on whom others
// need; the model leaves that out.
func compareRollback(t *rapid.T, c Contract, f Facts, now ledger.Time, got []ledger.CommitRollback) {
	last, required, again := modelRollback(c, f), false, false
	_, excepted := modelException(c, Requirement{Name: "rollback:prod"}, f, now)
	for _, r := range c.Requirements {
		if r.State != ledger.Deployed || !modelIsAbout(r, modelDeployment) {
			continue
		}
		if len(r.DistinctFrom) > 0 {
			return
		}
		required = true
		again = again || modelApplies(c, r, f) && modelWeigh(c, r, f, now).again
	}
	for _, e := range f.Evidence {
		again = again || !required && modelIsAgain(e, last) && modelLatest(f.Evidence, e) && e.Status == "pass" &&
			e.WhilePromotable
	}
	want := last.Attestation != "" && !excepted && !again
	if want != (len(got) == 1) || want && got[0].Attestation != last.Attestation {
		t.Errorf("rolled back: %+v, want %t by %s", got, want, last.Attestation)
	}
}

func TestRollsBackAgainstModel(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c, f := drawCommit(t)
		e := drawEvidence(t)
		want := false
		for _, r := range c.Requirements {
			if r.State == ledger.Deployed && modelApplies(c, r, f) && modelIsAbout(r, e) && modelIsSigner(r.Signers, e.Signer) {
				want = want || e.Status != ledger.Recorded && !slices.Contains(r.Accept, e.Status)
			}
		}
		if got := c.RollsBack(f, e); got != want {
			t.Errorf("got %t, want %t", got, want)
		}
	})
}
