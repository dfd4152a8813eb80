package store_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/storetest"
)

func (e *exerciser) policies() {
	ctx := e.t.Context()
	p, err := e.Policy(ctx, "acme", "api", 0)
	must.OK(e.t, err)
	e.ok(e.Simulate(ctx, "acme", "api", p.Contract))
	for _, subject := range []string{"test:*", "https://slsa.dev/*"} {
		reviewed := policy.Contract{Requirements: []policy.Requirement{{Predicate: subject}}}
		e.ok(e.LintFacts(ctx, "acme", "api", reviewed))
	}
	for _, ignored := range []string{"docs/**", "none/**"} {
		p.Contract.Radar.Ignore = []string{ignored}
		e.ok(e.SetPolicy(ctx, "acme", "api", p.Contract, 0, "host"))
		must.OK(e.t, e.Settle(ctx))
	}

	everybody, err := identity.ParsePattern("o=acme")
	must.OK(e.t, err)
	p.Contract.Exceptions = policy.ExceptionRule{Signers: []identity.Pattern{everybody},
		MaxDuration: ledger.Duration(time.Hour)}
	e.ok(e.SetPolicy(ctx, "acme", "api", p.Contract, 0, "host"))
	for range 3 {
		e.excepts("api", sha(1))
		e.claimsMerge("api")
	}
	must.OK(e.t, e.Settle(ctx))
	e.expressions(p.Contract)
}

// excepts records an exception.
func (e *exerciser) excepts(repo, commit string) {
	e.t.Helper()
	a := e.attestation(commit, "exception:x", ledger.Recorded, buildDN)
	a.PredicateType = attestation.ExceptionPredicateType
	a.Exception = &attestation.Exception{Requirement: "x", Reason: "y", Until: ledger.TimeOf(e.now.Add(time.Minute))}
	e.post(repo, a)
}

// claimsMerge records a claim that a commit is a merge.
func (e *exerciser) claimsMerge(repo string) {
	e.t.Helper()
	ctx := e.t.Context()
	parent, object := storetest.Object(42, "Dora", 1000)
	_, _, err := e.Register(ctx, "acme", repo, parent, ledger.Registration{Object: object})
	must.OK(e.t, err)
	commit, object := storetest.ObjectOn(parent, 43, "Dora", 1001)
	_, _, err = e.Register(ctx, "acme", repo, commit, ledger.Registration{Object: object})
	must.OK(e.t, err)

	a := e.attestation(commit, "merge:squash", ledger.Pass, buildDN)
	a.PredicateType = attestation.MergePredicateType
	a.Merge = &attestation.Merge{Kind: attestation.Squashed, Source: attestation.MergedCommit{SHA: sha(41)},
		Parent: attestation.MergedCommit{SHA: parent}, Tree: fmt.Sprintf("%040x", 43)}
	_, err = e.post(repo, a)
	must.OK(e.t, err)
	e.ok(e.Commit(ctx, "acme", repo, commit))
}

// expressions evaluates an expression after a policy change, and after its verdicts were
// lost.
func (e *exerciser) expressions(c policy.Contract) {
	ctx, before := e.t.Context(), c
	e.attests("api", sha(30), "lint:where", ledger.Pass)
	c.Requirements = append(slices.Clone(c.Requirements), policy.Requirement{
		State: ledger.Attested, Predicate: "lint:*", Threshold: 1, Accept: []ledger.Status{ledger.Pass}, Where: "true"})
	e.ok(e.SetPolicy(ctx, "acme", "api", c, 0, "host"))
	e.push(sha(30), ledger.Registration{Branch: "thirty"})
	must.OK(e.t, e.Settle(ctx))
	must.OK(e.t, e.LoseVerdicts(ctx))
	e.push(sha(30), ledger.Registration{Branch: "thirty"})
	must.OK(e.t, e.Settle(ctx))
	e.attests("api", sha(30), "lint:where", ledger.Pass)
	e.ok(e.SetPolicy(ctx, "acme", "api", before, 0, "host"))
	must.OK(e.t, e.Settle(ctx))
}
