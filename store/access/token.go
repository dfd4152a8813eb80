package access

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// tokenColumns are the columns of a token t of an org o, without those of its rule, member and repos.
const tokenColumns = `t.hash, t.id, t.token_id, o.name, t.name, t.permission, t.created_at, t.expires_at,
  t.last_used_at, t.revoked_at, t.created_by`

const selectToken = "SELECT " + tokenColumns + `, coalesce(x.rule_id, ''), coalesce(m.member_id, ''), t.is_sign_in,
  t.auth_time, t.is_limited,
  CASE WHEN t.is_sign_in = 1 THEN coalesce(m.dn, '') ELSE coalesce(x.dn, '') END,
  CASE WHEN t.rule_id > 0 THEN ` + ruleRepos + ` WHEN t.is_limited = 1 THEN ` + tokenRepos + ` ELSE '' END
FROM tokens t JOIN orgs o ON o.id = t.org_id LEFT JOIN exchange_rules x ON x.id = t.rule_id
  LEFT JOIN members m ON m.id = t.member_id `

// tokenRepos is the expression for the names of the repos of a limited token t, separated by spaces.
const tokenRepos = `coalesce((SELECT string_agg(p.name, ' ' ORDER BY p.id) FROM token_repos b
    JOIN repos p ON p.id = b.repo_id AND p.org_id = t.org_id WHERE b.token_id = t.id), '')`

// selectPlainToken selects tokens, and whether selectToken says more about them. Every request looks up
// its token, and few tokens have a rule, a member or repos, so it does not join these.
const selectPlainToken = "SELECT " + tokenColumns + `, t.rule_id + t.member_id + t.is_limited
FROM tokens t JOIN orgs o ON o.id = t.org_id `

func scanToken(row txn.Scanner) (txn.Keyed[ledger.Token], error) {
	t, _, err := scanHashedToken(row)
	return t, err
}

func scanHashedToken(row txn.Scanner) (t txn.Keyed[ledger.Token], hash []byte, err error) {
	var rule, member, dn, repos string
	var isSignIn, isLimited bool
	var authTime ledger.Time
	t, hash, err = scanTokenWith(row, &rule, &member, &isSignIn, &authTime, &isLimited, &dn, &repos)
	if err != nil {
		return t, hash, err
	}
	t.Row.Rule, t.Row.DN, t.Row.Member, t.Row.IsSignIn, t.Row.IsLimited = rule, dn, member, isSignIn, isLimited
	t.Row.AuthTime = authTime
	if t.Row.IsExchanged() || isLimited {
		t.Row.Repos = strings.Fields(repos)
	}
	return t, hash, nil
}

// scanTokenWith scans tokenColumns, followed by the columns of more.
func scanTokenWith(row txn.Scanner, more ...any) (t txn.Keyed[ledger.Token], hash []byte, err error) {
	err = row.Scan(append([]any{&hash, &t.ID, &t.Row.ID, &t.Row.Org, &t.Row.Name, &t.Row.Scope, &t.Row.CreatedAt,
		&t.Row.ExpiresAt, &t.Row.LastUsedAt, &t.Row.RevokedAt, &t.Row.CreatedBy}, more...)...)
	return t, hash, err
}

// CreateToken creates a token; hash is the SHA-256 of its secret. If the token of the actor belongs to
// a member, the new token does, too.
func (ac *Access) CreateToken(ctx context.Context, org string, n ledger.NewToken, hash [32]byte) (ledger.Token, error) {
	return txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (ledger.Token, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return ledger.Token{}, err
		}
		repos, err := reposOf(t, org, n.Repos)
		if err != nil {
			return ledger.Token{}, err
		}
		creator, err := creator(t, orgID)
		if err != nil {
			return ledger.Token{}, err
		}
		token, err := insertToken(t, orgID, newToken{NewToken: n, hash: hash, member: creator, repos: repos})
		if err != nil {
			return token.Row, err
		}
		return token.Row, ac.journal.Audit(t, orgID, org, events.Audited{
			Action: ledger.AuditTokenCreated, Target: token.Row.ID, After: grantFields(token.Row, hash[:]),
		})
	})
}

// reposOf returns the row ids of repos, each once.
func reposOf(t *txn.Tx, org string, names []string) (ids []int64, err error) {
	for _, name := range names {
		r, err := t.WritableRepo(org, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

// creator returns the row id of the member to whom the token of the actor belongs, or 0. It returns an
// error if that token was revoked since the request began: a new token would outlast the revocation.
func creator(t *txn.Tx, orgID int64) (id int64, err error) {
	if t.Actor.Token == "" {
		return 0, nil
	}
	var revoked ledger.Time
	err = t.Row("SELECT member_id, revoked_at FROM tokens WHERE token_id = ? AND org_id = ?", t.Actor.Token, orgID).
		Scan(&id, &revoked)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read the token of the actor: %w", err)
	case revoked != 0:
		return 0, ledger.Errorf(ledger.CodeUnauthenticated, "the API token was revoked at %s", revoked)
	}
	return id, nil
}

// A newToken is a token that is about to be inserted.
type newToken struct {
	ledger.NewToken
	hash     [32]byte
	rule     int64 // the row id of its rule; may be 0
	member   int64 // the row id of its member; may be 0
	repos    []int64
	isSignIn bool
	authTime ledger.Time
}

func insertToken(t *txn.Tx, orgID int64, n newToken) (token txn.Keyed[ledger.Token], err error) {
	tokenID, err := t.NewID(orgID, txn.TokenPrefix)
	if err != nil {
		return token, err
	}

	createdBy := ""
	if n.rule == 0 && !n.isSignIn {
		createdBy = t.Actor.Who()
	}
	id, err := t.Insert(`
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at, rule_id, member_id, is_sign_in,
  auth_time, created_by, is_limited)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		tokenID, orgID, n.Name, n.Scope, n.hash[:], t.Now, n.ExpiresAt, n.rule, n.member, n.isSignIn, n.authTime,
		createdBy, len(n.repos) > 0)
	if err != nil {
		return token, fmt.Errorf("insert token: %w", err)
	}

	for _, repo := range n.repos {
		if _, err := t.Exec("INSERT INTO token_repos (token_id, repo_id) VALUES (?, ?)", id, repo); err != nil {
			return token, fmt.Errorf("insert the repos of the token: %w", err)
		}
	}
	if token, err = scanToken(t.Row(selectToken+"WHERE t.id = ?", id)); err != nil {
		return token, fmt.Errorf("read token: %w", err)
	}
	return token, nil
}

// TokenByHash returns the token whose secret has the given SHA-256, even if it is
// revoked or expired.
func (ac *Access) TokenByHash(ctx context.Context, hash [32]byte) (ledger.Token, error) {
	token, ok, err := ac.tokens.Find(ctx, hash, func(hashes [][32]byte) (map[[32]byte]ledger.Token, error) {
		return ac.tokensByHash(context.WithoutCancel(ctx), hashes)
	})
	if err == nil && !ok {
		err = ledger.Errorf(ledger.CodeNotFound, "token not found")
	}
	return token, err
}

// tokensByHash returns those of the tokens that exist.
func (ac *Access) tokensByHash(ctx context.Context, hashes [][32]byte) (map[[32]byte]ledger.Token, error) {
	keys := make([]any, len(hashes))
	for i := range hashes {
		keys[i] = hashes[i][:]
	}
	return txn.ReadLoose(ctx, ac.db, txn.ForCheck(), func(rd txn.Reader) (map[[32]byte]ledger.Token, error) {
		found := make(map[[32]byte]ledger.Token, len(hashes))
		others, err := addPlainTokens(rd, found, keys)
		if err != nil || len(others) == 0 {
			return found, err
		}
		return found, addTokens(rd, found, others)
	})
}

// addPlainTokens adds the tokens without a rule, a member and repos. It returns the hashes of the
// others.
func addPlainTokens(rd txn.Reader, found map[[32]byte]ledger.Token, hashes []any) (others []any, err error) {
	err = rd.EachIn(func(row txn.Scanner) error {
		var more int64
		token, hash, err := scanTokenWith(row, &more)
		switch {
		case err != nil:
			return err
		case more > 0:
			others = append(others, bytes.Clone(hash))
		default:
			found[[32]byte(hash)] = token.Row
		}
		return nil
	}, selectPlainToken+"WHERE t.hash IN ", 1, hashes)
	return others, err
}

// addTokens adds tokens with all that selectToken says about them.
func addTokens(rd txn.Reader, found map[[32]byte]ledger.Token, hashes []any) error {
	return rd.EachIn(func(row txn.Scanner) error {
		token, hash, err := scanHashedToken(row)
		if err == nil {
			found[[32]byte(hash)] = token.Row
		}
		return err
	}, selectToken+"WHERE t.hash IN ", 1, hashes)
}

// Tokens lists the tokens of an org, oldest first, without sign-ins.
func (ac *Access) Tokens(ctx context.Context, org string, q txn.Query) (ledger.Page[ledger.Token], error) {
	return txn.ListOf(ctx, ac.db, org, "tokens", q, scanToken,
		selectToken+"WHERE t.org_id = ? AND t.id > ? AND t.is_sign_in = 0 ORDER BY t.id LIMIT ?")
}

// RevokeToken revokes a token. It is a no-op if the token is already revoked.
func (ac *Access) RevokeToken(ctx context.Context, org, id string) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		token, err := scanToken(t.Row(selectToken+"WHERE o.name = ? AND t.token_id = ? AND t.is_sign_in = 0", org, id))
		if err != nil {
			return txn.Missing(err, "token %s not found", id)
		}
		if token.Row.RevokedAt != 0 {
			return nil
		}
		if _, err = t.Exec("UPDATE tokens SET revoked_at = ? WHERE id = ?", t.Now, token.ID); err != nil {
			return fmt.Errorf("revoke token: %w", err)
		}
		return ac.journal.AuditIn(t, org, events.Audited{
			Action: ledger.AuditTokenRevoked, Target: id, Before: tokenFields(token.Row),
		})
	})
}

// tokenFields returns the fields of a token that audit events have.
func tokenFields(t ledger.Token) []ledger.Field {
	return []ledger.Field{
		{Name: "name", Value: t.Name},
		{Name: "scope", Value: t.Scope},
		{Name: "expires_at", Value: events.Optional(t.ExpiresAt)},
		{Name: "repos", Value: events.OptionalList(t.Repos)},
	}
}

// grantFields returns tokenFields with what else decides about what a token may do. hash is the SHA-256 of its
// secret. The digest of it reveals nothing, since secrets are random.
func grantFields(t ledger.Token, hash []byte) []ledger.Field {
	return append(tokenFields(t),
		ledger.Field{Name: "rule", Value: events.Optional(t.Rule)},
		ledger.Field{Name: "member", Value: events.Optional(t.Member)},
		ledger.Field{Name: "secret_digest", Value: events.Digest(hash)},
	)
}
