package access

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// ruleRepos is the expression for the names of the repos of a rule x, separated by spaces.
const ruleRepos = `coalesce((SELECT string_agg(p.name, ' ' ORDER BY p.id) FROM exchange_rule_repos b
    JOIN repos p ON p.id = b.repo_id AND p.org_id = x.org_id WHERE b.rule_id = x.id), '')`

const selectRule = `
SELECT x.id, x.rule_id, o.name, x.rule, x.created_at, ` + ruleRepos + `
FROM exchange_rules x JOIN orgs o ON o.id = x.org_id `

func scanRule(row txn.Scanner) (txn.Keyed[exchange.Rule], error) {
	var r txn.Keyed[exchange.Rule]
	var rule, repos string
	if err := row.Scan(&r.ID, &r.Row.ID, &r.Row.Org, &rule, &r.Row.CreatedAt, &repos); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(rule), &r.Row.NewRule); err != nil {
		return r, fmt.Errorf("parse the rule %s: %w", r.Row.ID, err)
	}
	r.Row.Repos = strings.Fields(repos)
	r.Row.Warnings = r.Row.Warned()
	return r, nil
}

// CreateRule creates a rule, which is completed, for an issuer of the org. It returns
// CodeLimitReached if the org has too many.
func (ac *Access) CreateRule(ctx context.Context, org string, n exchange.NewRule) (exchange.Rule, error) {
	return txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (exchange.Rule, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return exchange.Rule{}, err
		}
		issuer, err := issuerByURL(t.Reader, org, n.Issuer)
		if txn.IsCode(err, ledger.CodeNotFound) {
			err = ledger.FieldErrorf(ledger.CodeInvalidField, "issuer", "org %s has no such issuer: add it first", org)
		}
		if err != nil {
			return exchange.Rule{}, err
		}
		if err := checkRules(t, orgID, issuer.ID, org, n); err != nil {
			return exchange.Rule{}, err
		}

		id, err := insertRule(t, orgID, issuer.ID, org, n)
		if err != nil {
			return exchange.Rule{}, err
		}
		r, err := scanRule(t.Row(selectRule+"WHERE x.id = ?", id))
		if err != nil {
			return r.Row, fmt.Errorf("read rule: %w", err)
		}
		return r.Row, ac.journal.Audit(t, orgID, org, events.Audited{
			Action: ledger.AuditExchangeRuleCreated, Target: r.Row.ID, After: ruleFields(r.Row),
		})
	})
}

// checkRules returns CodeLimitReached if an org has too many rules, in total or for the repository of
// this one.
func checkRules(t *txn.Tx, orgID, issuer int64, org string, n exchange.NewRule) error {
	var ofOrg, ofSubject int
	err := t.Row("SELECT count(*) FROM exchange_rules WHERE org_id = ? AND removed_at = 0", orgID).Scan(&ofOrg)
	if err == nil {
		err = t.Row("SELECT count(*) FROM exchange_rules WHERE issuer_id = ? AND subject = ? AND removed_at = 0",
			issuer, n.Subject()).Scan(&ofSubject)
	}
	switch {
	case err != nil:
		return fmt.Errorf("count rules: %w", err)
	case ofOrg >= exchange.MaxRules:
		return ledger.Errorf(ledger.CodeLimitReached, "org %s already has %d exchange rules, the maximum", org, ofOrg)
	case ofSubject >= exchange.MaxMatched:
		return ledger.Errorf(ledger.CodeLimitReached,
			"org %s already has %d exchange rules for the repository %s, the maximum", org, ofSubject, n.Subject())
	}
	return nil
}

func insertRule(t *txn.Tx, orgID, issuer int64, org string, n exchange.NewRule) (int64, error) {
	ruleID, err := t.NewID(orgID, txn.RulePrefix)
	if err != nil {
		return 0, err
	}
	repos := make(map[int64]bool)
	for _, name := range n.Repos {
		r, err := t.WritableRepo(org, name)
		if err != nil {
			return 0, err
		}
		repos[r.ID] = true
	}

	n.Repos = nil
	rule, err := json.Marshal(n)
	if err != nil {
		return 0, fmt.Errorf("encode rule: %w", err)
	}
	id, err := t.Insert(`
INSERT INTO exchange_rules (rule_id, org_id, issuer_id, subject, dn, rule, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		ruleID, orgID, issuer, n.Subject(), n.DN, string(rule), t.Now)
	if err != nil {
		return 0, fmt.Errorf("insert rule: %w", err)
	}
	for repo := range repos {
		if _, err := t.Exec("INSERT INTO exchange_rule_repos (rule_id, repo_id) VALUES (?, ?)", id, repo); err != nil {
			return 0, fmt.Errorf("insert the repos of the rule: %w", err)
		}
	}
	return id, nil
}

// ruleFields returns the fields of a rule that audit events have.
func ruleFields(r exchange.Rule) []ledger.Field {
	return []ledger.Field{
		{Name: "name", Value: r.Name},
		{Name: "issuer", Value: r.Issuer},
		{Name: "repository_id", Value: events.Optional(r.RepositoryID)},
		{Name: "project_id", Value: events.Optional(r.ProjectID)},
		{Name: "events", Value: r.Events},
		{Name: "refs", Value: events.OptionalList(r.Refs)},
		{Name: "workflows", Value: events.OptionalList(r.Workflows)},
		{Name: "where", Value: events.Optional(r.Where)},
		{Name: "scope", Value: r.Scope},
		{Name: "repos", Value: r.Repos},
		{Name: "dn", Value: events.Optional(r.DN)},
		{Name: "lifetime", Value: r.Lifetime},
	}
}

// Rules lists the exchange rules of an org, oldest first.
func (ac *Access) Rules(ctx context.Context, org string, q txn.Query) (ledger.Page[exchange.Rule], error) {
	return txn.ListOf(ctx, ac.db, org, "exchange rules", q, scanRule,
		selectRule+"WHERE x.org_id = ? AND x.removed_at = 0 AND x.id > ? ORDER BY x.id LIMIT ?")
}

// RulesFor returns the exchange rules of an issuer for a repository or project, oldest first.
func (ac *Access) RulesFor(ctx context.Context, issuer exchange.Issuer, subject string) ([]exchange.Rule, error) {
	return txn.ReadLoose(ctx, ac.db, txn.ForCheck(), func(rd txn.Reader) ([]exchange.Rule, error) {
		return txn.All(rd, func(row txn.Scanner) (exchange.Rule, error) {
			r, err := scanRule(row)
			return r.Row, err
		}, selectRule+`
JOIN issuers i ON i.id = x.issuer_id
WHERE i.issuer_id = ? AND x.subject = ? AND x.removed_at = 0 ORDER BY x.id LIMIT ?`, issuer.ID, subject,
			exchange.MaxMatched)
	})
}

// RemoveRule removes an exchange rule, and revokes its API tokens that are still valid.
func (ac *Access) RemoveRule(ctx context.Context, org, id string) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		r, err := scanRule(t.Row(selectRule+"WHERE o.name = ? AND x.rule_id = ? AND x.removed_at = 0", org, id))
		if err != nil {
			return txn.Missing(err, "exchange rule %s not found", id)
		}
		return ac.removeRule(t, org, r)
	})
}

func (ac *Access) removeRule(t *txn.Tx, org string, r txn.Keyed[exchange.Rule]) error {
	_, err := t.Exec("UPDATE exchange_rules SET removed_at = ? WHERE id = ?", t.Now, r.ID)
	if err == nil {
		_, err = t.Exec(`
UPDATE tokens SET revoked_at = ? WHERE rule_id = ? AND rule_id > 0 AND revoked_at = 0 AND expires_at > ?`,
			t.Now, r.ID, t.Now) // those that expired may be locked by pruning
	}
	if err != nil {
		return fmt.Errorf("remove rule: %w", err)
	}
	return ac.journal.AuditIn(t, org, events.Audited{
		Action: ledger.AuditExchangeRuleRemoved, Target: r.Row.ID, Before: ruleFields(r.Row),
	})
}

// RemoveIssuer removes an issuer with its rules. The API tokens of these are revoked.
func (ac *Access) RemoveIssuer(ctx context.Context, org, id string) error {
	return ac.db.Change(ctx, org, func(t *txn.Tx) error {
		i, err := scanIssuer(t.Row(selectIssuer+"WHERE o.name = ? AND i.issuer_id = ? AND i.removed_at = 0", org, id))
		if err != nil {
			return txn.Missing(err, "issuer %s not found", id)
		}
		rules, err := txn.All(t.Reader, scanRule, selectRule+"WHERE x.issuer_id = ? AND x.removed_at = 0 ORDER BY x.id", i.ID)
		if err != nil {
			return fmt.Errorf("read the rules of the issuer: %w", err)
		}

		for _, rule := range rules {
			if err := ac.removeRule(t, org, rule); err != nil {
				return err
			}
		}
		if _, err := t.Exec("UPDATE issuers SET removed_at = ? WHERE id = ?", t.Now, i.ID); err != nil {
			return fmt.Errorf("remove issuer: %w", err)
		}
		return ac.journal.AuditIn(t, org, events.Audited{
			Action: ledger.AuditIssuerRemoved, Target: id, Before: issuerFields(i.Row),
		})
	})
}
