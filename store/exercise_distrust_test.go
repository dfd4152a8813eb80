package store_test

import (
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// distrust distrusts an identity, and reads a commit before and after the background work.
func (e *exerciser) distrust() {
	e.t.Helper()
	ctx := e.t.Context()
	list, err := e.Identities(ctx, "acme", store.Query{Limit: 100})
	must.OK(e.t, err)
	id := list.Data[slices.IndexFunc(list.Data, func(i identity.Identity) bool { return i.DN == buildDN })].ID
	var recorded []ledger.AttestationRecord
	for _, signed := range [][2]string{{"stolen:1", "idn_made"}, {"stolen:1", id}, {"stolen:2", id}} {
		e.now = e.now.Add(time.Millisecond)
		a := e.attestation(loginCommit, signed[0], ledger.Pass, buildDN)
		a.Signer.Identity = signed[1]
		rec, err := e.post("api", a)
		must.OK(e.t, err)
		recorded = append(recorded, rec)
	}
	first := recorded[1] // that does not count

	must.OK(e.t, e.DistrustIdentity(ctx, "acme", id, first.RecordedAt))
	e.ok(e.Commit(ctx, "acme", "api", loginCommit))
	e.ok(e.Attestation(ctx, "acme", "api", first.ID))
	shared, object := storetest.Object(1, "Dora", 0) // see carry
	e.ok(e.Commit(ctx, "acme", "carried", shared))
	_, _, err = e.Register(ctx, "acme", "carried", shared, ledger.Registration{Author: ledger.Author{Name: "Dora"}})
	must.OK(e.t, err)
	_, _, err = e.Register(ctx, "acme", "carried", shared, ledger.Registration{Object: object})
	must.OK(e.t, err)
	must.OK(e.t, e.Settle(ctx))
	e.ok(e.Commit(ctx, "acme", "api", loginCommit))
	e.now = e.now.Add(time.Millisecond)
	e.refused(ledger.CodeInvalidField, e.DistrustIdentity(ctx, "acme", id, first.RecordedAt+1))
}
