package store_test

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// lists reads all lists, with all combinations of their filters.
func (e *exerciser) lists() {
	e.t.Helper()
	ctx := e.t.Context()
	e.listed()
	e.addPlans()
	expires := e.Now().Add(time.Hour)
	for _, l := range store.Lists(e.t, e.Store) {
		switch l.Name {
		case "search":
			must.OK(e.t, e.InsertRepos(ctx, "umbrella", 1001)) // more than are read
		case "overlaps":
			must.OK(e.t, e.InsertTips(ctx, "acme", "api", "busy", 2, 60)) // more than are read one by one
			e.list(l)
			must.OK(e.t, e.InsertTips(ctx, "acme", "api", "flying", 1, 5000)) // more than a page examines
		case "attention":
			must.OK(e.t, e.Run(ctx, fmt.Sprintf("UPDATE commits SET expires = %d WHERE expires = 0", expires)))
		}
		e.list(l)
	}
	must.OK(e.t, e.Run(ctx, fmt.Sprintf("UPDATE commits SET expires = 0 WHERE expires = %d", expires)))
	e.ok(e.Glance(ctx, "v1.0.0", 10))
}

// list reads a list with a large limit, and then its first two pages of one row.
func (e *exerciser) list(l store.List) {
	e.t.Helper()
	for f := range l.Filters() {
		page := func(limit int, cursor string) (next string) {
			next, err := f.Page(e.t.Context(), store.Query{Limit: limit, Cursor: cursor})
			if err != nil {
				e.t.Fatalf("%v: %v", f, err)
			}
			return next
		}
		page(500, "")
		if second := page(1, ""); second != "" {
			page(1, second)
		}
	}
	e.addPlans()
}

// listed records what the filters of lists match: more predicates, types and signers than a
// page reads by their own index.
func (e *exerciser) listed() {
	e.t.Helper()
	ctx := e.t.Context()
	for i := range 60 {
		e.attestsAs("api", sha(1), fmt.Sprint("test:", i), ledger.Pass, fmt.Sprintf("cn=x,ou=%d", i))
		e.attests("api", sha(1), fmt.Sprint("https://many.example/", i), ledger.Recorded)
	}
	for _, status := range []ledger.Status{ledger.Pass, ledger.Fail, ledger.Errored} {
		for range 2 {
			e.attestsAs("api", sha(1), "test:1", status, "cn=x,ou=1")
		}
	}
	must.OK(e.t, e.Run(ctx, `
INSERT INTO violations (repo_id, org_id, commit_id, predicate_id, attestation_id, state, opened_at, missing, closed_at)
SELECT a.repo_id, p.org_id, a.commit_id, p.id, a.id, 0, 1, '["x"]', a.id % 2
FROM attestations a JOIN predicates p ON p.id = a.predicate_id JOIN commits c ON c.id = a.commit_id
JOIN repos r ON r.id = a.repo_id WHERE r.name = 'api' AND p.name = 'test:1';
UPDATE repos SET open_violations = 1 WHERE name = 'api';
UPDATE orgs SET open_violations = open_violations + 1 WHERE name = 'acme'`))
	for n, commit := range []string{sha(1), sha(1), sha(2), sha(2)} {
		a := e.attestation(commit, "vulns:x", ledger.Recorded, buildDN)
		a.PredicateType = fmt.Sprintf("https://in-toto.io/attestation/vulns/v0.%d", 1+n/3)
		_, err := e.post("api", a)
		must.OK(e.t, err)
	}
	e.push(sha(500), ledger.Registration{Branch: "busy"})
	e.ok(e.LogKey(ctx, "acme", ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog}))

	page, err := e.Audits(ctx, "acme", store.AuditFilter{Query: store.Query{Limit: 1}})
	must.OK(e.t, err)
	id := idIn(e.t, page.Data[0])
	e.ok(e.EventType(ctx, "acme", id))
	tail, err := e.Tail(ctx, "acme")
	must.OK(e.t, err)
	e.ok(tail.Next(ctx))
	_, _, err = tail.Seq(ctx, id)
	must.OK(e.t, err)
	e.ok(tail.Read(ctx, 0, 10))
}
