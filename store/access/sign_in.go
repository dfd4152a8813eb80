package access

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// keepState is how long used states of sign-ins are stored. Their cookies are valid for a shorter
// time.
const keepState = time.Hour

// SignInMember signs an account in to an org: it updates the member by the rules of the org, and
// creates a token of the member with a session. session is the SHA-256 of the secret of the
// session, and state that of the state of the sign-in, which counts once.
//
// It returns CodeForbidden if the org does not admit the account, may not use its provider, or does not
// exist, or if the person must agree to join it and has not (see [member.Offers]),
// CodeAlreadyExists if the DN that a rule gives is another person's, and CodeUnauthenticated
// if the
// state was used before. Tokens of an account that is no longer admitted are revoked.
func (ac *Access) SignInMember(
	ctx context.Context, org string, a member.Account, state, session [32]byte, expires ledger.Time,
) (ledger.Token, error) {
	token, err := txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (ledger.Token, error) {
		orgID, err := t.OrgID(org)
		if txn.IsCode(err, ledger.CodeNotFound) {
			return ledger.Token{}, nil
		}
		if err != nil {
			return ledger.Token{}, err
		}

		// A refusal without a reason writes nothing, as if the org did not exist: a write would take longer.
		mayUse, err := mayUse(t.Reader, ac.providers, orgID, org, a.Issuer)
		if err != nil || !mayUse {
			return ledger.Token{}, err
		}
		before, after, err := admit(t, orgID, a)
		if err != nil || isStranger(before.Row) && after.RemovedAt != 0 {
			return ledger.Token{}, err
		}
		if !before.Row.HasJoined() {
			offers, err := offers(t.Reader, ac.providers, a)
			if err != nil || !member.MayJoin(offers, a, org) {
				return ledger.Token{}, err
			}
		}
		if err := useState(t, orgID, state); err != nil {
			return ledger.Token{}, err
		}
		m, err := ac.saveMember(t, orgID, org, before, after)
		if err != nil || m.Row.RemovedAt != 0 {
			return ledger.Token{}, err
		}
		return ac.signIn(t, orgID, org, m, a, session, expires)
	})
	if err == nil && token.ID == "" {
		err = ledger.Errorf(ledger.CodeForbidden, "this account may not sign in to org %s", org)
	}
	return token, err
}

// useState stores that the state of a sign-in was used. If it was used before, it returns
// CodeUnauthenticated.
func useState(t *txn.Tx, orgID int64, state [32]byte) error {
	isNew, err := useOnce(t, orgID, state, t.Now.Add(keepState))
	if err == nil && !isNew {
		err = ledger.Errorf(ledger.CodeUnauthenticated, "the sign-in was completed before: sign in again")
	}
	return err
}

// admit returns the member of an account before a sign-in, and after it by the rules of the org. before.id
// is 0 if the account was not a member.
func admit(t *txn.Tx, orgID int64, a member.Account) (before txn.Keyed[member.Member], after member.Member, err error) {
	if before, err = memberOf(t.Reader, orgID, a.Issuer, a.Subject); err != nil {
		return before, after, err
	}
	rules, err := txn.All(t.Reader, scanMemberRuleRow, selectMemberRule+`
WHERE r.issuer = ? AND r.org_id = ? AND r.removed_at = 0 ORDER BY r.id LIMIT ?`, a.Issuer, orgID, member.MaxRules)
	if err != nil {
		return before, after, fmt.Errorf("read the rules of members: %w", err)
	}
	if after, err = member.Admit(before.Row, rules, a, t.Now); err != nil {
		err = ledger.Errorf(ledger.CodeForbidden, "no DN for this account: %v (an admin of the org can add it as "+
			"a member)", err)
	}
	return before, after, err
}

// isStranger reports whether m is not a current member.
func isStranger(m member.Member) bool { return m.ID == "" || m.RemovedAt != 0 }

// saveMember adds or updates the member of an account that signs in.
func (ac *Access) saveMember(t *txn.Tx,
	orgID int64, org string, before txn.Keyed[member.Member], after member.Member,
) (txn.Keyed[member.Member], error) {
	t.Actor.Name, t.Actor.Token = after.DN, "" // there is no token yet
	if before.ID > 0 {
		if after.RemovedAt != 0 {
			after.Role = before.Row.Role // what it was
		}
		return txn.Keyed[member.Member]{ID: before.ID, Row: after}, ac.updateMember(t, org, before, after)
	}
	if err := checkUnknown(t, orgID, org, after.DN); err != nil {
		return before, err
	}
	return ac.insertMember(t, orgID, org, after)
}

// checkUnknown returns an error if the DN that a rule gives an account is that of an identity, or of a
// recorded signature, such as with a certificate of a root: a claim must not be enough to become a
// signer of the org.
func checkUnknown(t *txn.Tx, orgID int64, org, text string) error {
	dn, err := identity.ParseDN(text)
	if err != nil {
		return fmt.Errorf("parse the DN of a rule: %w", err)
	}
	known, err := txn.All(t.Reader, signers.ScanIdentity, signers.SelectIdentity+"WHERE o.name = ? ORDER BY i.id", org)
	if err != nil {
		return fmt.Errorf("read identities: %w", err)
	}
	folded := dn.Fold()
	for _, i := range known {
		other, err := identity.ParseDN(i.Row.DN)
		if err == nil && other.Fold() == folded {
			return ledger.Errorf(ledger.CodeAlreadyExists, "the identity %s has the DN %s: an admin of the org must add this "+
				"account as a member", i.Row.ID, text)
		}
	}

	person, err := signers.PersonOfFold(t.Conn, orgID, folded)
	if err != nil {
		return fmt.Errorf("look for a signer with the DN: %w", err)
	}
	if person != 0 {
		return ledger.Errorf(ledger.CodeAlreadyExists, "%s is the name of a recorded signature: an admin of the org must "+
			"add this account as a member", text)
	}
	return nil
}

// signIn creates the token and the session of a sign-in. If the member has too many sign-ins, the
// oldest end.
func (ac *Access) signIn(t *txn.Tx,
	orgID int64, org string, m txn.Keyed[member.Member], a member.Account, session [32]byte, expires ledger.Time,
) (ledger.Token, error) {
	if err := ac.endOldestSignIns(t, orgID, org, m); err != nil {
		return ledger.Token{}, err
	}
	var unknown [32]byte // the hash of no secret
	rand.Read(unknown[:])
	token, err := insertToken(t, orgID, newToken{
		NewToken: ledger.NewToken{Name: m.Row.DN, Scope: m.Row.Role.Scope(), ExpiresAt: expires},
		hash:     unknown, member: m.ID, isSignIn: true, authTime: a.AuthTime,
	})
	if err != nil {
		return token.Row, err
	}

	_, err = t.Exec("INSERT INTO sessions (hash, token_id, created_at, expires_at) VALUES (?, ?, ?, ?)",
		session[:], token.ID, t.Now, expires)
	if err != nil {
		return token.Row, fmt.Errorf("insert session: %w", err)
	}
	t.Actor.Name, t.Actor.Token = token.Row.Name, token.Row.ID
	return token.Row, ac.journal.Audit(t, orgID, org, events.Audited{
		Action: ledger.AuditSessionCreated, Target: token.Row.ID,
		After: append(signInFields(token.Row, unknown[:]),
			ledger.Field{Name: "session_digest", Value: events.Digest(session[:])}),
	})
}

// endOldestSignIns ends the oldest sign-ins of a member so that one more is allowed.
func (ac *Access) endOldestSignIns(t *txn.Tx, orgID int64, org string, m txn.Keyed[member.Member]) error {
	oldest, err := txn.All(t.Reader, scanToken, selectToken+`
WHERE t.member_id = ? AND t.member_id > 0 AND t.is_sign_in = 1 AND t.revoked_at = 0 AND t.expires_at > ?
ORDER BY t.id DESC LIMIT ? OFFSET ?`, m.ID, t.Now, member.MaxSignIns, member.MaxSignIns-1)
	if err != nil {
		return fmt.Errorf("read the oldest sign-ins: %w", err)
	}
	for _, token := range oldest {
		if err := ac.endSignIn(t, orgID, org, token); err != nil {
			return err
		}
	}
	return nil
}

// endSignIn ends a sign-in, and logs it.
func (ac *Access) endSignIn(t *txn.Tx, orgID int64, org string, token txn.Keyed[ledger.Token]) error {
	if _, err := t.Exec("UPDATE tokens SET revoked_at = ? WHERE id = ?", t.Now, token.ID); err != nil {
		return fmt.Errorf("end the sign-in: %w", err)
	}
	return ac.journal.Audit(t, orgID, org, events.Audited{
		Action: ledger.AuditSessionEnded, Target: token.Row.ID, Before: sessionFields(token.Row, token.Row.ExpiresAt, nil),
	})
}

// SignIns lists the sign-ins of an org that have not ended, oldest first. If memberID is not empty,
// it lists those of one member.
func (ac *Access) SignIns(ctx context.Context, org, memberID string, q txn.Query) (ledger.Page[ledger.Token], error) {
	return txn.Read(ctx, ac.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[ledger.Token], err error) {
		var owner int64
		what, query, where := "sign-ins", selectToken, "WHERE t.org_id = ? AND "
		if memberID == "" {
			owner, err = rd.OrgID(org)
			query = strings.Replace(selectToken, "FROM tokens t", "FROM tokens t /*+index tokens_signed_in*/", 1)
		} else {
			var m txn.Keyed[member.Member]
			m, err = findMember(rd, org, memberID)
			owner, what, where = m.ID, "sign-ins of member", "WHERE t.member_id = ? AND t.member_id > 0 AND "
		}
		if err != nil {
			return list, err
		}

		l := rd.Listing(what, owner)
		after, err := l.After(q, 0)
		if err != nil {
			return list, err
		}
		p, err := txn.ReadPage(rd.Conn, scanToken, q.Limit, query+where+`
t.id > ? AND t.is_sign_in = 1 AND t.revoked_at = 0 AND t.expires_at > ? ORDER BY t.id LIMIT ?`,
			owner, after, ac.db.Clock.Now())
		return p.Page(l), err
	})
}

// EndSignIn ends a sign-in with its sessions and streams. If memberID is not empty, it ends only a
// sign-in of that member. It is a no-op if the sign-in has ended.
func (ac *Access) EndSignIn(ctx context.Context, org, memberID, id string) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		token, err := scanToken(t.Row(selectToken+"WHERE o.name = ? AND t.token_id = ? AND t.is_sign_in = 1", org, id))
		if err == nil && memberID != "" && token.Row.Member != memberID {
			err = sql.ErrNoRows
		}
		if err != nil {
			return txn.Missing(err, "sign-in %s not found", id)
		}
		if token.Row.RevokedAt != 0 || token.Row.ExpiresAt <= t.Now {
			return nil // pruning may have locked one that expired
		}
		orgID, err := t.OrgID(org)
		if err != nil {
			return err
		}
		return ac.endSignIn(t, orgID, org, token)
	})
}

// endSignInsBatch is the number of sign-ins that one write ends.
const endSignInsBatch = 500

// EndSignInsOfProviders ends the sign-ins of members whose org may no longer use the provider.
func (ac *Access) EndSignInsOfProviders(ctx context.Context) error {
	type use struct {
		orgID       int64
		org, issuer string
		isListed    bool
	}
	scan := func(row txn.Scanner) (u use, err error) { return u, row.Scan(&u.orgID, &u.org, &u.issuer, &u.isListed) }
	uses, err := txn.Read(ctx, ac.db, txn.ForWrite(""), func(rd txn.Reader) ([]use, error) {
		return txn.All(rd, scan, `
SELECT DISTINCT o.id, o.name, m.issuer,
  EXISTS (SELECT 1 FROM provider_orgs p WHERE p.issuer = m.issuer AND p.org_id = o.id)
FROM tokens t JOIN members m ON m.id = t.member_id JOIN orgs o ON o.id = t.org_id
WHERE t.is_sign_in = 1 AND t.revoked_at = 0 AND t.expires_at > ?`, rd.Now)
	})
	if err != nil {
		return fmt.Errorf("read the sign-ins: %w", err)
	}

	for _, u := range uses {
		if ac.providers.MayUse(u.issuer, u.org, u.isListed) {
			continue
		}
		err := ac.db.Repeat(ctx, sqldb.Write{Owners: []int64{u.orgID}}, func(t *txn.Tx) (last bool, err error) {
			return ac.endSignInsOf(t, u.orgID, u.org, u.issuer)
		})
		if err != nil {
			return fmt.Errorf("end the sign-ins of org %s with %s: %w", u.org, u.issuer, err)
		}
	}
	return nil
}

// endSignInsOf ends sign-ins to an org with an issuer. It reports whether there are no more.
func (ac *Access) endSignInsOf(t *txn.Tx, orgID int64, org, issuer string) (last bool, err error) {
	tokens, err := txn.All(t.Reader, scanToken, selectToken+`
WHERE t.org_id = ? AND t.is_sign_in = 1 AND t.revoked_at = 0 AND t.expires_at > ? AND m.issuer = ?
ORDER BY t.id LIMIT ?`, orgID, t.Now, issuer, endSignInsBatch)
	for _, token := range tokens {
		if err == nil {
			err = ac.endSignIn(t, orgID, org, token)
		}
	}
	return len(tokens) < endSignInsBatch, err
}

// A signedIn is the member of a sign-in.
type signedIn struct {
	token, member int64 // row ids
	dn            string
}

// currentSignIn returns the member of a sign-in to an org. It returns CodeForbidden if the sign-in has
// ended.
func currentSignIn(rd txn.Reader, org, tokenID string) (m signedIn, err error) {
	err = rd.Row(`
SELECT t.id, m.id, m.dn FROM tokens t JOIN orgs o ON o.id = t.org_id JOIN members m ON m.id = t.member_id
WHERE t.token_id = ? AND o.name = ? AND t.is_sign_in = 1 AND t.revoked_at = 0 AND m.removed_at = 0`, tokenID, org).
		Scan(&m.token, &m.member, &m.dn)
	if errors.Is(err, sql.ErrNoRows) {
		err = ledger.Errorf(ledger.CodeForbidden, "the sign-in has ended (sign in again)")
	}
	return m, err
}

// keepSignIns is how long sign-ins are kept after they expired.
const keepSignIns = time.Hour

// PruneSignIns deletes the sign-ins that have expired, except those that something still refers to.
func (ac *Access) PruneSignIns(ctx context.Context) error {
	const expired = `FROM tokens t WHERE t.is_sign_in = 1 AND t.expires_at <= ?
  AND NOT EXISTS (SELECT 1 FROM sessions WHERE token_id = t.id)
  AND NOT EXISTS (SELECT 1 FROM review_drafts WHERE token_id = t.id)
  AND NOT EXISTS (SELECT 1 FROM passkey_challenges WHERE token_id = t.id)`
	return ac.pruneExpired(ctx, ac.db.Clock.Now().Add(-keepSignIns), "SELECT EXISTS (SELECT 1 "+expired+")",
		"DELETE FROM tokens WHERE id IN (SELECT t.id "+expired+" ORDER BY t.expires_at LIMIT ?)")
}
