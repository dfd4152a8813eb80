package access_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// The times of the last writes of TouchToken are bounded, however many tokens there have
// been.
func TestManyTokensAreTouched(t *testing.T) {
	s := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	defer s.Close()
	for i := range access.MaxTouched * 3 / 2 {
		id := fmt.Sprintf("tok_%d", i)
		for ok := false; !ok; ok = s.IsTouched(id) { // the writer's queue may be full
			s.TouchToken(id, "")
		}
	}
	if s.IsTouched("tok_0") {
		t.Errorf("the first of %d tokens is remembered, want at most %d", access.MaxTouched*3/2, access.MaxTouched)
	}
}

// TestManyExpiredSessionsArePruned has more expired sessions than one write deletes.
func TestManyExpiredSessionsArePruned(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{
		Now: func() time.Time { return now },
	}))(t)
	defer s.Close()
	_, err := s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)

	expires, tokens := s.Now().Add(time.Minute), access.PruneExpiredBatch/access.MaxSessions+1
	for i := range tokens {
		token, err := s.CreateToken(t.Context(), "acme", ledger.NewToken{Name: fmt.Sprint(i), Scope: ledger.Read},
			[32]byte{1, byte(i)})
		must.OK(t, err)
		for n := range access.MaxSessions {
			must.OK(t, s.CreateSession(t.Context(), token.ID, [32]byte{2, byte(i), byte(n)}, expires.Add(
				time.Duration(n/(access.MaxSessions-1))*time.Hour))) // the last one of each token expires later
		}
	}

	now = now.Add(time.Minute)
	must.OK(t, s.Prune(t.Context()))
	if n := must.Get(s.CountSessions(t.Context()))(t); n != tokens {
		t.Errorf("%d sessions after pruning, want %d", n, tokens)
	}
}
