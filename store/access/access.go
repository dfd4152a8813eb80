// Package access is the room of who may use an org: API tokens and the rules by which CI jobs get them, members with
// their passkeys, and sessions. Who signs is in the room of signers. Its tables are tokens,
// token_repos, sessions, issuers, exchange_rules, exchange_rule_repos, used_tokens, members, member_rules, passkeys,
// passkey_challenges, review_drafts and provider_orgs.
package access

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/internal/lookup"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Access has the tokens and members of orgs. Its methods are safe for concurrent use, except those with a txn.Tx, which
// the writer's goroutine calls.
type Access struct {
	db        *txn.DB
	journal   *events.Journal
	signers   *signers.Signers
	providers member.Providers // with which people sign in

	tokens  *lookup.Group[[32]byte, ledger.Token]
	touched *txn.Cache[string, ledger.Time] // last write of TouchToken, by token id
}

// maxTouched limits the tokens whose use is remembered.
const maxTouched = 10_000

// New returns the room of a database. providers are those with which people sign in, and the orgs that may use them.
func New(db *txn.DB, journal *events.Journal, who *signers.Signers, providers member.Providers) *Access {
	return &Access{
		db: db, journal: journal, signers: who, providers: providers, tokens: lookup.New[[32]byte, ledger.Token](),
		touched: txn.NewCache[string, ledger.Time](maxTouched),
	}
}

// End ends all access to an org, because it was deleted.
func End(t *txn.Tx, orgID int64) error {
	for _, change := range []struct {
		query string
		args  []any
	}{
		{"DELETE FROM sessions WHERE token_id IN (SELECT id FROM tokens WHERE org_id = ?)", []any{orgID}},
		{"UPDATE tokens SET revoked_at = ? WHERE org_id = ? AND revoked_at = 0", []any{t.Now, orgID}},
		{"UPDATE exchange_rules SET removed_at = ? WHERE org_id = ? AND removed_at = 0", []any{t.Now, orgID}},
		{"UPDATE issuers SET removed_at = ? WHERE org_id = ? AND removed_at = 0", []any{t.Now, orgID}},
		{"UPDATE member_rules SET removed_at = ? WHERE org_id = ? AND removed_at = 0", []any{t.Now, orgID}},
		{"UPDATE members SET removed_at = ? WHERE org_id = ? AND removed_at = 0", []any{t.Now, orgID}},
	} {
		if _, err := t.Exec(change.query, change.args...); err != nil {
			return fmt.Errorf("end the access to an org: %w", err)
		}
	}
	return nil
}
