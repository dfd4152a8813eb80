package store_test

import (
	"slices"
	"strings"
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

// fail has a job fail, and tries it again.
func (e *exerciser) fail() {
	e.t.Helper()
	ctx := e.t.Context()
	must.OK(e.t, e.Run(ctx, `
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
VALUES (1, 'settle', 1000000, 1, 'expiry', '', 0, 0, 0)`))
	for range 2 {
		if err := e.Settle(ctx); err == nil || !strings.Contains(err.Error(), "commit 1000000 is missing") {
			e.t.Errorf("Settle returned %v, want the failed job", err)
		}
	}
	e.ok(e.Backlog(ctx))
	must.OK(e.t, e.Run(ctx, "DELETE FROM backlog WHERE ref = 1000000"))
}
