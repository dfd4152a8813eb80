package store

import (
	"context"
	"fmt"
	"math"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxSessions is how many sessions of a token there are at once.
const maxSessions = 50

// CreateSession signs somebody in with a token until the session expires; hash
// is the SHA-256 of its secret. It ends the token's oldest sessions where there
// would be too many.
func (s *Store) CreateSession(ctx context.Context, tokenID string, hash [32]byte, expires ledger.Time) error {
	return s.write(ctx, func(t *tx) error {
		token, err := scanToken(t.Row(selectToken+"WHERE t.token_id = ?", tokenID))
		if err != nil {
			return missing(err, "token %s not found", tokenID)
		}
		const endOldest = `DELETE FROM sessions WHERE hash IN
			(SELECT hash FROM sessions WHERE token_id = ? ORDER BY created_at DESC, hash LIMIT ? OFFSET ?)`
		if _, err := t.Exec(endOldest, token.id, int64(math.MaxInt64), maxSessions-1); err != nil {
			return fmt.Errorf("delete the oldest sessions: %w", err)
		}
		_, err = t.Exec("INSERT INTO sessions (hash, token_id, created_at, expires_at) VALUES (?, ?, ?, ?)",
			hash[:], token.id, t.now, expires)
		if err != nil {
			return fmt.Errorf("insert session: %w", err)
		}
		return nil
	})
}

// SessionToken returns the token that a session was begun with, revoked and
// expired ones too, and when the session ends by itself.
func (s *Store) SessionToken(ctx context.Context, hash [32]byte) (token ledger.Token, expires ledger.Time, err error) {
	type session struct {
		token   ledger.Token
		expires ledger.Time
	}
	found, err := readLoose(ctx, s, func(rd reader) (v session, err error) {
		var tokenID int64
		err = rd.Row("SELECT token_id, expires_at FROM sessions WHERE hash = ?", hash[:]).Scan(&tokenID, &v.expires)
		if err != nil {
			return v, missing(err, "session not found")
		}
		token, err := scanToken(rd.Row(selectToken+"WHERE t.id = ?", tokenID))
		v.token = token.row
		return v, err
	})
	return found.token, found.expires, err
}

// DeleteSession signs out. One that there is not is no error.
func (s *Store) DeleteSession(ctx context.Context, hash [32]byte) error {
	return s.write(ctx, func(t *tx) error {
		_, err := t.Exec("DELETE FROM sessions WHERE hash = ?", hash[:])
		return err
	})
}

// pruneSessions deletes the sessions that have expired.
func (s *Store) pruneSessions(ctx context.Context) error {
	now := s.Now()
	expired, err := readLoose(ctx, s, func(rd reader) (n int64, err error) {
		return n, rd.Row("SELECT count(*) FROM sessions WHERE expires_at <= ?", now).Scan(&n)
	})
	if err != nil || expired == 0 {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		_, err := t.Exec("DELETE FROM sessions WHERE expires_at <= ?", now)
		return err
	})
}
