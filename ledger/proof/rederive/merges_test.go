package rederive

import (
	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// reviewBranch has m0 and the branch reviewed: m0 as it is, and b2 since m0.
func (r *repository) reviewBranch() {
	r.prove("m0", "b1", "b2")
	r.pass("m0", "rev", "review:code", "")
	r.pass("b2", "rev", "review:code", r.id("m0"))
}

// squash squashes the branch on m0, by an author or by 'author/committer', and reaches states.
func (r *repository) squash(who string, to ...ledger.State) {
	r.commit("s", who, "m0")
	r.prove("s")
	r.claim("s", "ci", attestation.Squashed, "b2", "m0")
	r.reach("s", to...)
}

// update brings m1 to the branch.
func (r *repository) update() {
	r.commit("s", "ann", "b2", "m1")
	r.prove("s")
	r.claim("s", "ci", attestation.Updated, "b2", "m1")
	r.reach("s", promotable)
}

// What carries by claims of merges follows from the objects that the ledger knew.
func TestCheckMerges(t *testing.T) {
	for name, test := range map[string]branchTest{
		"a squash": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
		}},
		"a squash with too low a state": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", attested)
		}, want: "!" + wrong},
		"a squash without a clone": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
		}, noClone: true, want: noClone},
		"a squash whose branch the clone lacks": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
		}, without: []string{"b1"}, want: lacking},
		"a squash whose branch the ledger does not know": {log: func(r *repository) {
			r.prove("m0", "b2")
			r.pass("m0", "rev", "review:code", "")
			r.pass("b2", "rev", "review:code", r.id("m0"))
			r.squash("ann", promotable)
		}, want: "!" + wrong},
		"a squash by the reviewer as its author": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("rev", promotable)
		}, want: "!" + wrong},
		"a squash whose button the reviewer pressed": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann/rev", promotable)
		}},
		"a squash by who may not carry": {log: func(r *repository) {
			r.reviewBranch()
			r.commit("s", "ann", "m0")
			r.prove("s")
			r.claim("s", "ops", attestation.Squashed, "b2", "m0")
			r.reach("s", promotable)
		}, want: "!" + wrong},
		"a squash by who may not carry, with a review of theirs": {log: func(r *repository) {
			r.reviewBranch()
			r.commit("s", "ann", "m0")
			r.prove("s")
			r.claim("s", "rev", attestation.Squashed, "b2", "m0")
			r.reach("s", promotable)
		}},
		"a squash of what fails": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
			r.attest(r.id("b2"), "rev", "review:code", ledger.Fail, nil)
		}, want: "!" + wrong},
		"a squash of what fails just now": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
			r.attest(r.id("b2"), "rev", "review:code", ledger.Fail, nil)
		}, after: 30 * time.Second, want: later},
		"a squash that was claimed before it was registered": {log: func(r *repository) {
			r.reviewBranch()
			r.commit("s", "ann", "m0")
			r.claim("s", "ci", attestation.Squashed, "b2", "m0")
			r.prove("s")
			r.reach("s", promotable)
		}, want: "!" + wrong},
		"a squash that was claimed when only its history was known": {log: func(r *repository) {
			r.reviewBranch()
			r.commit("s", "ann", "m0")
			r.learn("s")
			r.claim("s", "ci", attestation.Squashed, "b2", "m0")
			r.prove("s")
			r.reach("s", promotable)
		}, want: "!" + wrong},
		"a squash on a mainline that the ledger knew later": {log: func(r *repository) {
			r.prove("b1", "b2")
			r.pass("m0", "rev", "review:code", "")
			r.pass("b2", "rev", "review:code", r.id("m0"))
			r.squash("ann", promotable)
			r.prove("m0")
		}, want: "!" + wrong},
		"a squash, of which another claim came later": {log: func(r *repository) {
			r.prove("b1", "b2")
			r.pass("m0", "rev", "review:code", "")
			r.pass("b2", "rev", "review:code", r.id("m0"))
			r.squash("ann")
			r.prove("m0")
			r.claim("s", "ci", attestation.Squashed, "b2", "m0")
			r.reach("s", promotable)
		}},
		"a squash on a mainline that is not reviewed": {log: func(r *repository) {
			r.prove("m0", "b1", "b2")
			r.pass("b2", "rev", "review:code", r.id("m0"))
			r.squash("ann", promotable)
		}, want: "!" + wrong},
		"a squash on a mainline whose review is withdrawn": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
			r.attest(r.id("m0"), "rev", "review:code", ledger.Fail, nil)
		}, want: "!" + wrong},
		"a squash that was deployed before the mainline's review was withdrawn": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
			r.pass("s", "ops", "deploy:prod", "")
			r.reach("s", deployed)
			r.attest(r.id("m0"), "rev", "review:code", ledger.Fail, nil)
		}},
		"a squash that was deployed after the mainline's review was withdrawn": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
			r.attest(r.id("m0"), "rev", "review:code", ledger.Fail, nil)
			r.pass("s", "ops", "deploy:prod", "")
			r.reach("s", deployed)
		}, want: "!it was DEPLOYED"},
		"a squash with another tree than the claim": {log: func(r *repository) {
			r.reviewBranch()
			r.commit("s", "ann", "m0")
			r.prove("s")
			r.attest(r.id("s"), "ci", "merge:squash", ledger.Pass, func(a *attestation.Attestation) {
				a.Base, a.Merge = r.id("m0"), &attestation.Merge{Kind: attestation.Squashed, Tree: "7ee",
					Source: attestation.MergedCommit{SHA: r.id("b2")}, Parent: attestation.MergedCommit{SHA: r.id("m0")}}
			})
			r.reach("s", promotable)
		}, want: "!" + wrong},
		"a squash whose claim is distrusted": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann", promotable)
			r.distrust("ci")
		}, want: "!" + wrong},
		"a squash whose claim replaced another and is distrusted": {log: func(r *repository) {
			r.reviewBranch()
			r.squash("ann")
			r.claim("s", "ci", attestation.Squashed, "b2", "m0")
			r.reach("s", promotable)
			r.distrust("ci")
		}, want: distrustedClaim},
		"a merge": {log: func(r *repository) {
			r.reviewBranch()
			r.commit("s", "rev", "m0", "b2")
			r.prove("s")
			r.claim("s", "ci", attestation.Merged, "b2", "m0")
			r.reach("s", promotable)
		}},
		"a merge of another commit than the claim": {log: func(r *repository) {
			r.reviewBranch()
			r.commit("s", "ann", "m0", "b1")
			r.prove("s")
			r.claim("s", "ci", attestation.Merged, "b2", "m0")
			r.reach("s", promotable)
		}, want: "!" + wrong},
		"an update with a mainline that is reviewed": {log: func(r *repository) {
			r.reviewBranch()
			r.prove("m1")
			r.pass("m1", "rev", "review:code", "")
			r.update()
		}},
		"an update with a mainline that is not": {log: func(r *repository) {
			r.reviewBranch()
			r.prove("m1")
			r.update()
		}, want: "!" + wrong},
		"a rebase": {log: func(r *repository) {
			r.reviewBranch()
			r.prove("m1")
			r.pass("m1", "rev", "review:code", "")
			r.commit("r1", "bob", "m1")
			r.commit("s", "ann", "r1")
			r.learn("r1")
			r.prove("s")
			r.claim("s", "ci", attestation.Rebased, "b2", "m1")
			r.reach("s", promotable)
		}},
		"a rebase whose first commit the ledger knew later": {log: func(r *repository) {
			r.reviewBranch()
			r.prove("m1")
			r.pass("m1", "rev", "review:code", "")
			r.commit("r1", "bob", "m1")
			r.commit("s", "ann", "r1")
			r.prove("s")
			r.claim("s", "ci", attestation.Rebased, "b2", "m1")
			r.learn("r1")
			r.reach("s", promotable)
		}, want: "!" + wrong},
		"a mainline of squashes": {log: mainline(20), tip: "s20"},
		"a mainline of squashes, whose last has too low a state": {log: func(r *repository) {
			mainline(19)(r)
			next(r, 20, attested)
		}, tip: "s20", want: "!" + wrong},
		"a mainline of squashes, whose first review is withdrawn": {log: func(r *repository) {
			mainline(20)(r)
			r.attest(r.id("m0"), "rev", "review:code", ledger.Fail, nil)
		}, tip: "s20", want: "!" + wrong},
		"a mainline of squashes, of which one branch is not in the clone": {
			log: mainline(20), tip: "s20", without: []string{"t10"}, want: lacking,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.contract = carrying
			if test.tip == "" {
				test.tip = "s"
			}
			test.run(t)
		})
	}
}

// mainline has n commits squashed on m0, one on the other.
func mainline(n int) func(r *repository) {
	return func(r *repository) {
		r.ids["s0"] = r.id("m0")
		r.prove("m0")
		r.pass("m0", "rev", "review:code", "")
		for i := range n {
			next(r, i+1, promotable)
		}
	}
}

// next squashes the next branch on the mainline.
func next(r *repository, n int, to ledger.State) {
	branch, squash, parent := fmt.Sprint("t", n), fmt.Sprint("s", n), fmt.Sprint("s", n-1)
	r.commit(branch, "ann", parent)
	r.commit(squash, "ann", parent)
	r.prove(branch, squash)
	r.pass(branch, "rev", "review:code", r.id(parent))
	r.claim(squash, "ci", attestation.Squashed, branch, parent)
	r.reach(squash, to)
}

// What the mainline meets is derived once for all that is above it, also at the times of deployments: a chain of any
// length takes a time in proportion to it.
func TestMainlineIsDerivedOnce(t *testing.T) {
	const n = 300
	r := newRepository(t, carrying)
	r.commit("m0", "ann")
	mainline(0)(r)
	for i := range n {
		next(r, i+1, promotable)
		r.pass(fmt.Sprint("s", i+1), "ops", "deploy:prod", "")
		r.reach(fmt.Sprint("s", i+1), deployed)
	}
	r.clone(t)
	for i := range n {
		name := fmt.Sprint("s", n-i)
		if _, why, err := r.Check(r.id(name), "main", r.now.Add(time.Hour)); why != "" || err != nil {
			t.Fatalf("%s: %q, %v", name, why, err)
		}
	}
	if r.derived > 2*n {
		t.Errorf("derived %d times what %d commits of the mainline meet", r.derived, n)
	}
}

// A mainline that is too long for one question is not checked from its end, and is from its beginning.
func TestLongMainline(t *testing.T) {
	r := newRepository(t, carrying)
	r.maxMainline = 50
	r.commit("m0", "ann")
	mainline(60)(r)
	r.clone(t)
	last := r.id("s60")
	if _, why, err := r.Check(last, "main", r.now.Add(time.Hour)); why != longMainline || err != nil {
		t.Errorf("from the end: %q, %v", why, err)
	}
	for _, name := range []string{"s1", "s40", "s60"} {
		if _, why, err := r.Check(r.id(name), "main", r.now.Add(time.Hour)); why != "" || err != nil {
			t.Errorf("%s, after those below: %q, %v", name, why, err)
		}
	}
}
