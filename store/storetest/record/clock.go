package record

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// wantRefused checks whether all replicas refuse to record because of the clock.
func (fx *fixture) wantRefused(want bool) {
	fx.T.Helper()
	for _, s := range []*store.Store{fx.Store, fx.Other} {
		if s == nil {
			continue
		}
		must.OK(fx.T, s.Settle(fx.T.Context()))
		_, _, err := s.Register(fx.T.Context(), "acme", "api", sha(99), ledger.Registration{})
		if e, _ := err.(*ledger.Error); (err != nil) != want || want && (e == nil || e.Code != ledger.CodeClockJumped) {
			fx.T.Fatalf("a registration returns %v; want it refused: %v", err, want)
		}
	}
}

// A clock that is behind the newest record stops the recording, in all processes, until an operator
// accepts it. Then what had expired rises again, and ids go on.
func (s suite) TestAClockBehindIsAccepted(t *testing.T) {
	fx, ctx := s.newFixture(t), t.Context()
	contract, err := policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","max_age":"1h"}]}`))
	must.OK(t, err)
	_, err = fx.SetPolicy(ctx, "acme", "api", contract, 1, "host")
	must.OK(t, err)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	ci.Attest(sha(1), "test:go", ledger.Pass)
	fx.Clock.Advance(10 * 24 * time.Hour)
	last := ci.Attest(sha(2), "test:go", ledger.Pass)
	must.OK(t, fx.Settle(ctx))
	fx.WantState(sha(1), ledger.Validating)

	fx.Clock.Advance(-10 * 24 * time.Hour)
	fx.wantRefused(true)
	_, _, err = fx.AcceptClock(ctx)
	must.OK(t, err)
	fx.wantRefused(false)
	fx.WantState(sha(1), ledger.Promotable)
	if next := ci.Attest(sha(3), "test:go", ledger.Pass); next.ID <= last.ID || next.RecordedAt >= last.RecordedAt {
		t.Errorf("%s of %s comes after %s of %s", next.ID, next.RecordedAt, last.ID, last.RecordedAt)
	}
	fx.Open(store.Options{})
	fx.wantRefused(false)
}
