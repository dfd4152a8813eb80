package access

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An Exchange is a token of an issuer with the rule that it fulfils.
type Exchange struct {
	Rule   exchange.Rule
	Claims exchange.Claims
	// Scope is that of the API token, at most that of the rule.
	Scope ledger.Scope
}

// Exchange creates the API token that a rule gives; hash is the SHA-256 of its secret. If the rule
// permits signing, the token of the issuer counts once: later, the error has CodeTokenUsed.
func (ac *Access) Exchange(ctx context.Context, org string, e Exchange, hash [32]byte) (ledger.Token, error) {
	return txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (ledger.Token, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return ledger.Token{}, err
		}
		if e.Rule.DN != "" {
			if err := use(t, orgID, e.Claims); err != nil {
				return ledger.Token{}, err
			}
		}
		rule, err := ruleInForce(t, orgID, e.Rule.ID)
		if err != nil {
			return ledger.Token{}, err
		}
		return ac.exchange(t, orgID, org, rule, e, hash)
	})
}

// exchange creates the API token that a rule with a row id gives.
func (ac *Access) exchange(t *txn.Tx, orgID int64, org string, rule int64, e Exchange, hash [32]byte) (ledger.Token,
	error) {
	if err := checkTokens(t, rule, e.Rule.ID); err != nil {
		return ledger.Token{}, err
	}
	token, err := insertToken(t, orgID, newToken{NewToken: ledger.NewToken{
		Name: e.Rule.Name, Scope: e.Scope, ExpiresAt: t.Now.Add(time.Duration(e.Rule.Lifetime)),
	}, hash: hash, rule: rule})
	if err != nil {
		return token.Row, err
	}
	return token.Row, ac.journal.Audit(t, orgID, org, events.Audited{
		Action: ledger.AuditTokenExchanged, Target: token.Row.ID, After: exchangeFields(token.Row, hash, e),
	})
}

// ruleInForce returns the row id of a rule that was not removed.
func ruleInForce(t *txn.Tx, orgID int64, id string) (rule int64, err error) {
	err = t.Row("SELECT id FROM exchange_rules WHERE org_id = ? AND rule_id = ? AND removed_at = 0", orgID, id).Scan(&rule)
	return rule, txn.Missing(err, "exchange rule %s was removed", id)
}

// checkTokens returns CodeLimitReached if a rule may not give one more token.
func checkTokens(t *txn.Tx, rule int64, id string) error {
	var valid int
	const query = "SELECT count(*) FROM tokens WHERE rule_id = ? AND rule_id > 0 AND expires_at > ?"
	err := t.Row(query, rule, t.Now).Scan(&valid)
	if err != nil {
		return fmt.Errorf("count the tokens of the rule: %w", err)
	}
	if valid >= exchange.MaxTokens {
		return ledger.Errorf(ledger.CodeLimitReached,
			"exchange rule %s has %d API tokens that are valid, the maximum (wait until some expire)", id, valid)
	}
	return nil
}

// use stores that a token of an issuer was used. If it was used before, the error has
// CodeTokenUsed. A token that expired after it was verified is refused: its use may be pruned.
func use(t *txn.Tx, orgID int64, c exchange.Claims) error {
	digest, err := c.UseDigest()
	if err != nil {
		return err
	}
	if end := c.End(); end <= t.Now {
		return ledger.Errorf(ledger.CodeTokenExpired, "the token expired at %s (now: %s)", end, t.Now)
	}
	isNew, err := useOnce(t, orgID, digest, c.End())
	if err != nil {
		return err
	}
	if !isNew {
		return ledger.Errorf(ledger.CodeTokenUsed, "the token was used before: a token with which a job may sign counts once")
	}
	return nil
}

// useOnce stores that a token or a state was used, until a time. It reports false if it was used
// before.
func useOnce(t *txn.Tx, orgID int64, digest [32]byte, until ledger.Time) (isNew bool, err error) {
	rows, err := t.Exec(`
INSERT INTO used_tokens (org_id, digest, until) VALUES (?, ?, ?) ON CONFLICT (org_id, digest) DO NOTHING`,
		orgID, digest[:], until)
	if err != nil {
		return false, fmt.Errorf("remember what was used: %w", err)
	}
	return rows > 0, nil
}

// exchangeFields returns the fields of an exchange that audit events have.
func exchangeFields(t ledger.Token, hash [32]byte, e Exchange) []ledger.Field {
	return append(grantFields(t, hash[:]),
		ledger.Field{Name: "issuer", Value: e.Claims.Issuer},
		ledger.Field{Name: "subject", Value: e.Claims.Subject()},
		ledger.Field{Name: "dn", Value: events.Optional(t.DN)},
		ledger.Field{Name: "claims_digest", Value: e.Claims.Digest()},
		ledger.Field{Name: "run_url", Value: events.Optional(e.Claims.RunURL())},
	)
}

// keepExchanged is how long exchanged and used tokens are kept after they expired. The use of an
// exchanged token then gets an error that says so. A used token is refused even by a write that began
// before it expired: pruning does not wait for that write.
const keepExchanged = time.Hour

// PruneExchanged deletes the exchanged tokens that have expired.
func (ac *Access) PruneExchanged(ctx context.Context) error {
	return ac.pruneExpired(ctx, ac.db.Clock.Now().Add(-keepExchanged),
		"SELECT EXISTS (SELECT 1 FROM tokens WHERE rule_id > 0 AND expires_at <= ?)", `
DELETE FROM tokens
WHERE id IN (SELECT id FROM tokens WHERE rule_id > 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?)`)
}

// PruneUsed deletes the used tokens that have expired.
func (ac *Access) PruneUsed(ctx context.Context) error {
	return ac.pruneExpired(ctx, ac.db.Clock.Now().Add(-keepExchanged),
		"SELECT EXISTS (SELECT 1 FROM used_tokens WHERE until <= ?)", `
DELETE FROM used_tokens
WHERE (org_id, digest) IN (SELECT org_id, digest FROM used_tokens WHERE until <= ? ORDER BY until LIMIT ?)`)
}
