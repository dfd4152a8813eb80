package rederive

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

func TestCheckOfDeployed(t *testing.T) {
	for name, test := range map[string]checkTest{
		"DEPLOYED without a review": {log: func(h *history) {
			h.test(attested)
			h.pass("ops", "deploy:prod")
			h.enter(deployed)
		}, want: "!DEPLOYED at"},
		"a review after the deployment": {log: func(h *history) {
			h.test(attested)
			h.pass("ops", "deploy:prod")
			h.enter(deployed)
			h.pass("rev", "review:code")
		}, want: "!DEPLOYED at"},
		"DEPLOYED, and another author since then": {log: func(h *history) {
			h.deploy()
			c := byAnn()
			c.Author.Name = "rev"
			h.register(c)
		}, want: "has changed since it was deployed"},
		"DEPLOYED, and the reviewer distrusted since then": {log: func(h *history) {
			h.deploy()
			h.distrust("rev")
		}, want: "has changed since it was deployed"},
		"DEPLOYED, and the tester and the reviewer have a common name since then": {log: func(h *history) {
			h.deploy()
			h.attest("beef", "rev", "lint:go", ledger.Pass, func(a *attestation.Attestation) {
				a.Signer.Emails = []string{"ci"}
			})
		}, want: "has changed since it was deployed"},
		"DEPLOYED, and a failure since then": {log: func(h *history) {
			h.deploy()
			h.attest(theCommit, "ci", "test:go", ledger.Fail, nil)
		}},
		"DEPLOYED, and rolled back": {log: func(h *history) {
			h.deploy()
			h.attest(theCommit, "ops", "deploy:prod", ledger.Fail, nil)
		}, want: "!att_004 has rolled it back"},
		"DEPLOYED, and rolled back by who is distrusted": {log: func(h *history) {
			h.deploy()
			h.attest(theCommit, "ann", "deploy:prod", ledger.Fail, nil)
			h.distrust("ann")
		}},
		"DEPLOYED by the reviewer": {log: func(h *history) {
			h.review()
			h.pass("rev", "deploy:prod")
			h.enter(deployed)
		}, want: "!DEPLOYED at"},
		"DEPLOYED by a deployment before the review": {log: func(h *history) {
			h.test(attested)
			h.pass("ops", "deploy:prod")
			h.pass("rev", "review:code")
			h.enter(promotable, deployed)
		}, want: "!DEPLOYED at"},
		"DEPLOYED by tests that carry, but are later": {log: func(h *history) {
			h.register(withTree("beef"))
			h.register(withTree(theCommit))
			h.pass("rev", "review:code")
			h.enter(promotable)
			h.pass("ops", "deploy:prod")
			h.enter(deployed)
			h.attest("beef", "ci", "test:go", ledger.Pass, nil)
		}, want: "!DEPLOYED at"},
		"DEPLOYED under an earlier contract": {contracts: []string{
			`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:prod"}]}`, strict,
		}, log: func(h *history) {
			h.test(promotable)
			h.pass("ops", "deploy:prod")
			h.enter(deployed)
			h.apply(2)
		}},
		"a second deployment after a rollback": {log: func(h *history) {
			h.deploy()
			h.pass("ops", "deploy:prod")
			h.attest(theCommit, "ops", "deploy:prod", ledger.Fail, nil)
			h.enter(promotable)
			h.pass("ops", "deploy:prod")
			h.enter(deployed)
		}},

		"DEPLOYED if no overlap blocks": {
			contracts: []string{`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:prod"}],"radar":{"block":"HIGH"}}`},
			log: func(h *history) {
				h.test(promotable)
				h.pass("ops", "deploy:prod")
				h.enter(deployed)
			},
			want: "blocks overlaps",
		},
	} {
		t.Run(name, test.run)
	}
}

// stand adds the event of a standing.
func (h *history) stand(to ledger.State) {
	h.Standing(ledger.StandingEvent{Commit: theCommit, To: to, Timestamp: h.tick()})
}

// What the log says of the standing of a commit in DEPLOYED must have followed from the evidence then.
func TestCheckOfStandings(t *testing.T) {
	fails := func(h *history) { h.attest(theCommit, "ci", "test:go", ledger.Fail, nil) }
	for name, test := range map[string]checkTest{
		"its tests fail": {log: func(h *history) { h.deploy(); fails(h); h.stand(validating) }},
		"its tests fail, and pass again": {log: func(h *history) {
			h.deploy()
			fails(h)
			h.stand(validating)
			h.pass("ci", "test:go")
			h.stand(promotable)
		}},
		"its tests fail after that": {log: func(h *history) { h.deploy(); h.stand(promotable); fails(h) }},
		"a standing too low":        {log: func(h *history) { h.deploy(); h.stand(attested) }, want: "!standing"},
		"a standing too high": {log: func(h *history) {
			h.deploy()
			fails(h)
			h.stand(promotable)
		}, want: "!standing"},
		"a standing of DEPLOYED":            {log: func(h *history) { h.deploy(); h.stand(deployed) }, want: "!standing"},
		"a standing before it was deployed": {log: func(h *history) { h.stand(attested); h.deploy() }},
		"a wrong standing under a contract that blocks": {
			contracts: []string{`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:prod"}],"radar":{"block":"HIGH"}}`},
			log:       func(h *history) { h.deploy(); h.stand(attested) }, want: "blocks overlaps",
		},
		"the reviewer is distrusted": {log: func(h *history) { h.deploy(); h.distrust("rev"); h.stand(attested) },
			want: "has changed since it was deployed"},
		"its tests expire": {contracts: []string{
			`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"1h"},` +
				`{"state":"DEPLOYED","predicate":"deploy:prod"}]}`}, log: func(h *history) {
			h.deploy()
			h.now = h.now.Add(time.Hour)
			h.stand(validating)
		}},
		"another contract applies": {contracts: []string{
			`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:prod"}]}`,
			`{"requirements":[{"state":"ATTESTED","predicate":"fuzz:*"}]}`}, log: func(h *history) {
			h.apply(1)
			h.deploy()
			h.apply(2)
			h.stand(validating)
		}},
	} {
		t.Run(name, test.run)
	}
}
