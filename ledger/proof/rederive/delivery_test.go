package rederive

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// delivering asks what deployments to prod ship.
const delivering = `{"requirements":[
	{"name":"review","state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"covers":"change"},
	{"state":"DEPLOYED","predicate":"deploy:prod","signers":["cn=ops","cn=ann"],"delivery":true}],
	"exceptions":{"signers":["cn=rev"],"max_duration":"24h"}}`

// allowing does not.
const allowing = `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*"},
	{"state":"DEPLOYED","predicate":"deploy:prod"}]}`

// deploy reviews a commit since a base, deploys it, and has it reach states.
func (r *repository) deploy(name, base string, to ...ledger.State) {
	r.t.Helper()
	r.pass(name, "rev", "review:code", r.id(base))
	r.reach(name, promotable)
	r.pass(name, "ops", "deploy:prod", "")
	r.reach(name, to...)
}

// rollBack rolls a commit back, so that another one runs if that is not empty.
func (r *repository) rollBack(name, to string) {
	r.t.Helper()
	r.attest(r.id(name), "ops", "rollback:prod", ledger.Recorded, func(a *attestation.Attestation) {
		a.PredicateType = ledger.RollbackType
		a.Rollback = &attestation.Rollback{Environment: "prod"}
		if to != "" {
			a.Rollback.To.SHA = r.id(to)
		}
	})
	r.reach(name, promotable)
}

// baseline makes a commit the baseline of prod.
func (r *repository) baseline(name, signer string) {
	r.t.Helper()
	r.attest(r.id(name), signer, "baseline:prod", ledger.Recorded, func(a *attestation.Attestation) {
		a.PredicateType = attestation.BaselinePredicateType
	})
}

// Whether a deployment counted follows from what it shipped, by what the log had of all of that.
func TestCheckDeliveries(t *testing.T) {
	for name, test := range map[string]struct {
		contracts []string // by default, one with delivery
		log       func(r *repository)
		noClone   bool
		without   string // what the clone lacks
		want      string // as in checkTest, of m2
	}{
		"all is covered": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.pass("m1", "rev", "review:code", r.id("m0"))
			r.deploy("m2", "m1", deployed)
		}},
		"all is covered by one review": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m0", deployed)
		}},
		"all is covered, and it was not to count": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m0")
		}, want: "!" + wrong},
		"a gap": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m1")
		}},
		"a gap that was to count": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m1", deployed)
		}, want: "!it was DEPLOYED"},
		"a gap that is closed afterwards": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m1")
			r.pass("m1", "rev", "review:code", r.id("m0"))
		}},
		"a gap that is closed afterwards, and then it is deployed again": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m1")
			r.pass("m1", "rev", "review:code", r.id("m0"))
			r.pass("m2", "ops", "deploy:prod", "")
			r.reach("m2", deployed)
		}},
		"a gap that ran before": {log: func(r *repository) {
			r.deploy("m1", "m0", deployed)
			r.deploy("m2", "m1", deployed)
		}, want: "!it was DEPLOYED"},
		"a gap that ran before the policy asked for it": {log: func(r *repository) {
			r.apply(1)
			r.deploy("m1", "m0", deployed)
			r.apply(2)
			r.deploy("m2", "m1", deployed)
		}, contracts: []string{allowing, delivering}},
		"a gap below the baseline": {log: func(r *repository) {
			r.baseline("m1", "ops")
			r.deploy("m2", "m1", deployed)
		}},
		"a gap below a baseline by who does not deploy": {log: func(r *repository) {
			r.baseline("m1", "rev")
			r.deploy("m2", "m1", deployed)
		}, want: "was deployed to prod, which is not derived again: by the policy"},
		"a gap below what was rolled back": {log: func(r *repository) {
			r.baseline("m0", "ops")
			r.deploy("m1", "m0", deployed)
			r.rollBack("m1", "")
			r.attest(r.id("m1"), "rev", "review:code", ledger.Fail, since(r.id("m0")))
			r.deploy("m2", "m1", deployed)
		}, want: "!it was DEPLOYED"},
		"a gap below what runs since a rollback": {log: func(r *repository) {
			r.baseline("m0", "ops")
			r.deploy("m1", "m0", deployed)
			r.deploy("b1", "m0", deployed)
			r.rollBack("b1", "m1")
			r.attest(r.id("m1"), "rev", "review:code", ledger.Fail, since(r.id("m0")))
			r.deploy("m2", "m1", deployed)
		}},
		"a gap that ran before what runs, which it does not contain": {log: func(r *repository) {
			r.baseline("m0", "ops")
			r.deploy("m1", "m0", deployed)
			r.deploy("b1", "m0", deployed)
			r.attest(r.id("m1"), "rev", "review:code", ledger.Fail, since(r.id("m0")))
			r.deploy("m2", "m1", deployed)
		}},
		"a gap that an exception covers": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.attest(r.id("m1"), "rev", "exception:review", ledger.Pass, func(a *attestation.Attestation) {
				a.Exception = &attestation.Exception{Requirement: "review", Until: r.now.Add(time.Hour)}
			})
			r.deploy("m2", "m1", deployed)
		}},
		"a commit that the ledger does not know": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.commit("lost", "ann", "m0")
			r.commit("m2", "ann", "lost")
			r.prove("m2")
			r.deploy("m2", "lost")
		}},
		"another author since then": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.pass("m1", "rev", "review:code", r.id("m0"))
			r.deploy("m2", "m1", deployed)
			r.people["m1"] = "rev"
			r.prove("m1")
		}, want: "has changed since it was deployed"},
		"what ran was deployed by who is distrusted": {log: func(r *repository) {
			r.pass("m1", "rev", "review:code", "")
			r.reach("m1", promotable)
			r.pass("m1", "ann", "deploy:prod", "")
			r.reach("m1", deployed)
			r.deploy("m2", "m1", deployed)
			r.distrust("ann")
		}, want: "was deployed to prod, which is not derived again: its signer is distrusted now"},
		"without a clone": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m0", deployed)
		}, noClone: true, want: unreadShipped + ", whose objects are not read (" + noClone},
		"without a clone, over a gap": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m1")
		}, noClone: true, want: noClone},
		"in a clone without what it shipped": {log: func(r *repository) {
			r.deploy("m0", "", deployed)
			r.deploy("m2", "m0", deployed)
		}, without: "m1", want: lacking},
	} {
		t.Run(name, func(t *testing.T) {
			contracts := test.contracts
			if contracts == nil {
				contracts = []string{delivering}
			}
			r := newRepository(t, contracts...)
			for _, c := range [][]string{{"m0", "ann"}, {"m1", "bob", "m0"}, {"m2", "ann", "m1"}, {"b1", "ann", "m0"}} {
				r.commit(c[0], c[1], c[2:]...)
				r.prove(c[0])
			}

			test.log(r)
			if !test.noClone {
				r.clone(t, test.without)
			}

			for _, id := range r.Needs(r.id("m2")) {
				if !r.IsKnown(id) {
					must.OK(t, r.Known(&ledger.Commit{CommitSummary: ledger.CommitSummary{SHA: id}}))
				}
			}
			_, why, err := r.Check(r.id("m2"), "main", r.now.Add(10*time.Minute))
			wantCheck(t, why, err, test.want)
		})
	}
}
