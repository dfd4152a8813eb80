package store_test

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// carry has evidence carry between commits with one tree, and to a merge.
func (e *exerciser) carry() {
	ctx := e.t.Context()
	e.ok(e.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "carried"}, "host"))
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*",` +
		`"carry":["tree","merge"],"carry_signers":["ou=ci"]}]}`))
	must.OK(e.t, err)
	e.ok(e.SetPolicy(ctx, "acme", "carried", contract, 0, "host"))

	var commits []string
	for n := range 4 {
		e.now = e.now.Add(time.Millisecond)
		id, object := storetest.Object(1+n/3, "Dora", n) // the last one has another tree
		_, _, err := e.Register(ctx, "acme", "carried", id, ledger.Registration{Object: object})
		must.OK(e.t, err)
		commits = append(commits, id)
	}
	claim, err := e.post("carried", e.attestation(commits[0], "test:go", ledger.Pass, buildDN))
	must.OK(e.t, err)
	must.OK(e.t, e.Run(ctx, fmt.Sprintf(`
INSERT INTO merges (attestation_id, commit_id, source_id, kind, parent_state, reason)
SELECT a.id, c.id, s.id, 'squash', 4, '' FROM attestations a, commits c, commits s
WHERE a.attestation_id = '%s' AND c.sha = '%s' AND s.sha = '%s';
UPDATE commits SET merged = 1 WHERE sha = '%[2]s'; UPDATE commits SET merged = 2 WHERE sha = '%[3]s';
INSERT INTO merge_sides (commit_id, version) SELECT id, 0 FROM commits WHERE sha = '%[3]s'`,
		claim.ID, commits[3], commits[0])))

	must.OK(e.t, e.StackedClaims(ctx, func(store.StackedClaim) {}))
	e.attests("carried", commits[0], "test:go", ledger.Pass)
	e.ok(e.Commit(ctx, "acme", "carried", commits[1])) // settles it
	e.ok(e.Commit(ctx, "acme", "carried", commits[3]))
	e.attests("carried", commits[0], "test:go", ledger.Fail)
	e.attests("carried", commits[0], "test:go", ledger.Pass)
	must.OK(e.t, e.Settle(ctx))
	must.OK(e.t, e.RemapInherited(ctx, "acme", "carried", commits[0]))

	for _, status := range []ledger.Status{ledger.Recorded, ledger.Pass} { // the first stays in the tree
		e.attests("carried", commits[0], "test:late", status)
	}
	for repo := int64(1); repo < 20; repo++ {
		_, _ = e.Recheck(ctx, repo, 0) // that of carried, among others
	}

	for n := range policy.MaxTopics + 1 { // more than carries
		e.attests("carried", commits[n%2], fmt.Sprintf("test:%d", n), ledger.Pass)
	}
	e.ok(e.Commit(ctx, "acme", "carried", commits[2]))
}
