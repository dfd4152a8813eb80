package access

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/settings"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A SettingsSource reads the rows of a kind.
type SettingsSource struct {
	Kind string
	Read func(*SettingsPage) error
}

// A SettingsPage is what is read at once of who has access to an org, and of its settings, with the fields that audit
// events have.
type SettingsPage struct {
	txn.Reader
	OrgID int64
	After int64 // the row id of the last row
	Limit int
	Count int // of rows, without those that belong to others
	Rows  []settings.Row
}

// readSettings reads rows. The query's parameters are the row id of the org, the one after which the page starts,
// and the number of rows.
func readSettings[T any](
	p *SettingsPage, kind string, scan func(txn.Scanner) (txn.Keyed[T], error), query string,
	fields func(T) (target string, fields []ledger.Field),
) error {
	list, err := txn.All(p.Reader, scan, query, p.OrgID, p.After, p.Limit)
	for _, row := range list {
		target, fields := fields(row.Row)
		p.Add(row.ID, settings.Row{Kind: kind, Target: target, Fields: fields})
	}
	return err
}

// Add adds a row with a row id.
func (p *SettingsPage) Add(id int64, row settings.Row) {
	p.Rows, p.After, p.Count = append(p.Rows, row), id, p.Count+1
}

// SettingsSources lists the sources of who has access, in the order in which they are read: members before their
// tokens.
func SettingsSources() []SettingsSource {
	return []SettingsSource{
		{"issuer", func(p *SettingsPage) error {
			return readSettings(p, "issuer", scanIssuer, selectIssuer+"WHERE i.org_id = ? AND i.removed_at = 0 AND i.id > ? "+
				"ORDER BY i.id LIMIT ?", func(i exchange.Issuer) (string, []ledger.Field) { return i.ID, issuerFields(i) })
		}},
		{"exchange_rule", ruleSettings},
		{settings.Member, func(p *SettingsPage) error {
			return readSettings(p, settings.Member, scanMember, selectMember+"WHERE m.org_id = ? AND m.id > ? ORDER BY m.id "+
				"LIMIT ?", func(m member.Member) (string, []ledger.Field) { return m.ID, memberFields(m) })
		}},
		{"member_rule", func(p *SettingsPage) error {
			return readSettings(p, "member_rule", scanMemberRule, selectMemberRule+"WHERE r.org_id = ? AND r.removed_at = 0 "+
				"AND r.id > ? ORDER BY r.id LIMIT ?",
				func(r member.Rule) (string, []ledger.Field) { return r.ID, memberRuleFields(r) })
		}},
		{"passkey", func(p *SettingsPage) error {
			return readSettings(p, "passkey", scanPasskey, selectPasskey+"WHERE p.org_id = ? AND p.removed_at = 0 AND p.id > ? "+
				"ORDER BY p.id LIMIT ?", func(k passkey.Passkey) (string, []ledger.Field) { return k.ID, passkeyFields(k) })
		}},
		{settings.Token, tokenSettings},
	}
}

// ruleSettings reads exchange rules. What is in several columns must be the same in all.
func ruleSettings(p *SettingsPage) error {
	type found struct{ subject, dn, issuer string }
	columns := make(map[string]found)
	err := p.Each(func(row txn.Scanner) error {
		var id string
		var f found
		err := row.Scan(&id, &f.subject, &f.dn, &f.issuer)
		columns[id] = f
		return err
	}, `
SELECT x.rule_id, x.subject, x.dn, i.url FROM exchange_rules x JOIN issuers i ON i.id = x.issuer_id
WHERE x.org_id = ? AND x.removed_at = 0 AND x.id > ? ORDER BY x.id LIMIT ?`, p.OrgID, p.After, p.Limit)
	if err != nil {
		return err
	}

	return readSettings(p, "exchange_rule", scanRule, selectRule+"WHERE x.org_id = ? AND x.removed_at = 0 AND x.id > ? "+
		"ORDER BY x.id LIMIT ?", func(r exchange.Rule) (string, []ledger.Field) {
		f, subject := columns[r.ID], &r.RepositoryID
		if r.ProjectID != "" {
			subject = &r.ProjectID
		}
		*subject, r.DN, r.Issuer = both(*subject, f.subject), both(r.DN, f.dn), both(r.Issuer, f.issuer)
		return r.ID, ruleFields(r)
	})
}

// both returns a value that is in two columns, or a text that no column has.
func both(a, b string) string {
	if a == b {
		return a
	}
	return a + " and " + b
}

// tokenSettings reads tokens with their sessions.
func tokenSettings(p *SettingsPage) error {
	ids, byID := []any{}, make(map[int64]ledger.Token)
	err := p.Each(func(row txn.Scanner) error {
		t, hash, err := scanHashedToken(row)
		if err != nil {
			return err
		}
		ids, byID[t.ID] = append(ids, t.ID), t.Row
		// Only tokens of CI jobs have a rule, and only sign-ins the time of an authentication.
		kind, fields := settings.Token, append(grantFields(t.Row, hash),
			ledger.Field{Name: "auth_time", Value: events.Optional(t.Row.AuthTime)})
		if t.Row.IsSignIn {
			kind, fields = settings.Session, append(signInFields(t.Row, hash),
				ledger.Field{Name: "rule", Value: events.Optional(t.Row.Rule)})
		}
		p.Add(t.ID, settings.Row{Kind: kind, Target: t.Row.ID, Fields: fields})
		return nil
	}, selectToken+"WHERE t.org_id = ? AND t.revoked_at = 0 AND t.id > ? ORDER BY t.id LIMIT ?", p.OrgID, p.After, p.Limit)
	if err != nil {
		return err
	}

	return p.EachIn(func(row txn.Scanner) error {
		var id int64
		var hash []byte
		var expires ledger.Time
		err := row.Scan(&id, &hash, &expires)
		p.Rows = append(p.Rows, settings.Row{
			Kind: settings.Session, Target: byID[id].ID, Fields: sessionFields(byID[id], expires, hash),
		})
		return err
	}, "SELECT token_id, hash, expires_at FROM sessions WHERE token_id IN ", 1, ids)
}
