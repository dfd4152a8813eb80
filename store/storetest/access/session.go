package access

import (
	"reflect"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/storetest"
)

func (s suite) TestSessions(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	token, err := fx.CreateToken(
		ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read, ExpiresAt: fx.Now().Add(time.Hour)}, [32]byte{1})
	must.OK(t, err)
	expires := fx.Now().Add(12 * time.Hour)
	short, long := [32]byte{2}, [32]byte{3}
	must.OK(t, fx.CreateSession(ctx, token.ID, short, fx.Now().Add(time.Minute)))
	must.OK(t, fx.CreateSession(ctx, token.ID, long, expires))
	storetest.WantCode(t, fx.CreateSession(ctx, "tok_none", [32]byte{4}, expires), ledger.CodeNotFound)

	got, ends, err := fx.SessionToken(ctx, long)
	must.OK(t, err)
	if !reflect.DeepEqual(got, token) || ends != expires {
		t.Errorf("the session has token %+v until %s, want %+v until %s", got, ends, token, expires)
	}
	must.OK(t, fx.RevokeToken(ctx, "acme", token.ID))
	if got, _, err := fx.SessionToken(ctx, long); err != nil || got.RevokedAt == 0 {
		t.Errorf("the revoked token is %+v, %v", got, err)
	}

	// Prune deletes only expired sessions.
	fx.Clock.Advance(time.Minute)
	must.OK(t, fx.Prune(ctx))
	_, _, err = fx.SessionToken(ctx, short)
	storetest.WantCode(t, err, ledger.CodeNotFound)
	if _, _, err := fx.SessionToken(ctx, long); err != nil {
		t.Errorf("the unexpired session: %v", err)
	}

	must.OK(t, fx.DeleteSession(ctx, long))
	must.OK(t, fx.DeleteSession(ctx, long))
	_, _, err = fx.SessionToken(ctx, long)
	storetest.WantCode(t, err, ledger.CodeNotFound)
}

// A token keeps its newest 50 sessions.
func (s suite) TestSessionLimitOfAToken(t *testing.T) {
	fx := s.newFixture(t)
	ctx := t.Context()
	often, err := fx.CreateToken(ctx, "acme", ledger.NewToken{Name: "often", Scope: ledger.Read}, [32]byte{1})
	must.OK(t, err)
	other, err := fx.CreateToken(ctx, "acme", ledger.NewToken{Name: "other", Scope: ledger.Read}, [32]byte{2})
	must.OK(t, err)
	expires := fx.Now().Add(12 * time.Hour)
	must.OK(t, fx.CreateSession(ctx, other.ID, [32]byte{0, 1}, expires))
	for n := range 60 {
		fx.Clock.Advance(time.Second)
		must.OK(t, fx.CreateSession(ctx, often.ID, [32]byte{byte(60 - n)}, expires))
	}
	for n := range 60 {
		if _, _, err := fx.SessionToken(ctx, [32]byte{byte(60 - n)}); (err == nil) != (n >= 10) {
			t.Errorf("session %d: %v", n, err)
		}
	}
	if _, _, err := fx.SessionToken(ctx, [32]byte{0, 1}); err != nil {
		t.Errorf("the session of another token: %v", err)
	}
}
