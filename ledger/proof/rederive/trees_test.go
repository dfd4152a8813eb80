package rederive

import (
	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
)

const (
	carryingTrees = `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true,
		"carry":["tree"]},{"state":"DEPLOYED","predicate":"deploy:*"}]}`
	carryingAll = `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","carry":["tree"]},
		{"state":"DEPLOYED","predicate":"deploy:*"}]}`
	carryingChanges = `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","covers":"change",
		"carry":["tree"]},{"state":"DEPLOYED","predicate":"deploy:*"}]}`
)

// reviewTree has somebody review b2 since m0, and s on a parent, which has the tree of b2.
func (r *repository) reviewTree(reviewer, parent string) {
	if reviewer == "bob" {
		r.trust("bob", "bob", "")
	}
	r.treeOf["s"] = "b2"
	r.commit("s", "ann", parent)
	r.prove("m0", "m1", "b1", "b2", "s")
	r.pass("b2", reviewer, "review:code", r.id("m0"))
}

// A review of changes carries to a commit with the same tree, unless its signer wrote any of them.
func TestCheckReviewsThatCarryByTree(t *testing.T) {
	reviewed := func(reviewer string, steps ...func(r *repository)) func(r *repository) {
		return func(r *repository) {
			r.reviewTree(reviewer, "m0")
			for _, step := range steps {
				step(r)
			}
		}
	}
	isAttested := func(r *repository) { r.reach("s", attested) }
	isPromotable := func(r *repository) { r.reach("s", promotable) }
	isReviewed := func(r *repository) { r.pass("s", "ops", "review:code", "") }

	for name, test := range map[string]branchTest{
		"by who wrote none":     {log: reviewed("rev", isPromotable)},
		"by one of the authors": {log: reviewed("bob", isAttested)},
		"by one of the authors, of too high a state": {
			log: reviewed("bob", isPromotable), want: "!" + wrong,
		},
		"by one of the authors, without a clone": {
			log: reviewed("bob", isAttested), noClone: true, want: noClone,
		},
		"by one of the authors, of too high a state, without a clone": {
			log: reviewed("bob", isPromotable), noClone: true, want: noClone,
		},
		"by one of the authors, in a clone without their commit": {
			log: reviewed("bob", isAttested), without: []string{"b1"}, want: lacking,
		},
		"next to another review, without a clone": {
			log: reviewed("bob", isReviewed, isPromotable), noClone: true,
		},
		"by the author of the head, of too high a state, without a clone": {
			log: reviewed("ann", isPromotable), noClone: true, want: "!" + wrong,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.contract, test.tip = carryingTrees, "s"
			test.run(t)
		})
	}
}

// If a requirement covers changes, a review carries to a commit with the same tree only if that contains the base.
func TestCheckChangesThatCarryByTree(t *testing.T) {
	for name, test := range map[string]branchTest{
		"since a base that the commit contains": {log: func(r *repository) {
			r.reviewTree("rev", "m1")
			r.reach("s", promotable)
		}},
		"without a clone": {log: func(r *repository) {
			r.reviewTree("rev", "m1")
			r.reach("s", promotable)
		}, noClone: true, want: noClone},
		"of too low a state, without a clone": {log: func(r *repository) {
			r.reviewTree("rev", "m1")
			r.reach("s", attested)
		}, noClone: true, want: noClone},
		"of too low a state, in a clone without what is between the base and the commit": {log: func(r *repository) {
			r.reviewTree("rev", "m1")
			r.reach("s", attested)
		}, without: []string{"m1"}, want: lacking},
		"that replaces a pass, of too high a state, without a clone": {log: func(r *repository) {
			r.reviewTree("rev", "m1")
			r.pass("s", "rev", "review:code", "")
			r.attest(r.id("b2"), "rev", "review:code", ledger.Warn, since(r.id("m0")))
			r.reach("s", promotable)
		}, noClone: true, want: noClone},
		"before one since a base that the commit does not contain": {log: func(r *repository) {
			r.reviewTree("rev", "m0")
			r.treeOf["b3"] = "b2"
			r.commit("b3", "ann", "b1")
			r.prove("b3")
			r.pass("b3", "rev", "review:code", r.id("b1"))
			r.reach("s", promotable)
		}},
		"before a failure of another commit": {log: func(r *repository) {
			r.reviewTree("rev", "m0")
			r.treeOf["b3"] = "b2"
			r.commit("b3", "ann", "b1")
			r.prove("b3")
			r.attest(r.id("b3"), "rev", "review:code", ledger.Fail, nil)
			r.reach("s", promotable)
		}, want: "!" + wrong},
		"before one of the same commit, since a base that the other does not contain": {log: func(r *repository) {
			r.reviewTree("rev", "m0")
			r.pass("b2", "rev", "review:code", r.id("b1"))
			r.reach("s", promotable)
		}, want: "!" + wrong},
	} {
		t.Run(name, func(t *testing.T) {
			test.contract, test.tip = carryingChanges, "s"
			test.run(t)
		})
	}
}

// When objects become known, a ledger derives only the newest commits again that are reviewed since a base, or may
// inherit such a review.
func TestLateObjectsOfManyHeirs(t *testing.T) {
	for name, test := range map[string]struct {
		contract string
		heirs    int
		tip      string
		want     string
	}{
		"more than are derived again":    {carryingChanges, ancestry.MaxGaps, "s0", lateObjects},
		"as many as are derived again":   {carryingChanges, ancestry.MaxGaps - 1, "s0", "!" + wrong},
		"more, if authors are excluded":  {carryingTrees, ancestry.MaxGaps, "s0", lateObjects},
		"more, of which none inherits":   {excluding, ancestry.MaxGaps, "b2", "!" + wrong},
		"more, without regard to a base": {carryingAll, ancestry.MaxGaps, "b2", "!" + wrong},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t, test.contract)
			r.commit("m0", "ann")
			r.commit("b1", "bob", "m0")
			r.commit("b2", "ann", "b1")
			var heirs []string
			for n := range test.heirs {
				name := fmt.Sprint("s", n)
				heirs = append(heirs, name)
				r.treeOf[name] = "b2"
				r.commit(name, "ann", "m0")
			}

			r.prove(heirs[:9]...)
			r.prove("m0", "b2")
			r.pass("b2", "rev", "review:code", r.id("m0"))
			r.prove(heirs[9:]...)
			r.reach(test.tip, attested)
			r.learn("b1")
			r.clone(t)
			_, why, err := r.Check(r.id(test.tip), "main", r.now.Add(10*time.Minute))
			wantCheck(t, why, err, test.want)
		})
	}
}
