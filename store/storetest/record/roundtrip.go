package record

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// On an engine that is reached over a network, what every CI job does takes few round trips, however
// much evidence the commit has.
func (s suite) TestFewRoundTrips(t *testing.T) {
	fx := s.newFixture(t)
	fx.Other = nil // each store counts its own
	if fx.stats().Engine.Connects == 0 {
		t.Skip("the engine is not reached over a network")
	}
	sha := sha(1)
	fx.RegisterAuthor(sha)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	for i := range 20 {
		ci.Attest(sha, fmt.Sprintf("test:unit-%d", i), ledger.Pass)
	}
	hash := [32]byte{1}
	_, err := fx.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "ci", Scope: ledger.Write}, hash)
	must.OK(t, err)

	for _, tt := range []struct {
		what string
		do   func() error
		most uint64
	}{
		{"a token", func() error {
			_, err := fx.TokenByHash(t.Context(), hash)
			return err
		}, 1},
		// The repo, the commit, everything about it, its overlaps, and the end of the transaction.
		{"a commit record", func() error {
			_, err := fx.Commit(t.Context(), "acme", "api", sha)
			return err
		}, 5},
		// The begin with the locks, the org, the repo, the commit, its statements, its evidence, the rows
		// that are written, and the COMMIT; before that, two for the version of the keyring.
		{"an attestation", func() error {
			ci.Attest(sha, "test:more", ledger.Pass)
			return nil
		}, 10},
	} {
		if n := fx.tripsOf(tt.do); n > tt.most {
			t.Errorf("%s takes %d round trips, want at most %d", tt.what, n, tt.most)
		}
	}
}

// tripsOf returns the round trips of an operation: the fewest of several times, because something
// else may run in the background.
func (fx *fixture) tripsOf(do func() error) uint64 {
	fx.T.Helper()
	fewest := ^uint64(0)
	for range 5 {
		own := fx.tripsOfStats()
		before := fx.stats().Engine.RoundTrips
		must.OK(fx.T, do())
		fewest = min(fewest, fx.stats().Engine.RoundTrips-before-own)
	}
	return fewest
}

// tripsOfStats returns the round trips that reading the state takes.
func (fx *fixture) tripsOfStats() uint64 {
	fx.T.Helper()
	before := fx.stats().Engine.RoundTrips
	return fx.stats().Engine.RoundTrips - before
}

func (fx *fixture) stats() store.Stats {
	fx.T.Helper()
	s, err := fx.Stats(fx.T.Context())
	must.OK(fx.T, err)
	return s
}
