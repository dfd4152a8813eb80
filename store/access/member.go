package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

const selectMember = `
SELECT m.id, m.member_id, o.name, m.issuer, m.subject, m.dn, m.name, m.email, m.role, m.by_rule, m.created_at,
  m.signed_in_at, m.removed_at, EXISTS (
    SELECT 1 FROM signers s WHERE s.org_id = m.org_id AND s.dn = m.dn AND s.distinct_by > 0)
FROM members m JOIN orgs o ON o.id = m.org_id `

func scanMember(row txn.Scanner) (txn.Keyed[member.Member], error) {
	var m txn.Keyed[member.Member]
	var r = &m.Row
	return m, row.Scan(&m.ID, &r.ID, &r.Org, &r.Issuer, &r.Subject, &r.DN, &r.Name, &r.Email, &r.Role, &r.ByRule,
		&r.CreatedAt, &r.SignedInAt, &r.RemovedAt, &r.Distinct)
}

// Members lists the members and former members of an org, oldest first.
func (ac *Access) Members(ctx context.Context, org string, q txn.Query) (ledger.Page[member.Member], error) {
	return txn.ListOf(ctx, ac.db, org, "members", q, scanMember,
		selectMember+"WHERE m.org_id = ? AND m.id > ? ORDER BY m.id LIMIT ?")
}

// Member returns a member, who may be a former one.
func (ac *Access) Member(ctx context.Context, org, id string) (member.Member, error) {
	return txn.Read(ctx, ac.db, txn.ByOrg(org), func(rd txn.Reader) (member.Member, error) {
		m, err := findMember(rd, org, id)
		return m.Row, err
	})
}

func findMember(rd txn.Reader, org, id string) (txn.Keyed[member.Member], error) {
	m, err := scanMember(rd.Row(selectMember+"WHERE o.name = ? AND m.member_id = ?", org, id))
	return m, txn.Missing(err, "member %s not found", id)
}

// AddMember adds an account to an org before its person signs in. n is completed. It returns
// CodeInvalidField if the org may not use the provider, CodeAlreadyExists if the account is a
// member, also a former one, or if another member has the DN,
// and CodeLimitReached if the org has too many.
func (ac *Access) AddMember(ctx context.Context, org string, n member.NewMember) (member.Member, error) {
	return txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (member.Member, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return member.Member{}, err
		}
		if err := checkProvider(t.Reader, ac.providers, orgID, org, n.Issuer); err != nil {
			return member.Member{}, err
		}
		known, err := memberOf(t.Reader, orgID, n.Issuer, n.Subject)
		if err != nil {
			return known.Row, err
		}
		if known.ID > 0 {
			return known.Row, ledger.Errorf(ledger.CodeAlreadyExists,
				"the account is the member %s: change that one", known.Row.ID)
		}
		m, err := ac.insertMember(t, orgID, org,
			member.Member{Issuer: n.Issuer, Subject: n.Subject, DN: n.DN, Role: n.Role})
		return m.Row, err
	})
}

// memberOf returns the member of an org with an account, or zero.
func memberOf(rd txn.Reader, orgID int64, issuer, subject string) (txn.Keyed[member.Member], error) {
	m, err := scanMember(rd.Row(selectMember+"WHERE m.org_id = ? AND m.issuer = ? AND m.subject = ?",
		orgID, issuer, subject))
	if errors.Is(err, sql.ErrNoRows) {
		return txn.Keyed[member.Member]{}, nil
	}
	if err != nil {
		return m, fmt.Errorf("read member: %w", err)
	}
	return m, nil
}

// insertMember adds a member, and logs it.
func (ac *Access) insertMember(t *txn.Tx, orgID int64, org string, m member.Member) (txn.Keyed[member.Member], error) {
	dn, err := identity.ParseDN(m.DN)
	if err != nil {
		return txn.Keyed[member.Member]{}, fmt.Errorf("parse the DN of a member: %w", err)
	}
	folded := dn.Fold()
	if err := checkMembers(t, orgID, org, m.DN, folded); err != nil {
		return txn.Keyed[member.Member]{}, err
	}

	memberID, err := t.NewID(orgID, txn.MemberPrefix)
	if err != nil {
		return txn.Keyed[member.Member]{}, err
	}
	id, err := t.Insert(`
INSERT INTO members (member_id, org_id, issuer, subject, dn, folded, name, email, role, by_rule, created_at,
  signed_in_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		memberID, orgID, m.Issuer, m.Subject, m.DN, folded, m.Name, m.Email, m.Role, m.ByRule, t.Now, m.SignedInAt)
	if err != nil {
		return txn.Keyed[member.Member]{}, fmt.Errorf("insert member: %w", err)
	}
	added, err := scanMember(t.Row(selectMember+"WHERE m.id = ?", id))
	if err != nil {
		return added, fmt.Errorf("read member: %w", err)
	}
	return added, ac.journal.Audit(t, orgID, org, events.Audited{
		Action: ledger.AuditMemberAdded, Target: memberID, After: memberFields(added.Row),
	})
}

// checkMembers returns an error if an org has the maximum number of members, or if one of them has
// the DN.
func checkMembers(t *txn.Tx, orgID int64, org, dn, folded string) error {
	var count int
	if err := t.Row("SELECT count(*) FROM members WHERE org_id = ?", orgID).Scan(&count); err != nil {
		return fmt.Errorf("count members: %w", err)
	}
	if count >= member.MaxMembers {
		return ledger.Errorf(ledger.CodeLimitReached, "org %s already has %d members and former members, the maximum", org,
			count)
	}

	var other string
	err := t.Row("SELECT member_id FROM members WHERE org_id = ? AND folded = ?", orgID, folded).Scan(&other)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for a member with the DN: %w", err)
	}
	return ledger.FieldErrorf(ledger.CodeAlreadyExists, "dn",
		"%s is or was the DN of the member %s: a DN is one person's forever", dn, other)
}

// memberFields returns the fields of a member that audit events have.
func memberFields(m member.Member) []ledger.Field {
	return []ledger.Field{
		{Name: "issuer", Value: m.Issuer},
		{Name: "subject", Value: m.Subject},
		{Name: "dn", Value: m.DN},
		{Name: "role", Value: m.Role},
		{Name: "by_rule", Value: m.ByRule},
		{Name: "removed", Value: m.RemovedAt != 0},
		{Name: "distinct", Value: events.Optional(m.Distinct)},
	}
}

// updateMember updates and logs a member that has changed, and revokes the tokens that permit more
// than the member may do.
func (ac *Access) updateMember(t *txn.Tx, org string, before txn.Keyed[member.Member], after member.Member) error {
	_, err := t.Exec(`
UPDATE members SET name = ?, email = ?, role = ?, by_rule = ?, signed_in_at = ?, removed_at = ? WHERE id = ?`,
		after.Name, after.Email, after.Role, after.ByRule, after.SignedInAt, after.RemovedAt, before.ID)
	if err != nil {
		return fmt.Errorf("update member: %w", err)
	}

	highest := after.Role.Scope()
	if after.RemovedAt != 0 {
		highest = 0
	}
	_, err = t.Exec(`
UPDATE tokens SET revoked_at = ? WHERE member_id = ? AND member_id > 0 AND revoked_at = 0 AND permission > ?
  AND (expires_at = 0 OR expires_at > ?)`,
		t.Now, before.ID, highest, t.Now) // sign-ins that expired may be locked by pruning
	if err != nil {
		return fmt.Errorf("revoke the tokens of the member: %w", err)
	}
	return ac.journal.AuditChange(t, org, events.Audited{
		Action: ledger.AuditMemberChanged, Target: before.Row.ID, Before: memberFields(before.Row),
		After: memberFields(after),
	})
}
