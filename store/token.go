package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

const selectToken = `
SELECT t.id, t.token_id, o.name, t.name, t.scope, t.created_at, t.expires_at, t.last_used_at, t.revoked_at
FROM tokens t JOIN orgs o ON o.id = t.org_id `

func scanToken(row scanner) (keyed[ledger.Token], error) {
	var t keyed[ledger.Token]
	err := row.Scan(&t.id, &t.row.ID, &t.row.Org, &t.row.Name, &t.row.Scope, &t.row.CreatedAt, &t.row.ExpiresAt,
		&t.row.LastUsedAt, &t.row.RevokedAt)
	return t, err
}

// CreateToken creates a token; hash is the SHA-256 of its secret.
func (s *Store) CreateToken(ctx context.Context, org string, n ledger.NewToken, hash [32]byte) (ledger.Token, error) {
	return write(ctx, s, org, func(t *tx) (ledger.Token, error) {
		orgID, err := t.writableOrg(org)
		if err != nil {
			return ledger.Token{}, err
		}
		tokenID, err := t.newID(tokenPrefix)
		if err != nil {
			return ledger.Token{}, err
		}

		id, err := t.Insert(`
INSERT INTO tokens (token_id, org_id, name, scope, hash, created_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?)`,
			tokenID, orgID, n.Name, n.Scope, hash[:], t.now, n.ExpiresAt)
		if err != nil {
			return ledger.Token{}, fmt.Errorf("insert token: %w", err)
		}
		token, err := scanToken(t.Row(selectToken+"WHERE t.id = ?", id))
		if err != nil {
			return token.row, fmt.Errorf("read token: %w", err)
		}
		return token.row, t.audit(orgID, org, audited{
			action: ledger.AuditTokenCreated, target: tokenID, after: tokenFields(token.row),
		})
	})
}

// TokenByHash returns the token whose secret has the given SHA-256, even if it is
// revoked or expired.
func (s *Store) TokenByHash(ctx context.Context, hash [32]byte) (ledger.Token, error) {
	return readLoose(ctx, s, forCheck(), func(rd reader) (ledger.Token, error) {
		token, err := scanToken(rd.Row(selectToken+"WHERE t.hash = ?", hash[:]))
		return token.row, missing(err, "token not found")
	})
}

// Tokens lists the tokens of an org, oldest first.
func (s *Store) Tokens(ctx context.Context, org string, q Query) (ledger.Page[ledger.Token], error) {
	return listOf(ctx, s, org, q, scanToken, selectToken+"WHERE t.org_id = ? AND t.id > ? ORDER BY t.id LIMIT ?")
}

// RevokeToken revokes a token. It is a no-op if the token is already revoked.
func (s *Store) RevokeToken(ctx context.Context, org, id string) error {
	return s.write(ctx, org, func(t *tx) error {
		token, err := scanToken(t.Row(selectToken+"WHERE o.name = ? AND t.token_id = ?", org, id))
		if err != nil {
			return missing(err, "token %s not found", id)
		}
		if token.row.RevokedAt != 0 {
			return nil
		}
		if _, err = t.Exec("UPDATE tokens SET revoked_at = ? WHERE id = ?", t.now, token.id); err != nil {
			return fmt.Errorf("revoke token: %w", err)
		}
		return t.auditIn(org, audited{action: ledger.AuditTokenRevoked, target: id, before: tokenFields(token.row)})
	})
}

// TouchToken sets the time at which a token was last used. It writes at most once a
// minute per token, in the background; more often only if more than maxTouched tokens
// are in use. If the writer's queue is full, it is a no-op.
func (s *Store) TouchToken(id string) {
	now := s.Now()
	if last, ok := s.touched.get(id); ok && now.Sub(last).Abs() < time.Minute {
		return
	}
	queued := s.db.TryWrite(sqldb.Write{Unlocked: true, Do: func(c *sqldb.Conn) error {
		_, err := c.Exec("UPDATE tokens SET last_used_at = ? WHERE token_id = ? AND last_used_at < ?", now, id, now)
		return err
	}})
	if queued {
		s.touched.put(id, now)
	}
}
