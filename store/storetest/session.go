package storetest

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

func (s suite) TestSessions(t *testing.T) {
	b := s.newBench(t)
	ctx := t.Context()
	token, err := b.CreateToken(
		ctx, "acme", ledger.NewToken{Name: "me", Scope: ledger.Read, ExpiresAt: b.Now().Add(time.Hour)}, [32]byte{1})
	check(t, err)
	expires := b.Now().Add(12 * time.Hour)
	short, long := [32]byte{2}, [32]byte{3}
	check(t, b.CreateSession(ctx, token.ID, short, b.Now().Add(time.Minute)))
	check(t, b.CreateSession(ctx, token.ID, long, expires))
	wantCode(t, b.CreateSession(ctx, "tok_none", [32]byte{4}, expires), ledger.CodeNotFound)

	got, ends, err := b.SessionToken(ctx, long)
	check(t, err)
	if got != token || ends != expires {
		t.Errorf("the session's token is %+v until %s, want %+v until %s", got, ends, token, expires)
	}
	check(t, b.RevokeToken(ctx, "acme", token.ID))
	if got, _, err := b.SessionToken(ctx, long); err != nil || got.RevokedAt == 0 {
		t.Errorf("the revoked token is %+v, %v", got, err)
	}

	// Pruning takes what has expired and no more.
	b.clock.advance(time.Minute)
	check(t, b.Prune(ctx))
	_, _, err = b.SessionToken(ctx, short)
	wantCode(t, err, ledger.CodeNotFound)
	if _, _, err := b.SessionToken(ctx, long); err != nil {
		t.Errorf("the session that has not expired: %v", err)
	}

	check(t, b.DeleteSession(ctx, long))
	check(t, b.DeleteSession(ctx, long))
	_, _, err = b.SessionToken(ctx, long)
	wantCode(t, err, ledger.CodeNotFound)
}

// A token has no more than 50 sessions: the newest.
func (s suite) TestSessionsOfAToken(t *testing.T) {
	b := s.newBench(t)
	ctx := t.Context()
	often, err := b.CreateToken(ctx, "acme", ledger.NewToken{Name: "often", Scope: ledger.Read}, [32]byte{1})
	check(t, err)
	other, err := b.CreateToken(ctx, "acme", ledger.NewToken{Name: "other", Scope: ledger.Read}, [32]byte{2})
	check(t, err)
	expires := b.Now().Add(12 * time.Hour)
	check(t, b.CreateSession(ctx, other.ID, [32]byte{0, 1}, expires))
	for n := range 60 {
		b.clock.advance(time.Second)
		check(t, b.CreateSession(ctx, often.ID, [32]byte{byte(60 - n)}, expires))
	}
	for n := range 60 {
		if _, _, err := b.SessionToken(ctx, [32]byte{byte(60 - n)}); (err == nil) != (n >= 10) {
			t.Errorf("session %d: %v", n, err)
		}
	}
	if _, _, err := b.SessionToken(ctx, [32]byte{0, 1}); err != nil {
		t.Errorf("the session of another token: %v", err)
	}
}
