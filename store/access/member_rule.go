package access

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

const selectMemberRule = `
SELECT r.id, r.rule_id, o.name, r.issuer, r.claim, r.value, r.role, r.dn, r.created_at
FROM member_rules r JOIN orgs o ON o.id = r.org_id `

func scanMemberRule(row txn.Scanner) (txn.Keyed[member.Rule], error) {
	var k txn.Keyed[member.Rule]
	r := &k.Row
	err := row.Scan(&k.ID, &r.ID, &r.Org, &r.Issuer, &r.Claim, &r.Value, &r.Role, &r.DN, &r.CreatedAt)
	if member.IsProtocolClaim(r.Claim) {
		r.Ineffective = r.Claim + " says nothing about who the person is"
	}
	return k, err
}

func scanMemberRuleRow(row txn.Scanner) (member.Rule, error) {
	r, err := scanMemberRule(row)
	return r.Row, err
}

// MemberRules lists the rules by which people become members of an org, oldest first.
func (ac *Access) MemberRules(ctx context.Context, org string, q txn.Query) (ledger.Page[member.Rule], error) {
	return txn.ListOf(ctx, ac.db, org, "member rules", q, scanMemberRule,
		selectMemberRule+"WHERE r.org_id = ? AND r.removed_at = 0 AND r.id > ? ORDER BY r.id LIMIT ?")
}

// CreateMemberRule creates a rule, which is valid. It returns CodeInvalidField if the org may not use the
// provider, and CodeLimitReached if it has too many rules.
func (ac *Access) CreateMemberRule(ctx context.Context, org string, n member.NewRule) (member.Rule, error) {
	return txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (member.Rule, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return member.Rule{}, err
		}
		if err := checkProvider(t.Reader, ac.providers, orgID, org, n.Issuer); err != nil {
			return member.Rule{}, err
		}
		var count int
		err = t.Row("SELECT count(*) FROM member_rules WHERE org_id = ? AND removed_at = 0", orgID).Scan(&count)
		if err != nil {
			return member.Rule{}, fmt.Errorf("count the rules of members: %w", err)
		}
		if count >= member.MaxRules {
			return member.Rule{}, ledger.Errorf(ledger.CodeLimitReached, "org %s already has %d member rules, the maximum",
				org, count)
		}

		r, err := insertMemberRule(t, orgID, n)
		if err != nil {
			return r, err
		}
		return r, ac.journal.Audit(t, orgID, org, events.Audited{
			Action: ledger.AuditMemberRuleCreated, Target: r.ID, After: memberRuleFields(r),
		})
	})
}

func insertMemberRule(t *txn.Tx, orgID int64, n member.NewRule) (member.Rule, error) {
	ruleID, err := t.NewID(orgID, txn.MemberRulePrefix)
	if err != nil {
		return member.Rule{}, err
	}
	id, err := t.Insert(`
INSERT INTO member_rules (rule_id, org_id, issuer, claim, value, role, dn, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		ruleID, orgID, n.Issuer, n.Claim, n.Value, n.Role, n.DN, t.Now)
	if err != nil {
		return member.Rule{}, fmt.Errorf("insert the rule of members: %w", err)
	}
	r, err := scanMemberRuleRow(t.Row(selectMemberRule+"WHERE r.id = ?", id))
	if err != nil {
		return r, fmt.Errorf("read the rule of members: %w", err)
	}
	return r, nil
}

// memberRuleFields returns the fields of a rule that audit events have.
func memberRuleFields(r member.Rule) []ledger.Field {
	return []ledger.Field{
		{Name: "issuer", Value: r.Issuer},
		{Name: "claim", Value: r.Claim},
		{Name: "value", Value: r.Value},
		{Name: "role", Value: r.Role},
		{Name: "dn", Value: r.DN},
	}
}

// RemoveMemberRule removes a rule. The members that it has admitted stay until they next sign in.
func (ac *Access) RemoveMemberRule(ctx context.Context, org, id string) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		r, err := scanMemberRule(t.Row(selectMemberRule+"WHERE o.name = ? AND r.rule_id = ? AND r.removed_at = 0", org, id))
		if err != nil {
			return txn.Missing(err, "member rule %s not found", id)
		}
		if _, err := t.Exec("UPDATE member_rules SET removed_at = ? WHERE id = ?", t.Now, r.ID); err != nil {
			return fmt.Errorf("remove the rule of members: %w", err)
		}
		return ac.journal.AuditIn(t, org, events.Audited{
			Action: ledger.AuditMemberRuleRemoved, Target: id, Before: memberRuleFields(r.Row),
		})
	})
}
