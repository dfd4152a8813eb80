package rederive

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

func TestCheckOfDeployed(t *testing.T) {
	for name, test := range map[string]checkTest{
		"DEPLOYED without a review": {log: func(h *history) {
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.enter(attested)
			h.pass("ops", "deploy:prod")
			h.enter(deployed)
		}, want: "!DEPLOYED at"},
		"a review after the deployment": {log: func(h *history) {
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.enter(attested)
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
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.pass("rev", "review:code")
			h.enter(promotable)
			h.pass("rev", "deploy:prod")
			h.enter(deployed)
		}, want: "!DEPLOYED at"},
		"DEPLOYED by a deployment before the review": {log: func(h *history) {
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.enter(attested)
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
			h.register(byAnn())
			h.pass("ci", "test:go")
			h.enter(promotable)
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
				h.register(byAnn())
				h.pass("ci", "test:go")
				h.enter(promotable)
				h.pass("ops", "deploy:prod")
				h.enter(deployed)
			},
			want: "blocks overlaps",
		},
	} {
		t.Run(name, test.run)
	}
}
