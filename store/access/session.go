package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxSessions is the maximum number of sessions per token.
const maxSessions = 50

// CreateSession creates a session of a token; hash is the SHA-256 of the session's
// secret. If the token has too many sessions, it deletes the oldest.
func (ac *Access) CreateSession(ctx context.Context, tokenID string, hash [32]byte, expires ledger.Time) error {
	org, err := txn.ReadLoose(ctx, ac.db, txn.ForWrite(""), func(rd txn.Reader) (string, error) {
		token, err := scanToken(rd.Row(selectToken+"WHERE t.token_id = ?", tokenID))
		return token.Row.Org, txn.Missing(err, "token %s not found", tokenID)
	})
	if err != nil {
		return err
	}

	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		token, err := scanToken(t.Row(selectToken+"WHERE t.token_id = ?", tokenID))
		if err != nil {
			return txn.Missing(err, "token %s not found", tokenID)
		}
		const deleteOldest = `DELETE FROM sessions WHERE hash IN
			(SELECT hash FROM sessions WHERE token_id = ? ORDER BY created_at DESC, hash DESC LIMIT ? OFFSET ?)`
		if _, err := t.Exec(deleteOldest, token.ID, int64(math.MaxInt64), maxSessions-1); err != nil {
			return fmt.Errorf("delete the oldest sessions: %w", err)
		}
		_, err = t.Exec("INSERT INTO sessions (hash, token_id, created_at, expires_at) VALUES (?, ?, ?, ?)",
			hash[:], token.ID, t.Now, expires)
		if err != nil {
			return fmt.Errorf("insert session: %w", err)
		}
		return ac.journal.AuditIn(t, token.Row.Org, events.Audited{
			Action: ledger.AuditSessionCreated, Target: tokenID, After: sessionFields(token.Row, expires, hash[:]),
		})
	})
}

// SessionToken returns the token of a session, even if it is revoked or expired, and
// the time at which the session expires.
func (ac *Access) SessionToken(ctx context.Context, hash [32]byte) (token ledger.Token, expires ledger.Time,
	err error) {
	v, err := txn.ReadLoose(ctx, ac.db, txn.ForCheck(), func(rd txn.Reader) (session, error) {
		v, err := findSession(rd, hash)
		return v, txn.Missing(err, "session not found")
	})
	return v.token, v.expires, err
}

// A session is a person's sign-in with a token.
type session struct {
	token   ledger.Token
	expires ledger.Time
}

// findSession returns a session. If it does not exist, it returns sql.ErrNoRows.
func findSession(rd txn.Reader, hash [32]byte) (v session, err error) {
	var tokenID int64
	err = rd.Row("SELECT token_id, expires_at FROM sessions WHERE hash = ?", hash[:]).Scan(&tokenID, &v.expires)
	if err != nil {
		return v, err
	}
	token, err := scanToken(rd.Row(selectToken+"WHERE t.id = ?", tokenID))
	v.token = token.Row
	return v, err
}

// sessionFields returns the fields of a session that audit events have. hash is the SHA-256 of its secret, which
// is random; nil stands for all sessions of a sign-in.
func sessionFields(t ledger.Token, expires ledger.Time, hash []byte) []ledger.Field {
	return []ledger.Field{
		{Name: "token_name", Value: t.Name},
		{Name: "expires_at", Value: expires},
		{Name: "session_digest", Value: events.Digest(hash)},
	}
}

// signInFields returns the fields of the token of a sign-in that audit events have.
func signInFields(t ledger.Token, hash []byte) []ledger.Field {
	return []ledger.Field{
		{Name: "token_name", Value: t.Name},
		{Name: "expires_at", Value: t.ExpiresAt},
		{Name: "scope", Value: t.Scope},
		{Name: "member", Value: events.Optional(t.Member)},
		{Name: "auth_time", Value: events.Optional(t.AuthTime)},
		{Name: "secret_digest", Value: events.Digest(hash)},
	}
}

// DeleteSession ends a session. It is a no-op if the session does not exist.
func (ac *Access) DeleteSession(ctx context.Context, hash [32]byte) error {
	token, _, err := ac.SessionToken(ctx, hash)
	if txn.IsCode(err, ledger.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return ac.db.Change(ctx, token.Org, func(t *txn.Tx) error {
		session, err := findSession(t.Reader, hash)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read session: %w", err)
		}
		if _, err := t.Exec("DELETE FROM sessions WHERE hash = ?", hash[:]); err != nil {
			return fmt.Errorf("delete session: %w", err)
		}
		return ac.journal.AuditIn(t, session.token.Org, events.Audited{
			Action: ledger.AuditSessionEnded, Target: session.token.ID,
			Before: sessionFields(session.token, session.expires, hash[:]),
		})
	})
}

// PruneSessions deletes expired sessions.
func (ac *Access) PruneSessions(ctx context.Context) error {
	return ac.pruneExpired(ctx, ac.db.Clock.Now(), "SELECT EXISTS (SELECT 1 FROM sessions WHERE expires_at <= ?)",
		"DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_at <= ? LIMIT ?)")
}
