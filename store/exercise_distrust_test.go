package store_test

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
)

// distrust distrusts an identity, and reads a commit before and after the background work.
func (e *exerciser) distrust() {
	e.t.Helper()
	ctx := e.t.Context()
	list, err := e.Identities(ctx, "acme", store.Query{Limit: 100})
	check(e.t, err)
	id := list.Data[slices.IndexFunc(list.Data, func(i identity.Identity) bool { return i.DN == buildDN })].ID
	var last ledger.AttestationRecord
	for _, predicate := range []string{"stolen:1", "stolen:1", "stolen:2"} {
		e.now = e.now.Add(1)
		a := e.attestation(loginCommit, predicate, ledger.Pass, buildDN)
		a.Signer.Identity = id
		if predicate == "stolen:1" && last.ID == "" {
			a.Signer.Identity = "idn_made"
		}
		last, err = e.post("api", a)
		check(e.t, err)
	}

	check(e.t, e.DistrustIdentity(ctx, "acme", id, last.RecordedAt))
	e.ok(e.Commit(ctx, "acme", "api", loginCommit))
	e.ok(e.Attestation(ctx, "acme", "api", last.ID))
	check(e.t, e.Settle(ctx))
	e.ok(e.Commit(ctx, "acme", "api", loginCommit))
	e.refused(ledger.CodeInvalidField, e.DistrustIdentity(ctx, "acme", id, last.RecordedAt+1))
}
