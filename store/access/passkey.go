package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxChallenges is the maximum number of challenges per sign-in.
const maxChallenges = 5

const selectPasskey = `
SELECT p.id, p.passkey_id, o.name, m.member_id, m.dn, p.name, p.rp_id, p.credential_id, p.public_key, p.created_at,
  p.removed_at
FROM passkeys p JOIN members m ON m.id = p.member_id JOIN orgs o ON o.id = p.org_id `

func scanPasskey(row txn.Scanner) (txn.Keyed[passkey.Passkey], error) {
	var p txn.Keyed[passkey.Passkey]
	var r = &p.Row
	err := row.Scan(&p.ID, &r.ID, &r.Org, &r.Member, &r.DN, &r.Name, &r.RPID, &r.CredentialID, &r.PublicKey, &r.CreatedAt,
		&r.RemovedAt)
	r.Key = passkey.Fingerprint(r.PublicKey)
	return p, err
}

// CreatePasskeyChallenge stores a challenge to enrol a passkey, which a sign-in can answer until a
// time. If the sign-in has too many, it deletes the oldest. It returns CodeForbidden if the sign-in
// has ended.
func (ac *Access) CreatePasskeyChallenge(
	ctx context.Context, org, tokenID string, challenge []byte, until ledger.Time,
) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		if _, err := t.WritableOrg(org); err != nil {
			return err
		}
		m, err := currentSignIn(t.Reader, org, tokenID)
		if err != nil {
			return err
		}

		_, err = t.Exec(`DELETE FROM passkey_challenges WHERE digest IN
  (SELECT digest FROM passkey_challenges WHERE token_id = ? ORDER BY until DESC, digest DESC LIMIT ? OFFSET ?)`,
			m.token, maxChallenges, maxChallenges-1)
		if err != nil {
			return fmt.Errorf("delete the oldest challenges: %w", err)
		}
		digest := sha256.Sum256(challenge)
		_, err = t.Exec("INSERT INTO passkey_challenges (digest, token_id, until) VALUES (?, ?, ?)", digest[:], m.token,
			until)
		if err != nil {
			return fmt.Errorf("insert challenge: %w", err)
		}
		return nil
	})
}

// AddPasskey uses up a challenge, and adds and logs the passkey of the member whose sign-in has
// answered it. p has a name, a domain, a credential ID and a public key. It returns CodeNotFound if
// the sign-in has no such challenge, CodeAlreadyExists if the member has or had the passkey, and
// CodeLimitReached if the member has too many.
func (ac *Access) AddPasskey(
	ctx context.Context, org, tokenID string, challenge []byte, p passkey.Passkey,
) (passkey.Passkey, error) {
	return txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (passkey.Passkey, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return p, err
		}
		m, err := currentSignIn(t.Reader, org, tokenID)
		if err != nil {
			return p, err
		}
		if err := useChallenge(t, m.token, challenge); err != nil {
			return p, err
		}
		if err := checkPasskeys(t, m.member); err != nil {
			return p, err
		}

		added, err := insertPasskey(t, orgID, m.member, p)
		if err != nil {
			return added.Row, err
		}
		if err := ac.logPasskey(t, orgID, added.Row, ledger.IdentityAdded); err != nil {
			return added.Row, err
		}
		return added.Row, ac.journal.Audit(t, orgID, org, events.Audited{
			Action: ledger.AuditPasskeyAdded, Target: added.Row.ID, After: passkeyFields(added.Row),
		})
	})
}

// useChallenge deletes a challenge. It returns CodeNotFound if the sign-in has none such.
func useChallenge(t *txn.Tx, token int64, challenge []byte) error {
	digest := sha256.Sum256(challenge)
	used, err := t.Exec("DELETE FROM passkey_challenges WHERE digest = ? AND token_id = ? AND until > ?", digest[:], token,
		t.Now)
	if err != nil {
		return fmt.Errorf("delete challenge: %w", err)
	}
	if used == 0 {
		return ledger.Errorf(ledger.CodeNotFound, "this sign-in has no such challenge: it was answered, or it has expired "+
			"(ask for another)")
	}
	return nil
}

// checkPasskeys returns CodeLimitReached if a member has too many passkeys for another one.
func checkPasskeys(t *txn.Tx, member int64) error {
	var all, current int
	err := t.Row("SELECT count(*), count(CASE removed_at WHEN 0 THEN 1 END) FROM passkeys WHERE member_id = ?", member).
		Scan(&all, &current)
	switch {
	case err != nil:
		return fmt.Errorf("count passkeys: %w", err)
	case current >= passkey.MaxPasskeys:
		return ledger.Errorf(ledger.CodeLimitReached, "the member has %d passkeys, the maximum: remove one first", current)
	case all >= passkey.MaxEver:
		return ledger.Errorf(ledger.CodeLimitReached, "the member has %d passkeys and former ones, the maximum", all)
	}
	return nil
}

func insertPasskey(t *txn.Tx, orgID, member int64, p passkey.Passkey) (txn.Keyed[passkey.Passkey], error) {
	passkeyID, err := t.NewID(orgID, txn.PasskeyPrefix)
	if err != nil {
		return txn.Keyed[passkey.Passkey]{}, err
	}
	id, err := t.Insert(`
INSERT INTO passkeys (passkey_id, org_id, member_id, name, rp_id, credential_id, public_key, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, passkeyID, orgID, member, p.Name, p.RPID, p.CredentialID, p.PublicKey, t.Now)
	if sqldb.ClassOf(err) == sqldb.Duplicate {
		return txn.Keyed[passkey.Passkey]{}, ledger.Errorf(ledger.CodeAlreadyExists, "the member has or had this passkey")
	}
	if err != nil {
		return txn.Keyed[passkey.Passkey]{}, fmt.Errorf("insert passkey: %w", err)
	}
	added, err := scanPasskey(t.Row(selectPasskey+"WHERE p.id = ?", id))
	if err != nil {
		err = fmt.Errorf("read passkey: %w", err)
	}
	return added, err
}

// logPasskey logs an action on a passkey, for those who verify assertions.
func (ac *Access) logPasskey(t *txn.Tx, orgID int64, p passkey.Passkey, action ledger.IdentityAction) error {
	e := p.Event(action)
	var err error
	if e.ID, err = t.NewID(orgID, txn.EventPrefix); err != nil {
		return err
	}
	e.Timestamp = t.Now
	return ac.journal.AppendToOrg(t, orgID, ledger.EventIdentity, e.ID, ledger.Render(e))
}

// passkeyFields returns the fields of a passkey that audit events have.
func passkeyFields(p passkey.Passkey) []ledger.Field {
	return []ledger.Field{
		{Name: "member", Value: p.Member},
		{Name: "dn", Value: p.DN},
		{Name: "name", Value: p.Name},
		{Name: "rp_id", Value: p.RPID},
		{Name: "key", Value: p.Key},
		{Name: "credential_digest", Value: events.Digest(p.CredentialID)},
	}
}

// Passkeys lists the passkeys of an org that were not removed, oldest first. If memberID is not
// empty, it lists those of one member.
func (ac *Access) Passkeys(ctx context.Context, org, memberID string, q txn.Query) (ledger.Page[passkey.Passkey],
	error) {
	if memberID == "" {
		return txn.ListOf(ctx, ac.db, org, "passkeys", q, scanPasskey,
			selectPasskey+"WHERE p.org_id = ? AND p.removed_at = 0 AND p.id > ? ORDER BY p.id LIMIT ?")
	}
	return txn.Read(ctx, ac.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[passkey.Passkey], err error) {
		m, err := findMember(rd, org, memberID)
		if err != nil {
			return list, err
		}
		return txn.PageOf(rd, "passkeys of member", m.ID, q, scanPasskey,
			selectPasskey+"WHERE p.member_id = ? AND p.removed_at = 0 AND p.id > ? ORDER BY p.id LIMIT ?")
	})
}

// RemovePasskey removes a passkey: it confirms nothing from then on. If memberID is not empty, it
// removes only one of that member. It is a no-op if it was removed.
func (ac *Access) RemovePasskey(ctx context.Context, org, memberID, id string) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return err
		}
		p, err := scanPasskey(t.Row(selectPasskey+"WHERE p.org_id = ? AND p.passkey_id = ?", orgID, id))
		if err = txn.Missing(err, "passkey %s not found", id); err != nil {
			return err
		}
		if memberID != "" && p.Row.Member != memberID {
			return ledger.Errorf(ledger.CodeNotFound, "passkey %s not found", id)
		}
		return ac.removePasskey(t, orgID, org, p)
	})
}

// removePasskey removes a passkey, unless it was removed.
func (ac *Access) removePasskey(t *txn.Tx, orgID int64, org string, p txn.Keyed[passkey.Passkey]) error {
	if p.Row.RemovedAt != 0 {
		return nil
	}
	if _, err := t.Exec("UPDATE passkeys SET removed_at = ? WHERE id = ?", t.Now, p.ID); err != nil {
		return fmt.Errorf("remove passkey: %w", err)
	}
	p.Row.RemovedAt = t.Now
	if err := ac.logPasskey(t, orgID, p.Row, ledger.IdentityRevoked); err != nil {
		return err
	}
	return ac.journal.Audit(t, orgID, org, events.Audited{
		Action: ledger.AuditPasskeyRemoved, Target: p.Row.ID, Before: passkeyFields(p.Row),
	})
}

// checkPasskey returns CodeForbidden unless a member has a passkey that was not removed.
func checkPasskey(t *txn.Tx, member int64, id string) error {
	var ok bool
	err := t.Row("SELECT EXISTS (SELECT 1 FROM passkeys WHERE passkey_id = ? AND member_id = ?)", id, member).Scan(&ok)
	if err != nil {
		return fmt.Errorf("look for a passkey of a member: %w", err)
	}
	if !ok {
		return errPasskeyRemoved()
	}
	refusal, err := CheckPasskeyInUse(t, id)
	return cmp.Or(err, refusal)
}

// CheckPasskeyInUse returns CodeForbidden as the refusal if a passkey was removed: what it confirms is
// evidence only if the log has it before the removal.
func CheckPasskeyInUse(t *txn.Tx, id string) (refusal, err error) {
	var ok bool
	err = t.Row("SELECT EXISTS (SELECT 1 FROM passkeys WHERE passkey_id = ? AND removed_at = 0)", id).Scan(&ok)
	if err != nil {
		return nil, fmt.Errorf("look for a passkey: %w", err)
	}
	if !ok {
		return errPasskeyRemoved(), nil
	}
	return nil, nil
}

func errPasskeyRemoved() error {
	return ledger.Errorf(ledger.CodeForbidden, "the passkey was removed (confirm the review with another one)")
}

// PrunePasskeyChallenges deletes expired challenges.
func (ac *Access) PrunePasskeyChallenges(ctx context.Context) error {
	return ac.pruneExpired(ctx, ac.db.Clock.Now(), "SELECT EXISTS (SELECT 1 FROM passkey_challenges WHERE until <= ?)", `
DELETE FROM passkey_challenges
WHERE digest IN (SELECT digest FROM passkey_challenges WHERE until <= ? ORDER BY until LIMIT ?)`)
}
