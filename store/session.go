package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// CreateSession signs somebody in with a token until the session expires; hash
// is the SHA-256 of its secret.
func (s *Store) CreateSession(ctx context.Context, tokenID string, hash [32]byte, expires ledger.Time) error {
	return s.write(ctx, func(t *tx) error {
		token, err := scanToken(t.row(selectToken+"WHERE t.token_id = ?", tokenID))
		if err != nil {
			return missing(err, "token %s", tokenID)
		}
		if _, err := t.exec("INSERT INTO sessions (hash, token_id, created_at, expires_at) VALUES (?, ?, ?, ?)", hash[:], token.id, t.now, expires); err != nil {
			return fmt.Errorf("insert session: %w", err)
		}
		return nil
	})
}

// SessionToken returns the token that a session was begun with, revoked and
// expired ones too, and when the session ends by itself.
func (s *Store) SessionToken(ctx context.Context, hash [32]byte) (token ledger.Token, expires ledger.Time, err error) {
	err = s.readLoose(ctx, func(c *conn) error {
		var tokenID int64
		if err := c.row("SELECT token_id, expires_at FROM sessions WHERE hash = ?", hash[:]).Scan(&tokenID, &expires); err != nil {
			return missing(err, "such session")
		}
		found, err := scanToken(c.row(selectToken+"WHERE t.id = ?", tokenID))
		token = found.row
		return err
	})
	return token, expires, err
}

// DeleteSession signs out. One that there is not is no error.
func (s *Store) DeleteSession(ctx context.Context, hash [32]byte) error {
	return s.write(ctx, func(t *tx) error {
		_, err := t.exec("DELETE FROM sessions WHERE hash = ?", hash[:])
		return err
	})
}

// pruneSessions deletes the sessions that have expired.
func (s *Store) pruneSessions(ctx context.Context) error {
	now := s.Now()
	var expired int64
	err := s.readLoose(ctx, func(c *conn) error {
		return c.row("SELECT count(*) FROM sessions WHERE expires_at <= ?", now).Scan(&expired)
	})
	if err != nil || expired == 0 {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		_, err := t.exec("DELETE FROM sessions WHERE expires_at <= ?", now)
		return err
	})
}
