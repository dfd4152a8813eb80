package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/settings"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// SettingsStart is the place before the first row of an org. See [Store.Settings].
const SettingsStart = "repo:0"

// Settings reads the next rows of who has access to an org, and of its settings, with the fields that audit events
// have. A row may come with others that belong to it, so that there are more than limit. next is the place after
// them; "" is the end. Revoked, removed and deleted ones are left out, except repos, members and the org.
func (s *Store) Settings(
	c *sqldb.Conn, orgID int64, place string, limit int,
) (rows []settings.Row, next string, err error) {
	return reader{Reader: s.db.NewReader(c), s: s, caches: s.caches}.settings(orgID, place, limit)
}

func (rd reader) settings(orgID int64, place string, limit int) (rows []settings.Row, next string, err error) {
	kind, id, _ := strings.Cut(place, ":")
	after, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil, "", fmt.Errorf("read the place %q: %w", place, err)
	}

	p := settingsPage{reader: rd, orgID: orgID, after: after, limit: limit}
	sources := settingsSources()
	for i, source := range sources {
		if source.kind != kind {
			continue
		}
		if err := source.read(&p); err != nil {
			return nil, "", fmt.Errorf("read rows of the kind %s: %w", kind, err)
		}
		switch {
		case p.count == limit:
			next = kind + ":" + strconv.FormatInt(p.after, 10)
		case i+1 < len(sources):
			next = sources[i+1].kind + ":0"
		}
	}
	return p.rows, next, nil
}

// A settingsSource reads the rows of a kind.
type settingsSource struct {
	kind string
	read func(*settingsPage) error
}

// settingsSources lists the sources in the order in which they are read: members before their tokens, and the org
// last.
func settingsSources() []settingsSource {
	return []settingsSource{
		{settings.Repo, (*settingsPage).repos},
		{"issuer", func(p *settingsPage) error {
			return readSettings(p, "issuer", scanIssuer, selectIssuer+"WHERE i.org_id = ? AND i.removed_at = 0 AND i.id > ? "+
				"ORDER BY i.id LIMIT ?", func(i exchange.Issuer) (string, []ledger.Field) { return i.ID, issuerFields(i) })
		}},
		{"exchange_rule", (*settingsPage).rules},
		{settings.Member, func(p *settingsPage) error {
			return readSettings(p, settings.Member, scanMember, selectMember+"WHERE m.org_id = ? AND m.id > ? ORDER BY m.id "+
				"LIMIT ?", func(m member.Member) (string, []ledger.Field) { return m.ID, memberFields(m) })
		}},
		{"member_rule", func(p *settingsPage) error {
			return readSettings(p, "member_rule", scanMemberRule, selectMemberRule+"WHERE r.org_id = ? AND r.removed_at = 0 "+
				"AND r.id > ? ORDER BY r.id LIMIT ?",
				func(r member.Rule) (string, []ledger.Field) { return r.ID, memberRuleFields(r) })
		}},
		{"passkey", func(p *settingsPage) error {
			return readSettings(p, "passkey", scanPasskey, selectPasskey+"WHERE p.org_id = ? AND p.removed_at = 0 AND p.id > ? "+
				"ORDER BY p.id LIMIT ?", func(k passkey.Passkey) (string, []ledger.Field) { return k.ID, passkeyFields(k) })
		}},
		{settings.Token, (*settingsPage).tokens},
		{settings.Org, (*settingsPage).org},
	}
}

// A settingsPage is what is read at once.
type settingsPage struct {
	reader
	orgID int64
	after int64 // the row id of the last row
	limit int
	count int // of rows, without those that belong to others
	rows  []settings.Row
}

// readSettings reads rows. The query's parameters are the row id of the org, the one after which the page starts,
// and the number of rows.
func readSettings[T any](
	p *settingsPage, kind string, scan func(txn.Scanner) (txn.Keyed[T], error), query string,
	fields func(T) (target string, fields []ledger.Field),
) error {
	list, err := all(p.reader, scan, query, p.orgID, p.after, p.limit)
	for _, row := range list {
		target, fields := fields(row.Row)
		p.add(row.ID, settings.Row{Kind: kind, Target: target, Fields: fields})
	}
	return err
}

// add adds a row with a row id.
func (p *settingsPage) add(id int64, row settings.Row) {
	p.rows, p.after, p.count = append(p.rows, row), id, p.count+1
}

// repos reads repos with their webhooks.
func (p *settingsPage) repos() error {
	list, err := all(p.reader, scanRepo, selectRepo+"WHERE r.org_id = ? AND r.id > ? ORDER BY r.id LIMIT ?", p.orgID,
		p.after, p.limit)
	if err != nil {
		return err
	}
	ids := make([]any, len(list))
	for i, r := range list {
		ids[i] = r.ID
		p.add(r.ID, settings.Row{
			Kind: settings.Repo, Target: r.Row.Name, Repo: r.Row.Name,
			Fields: append(repoFields(r.Row), endFields(r.Row.ArchivedAt, r.Row.DeletedAt, r.Row.PurgedAt)...),
		})
	}
	return p.webhooks(ids)
}

// endFields returns the fields of an org or a repo that its life cycle changes.
func endFields(archived, deleted, purged ledger.Time) []ledger.Field {
	return append(lifecycleFields("", archived, deleted)[1:], purgeFields(purged)...)
}

// webhooks reads the webhooks of repos.
func (p *settingsPage) webhooks(repos []any) error {
	rows, err := p.s.Outbox.WebhookSettings(p.Reader, repos)
	p.rows = append(p.rows, rows...)
	return err
}

// rules reads exchange rules. What is in several columns must be the same in all.
func (p *settingsPage) rules() error {
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
WHERE x.org_id = ? AND x.removed_at = 0 AND x.id > ? ORDER BY x.id LIMIT ?`, p.orgID, p.after, p.limit)
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

// tokens reads tokens with their sessions.
func (p *settingsPage) tokens() error {
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
		p.add(t.ID, settings.Row{Kind: kind, Target: t.Row.ID, Fields: fields})
		return nil
	}, selectToken+"WHERE t.org_id = ? AND t.revoked_at = 0 AND t.id > ? ORDER BY t.id LIMIT ?", p.orgID, p.after, p.limit)
	if err != nil {
		return err
	}

	return p.EachIn(func(row txn.Scanner) error {
		var id int64
		var hash []byte
		var expires ledger.Time
		err := row.Scan(&id, &hash, &expires)
		p.rows = append(p.rows, settings.Row{
			Kind: settings.Session, Target: byID[id].ID, Fields: sessionFields(byID[id], expires, hash),
		})
		return err
	}, "SELECT token_id, hash, expires_at FROM sessions WHERE token_id IN ", 1, ids)
}

// org reads the org.
func (p *settingsPage) org() error {
	o, err := scanOrg(p.Row(selectOrg+"WHERE id = ?", p.orgID))
	if err != nil {
		return err
	}
	providers, err := all(p.reader, txn.ScanText,
		"SELECT issuer FROM provider_orgs WHERE org_id = ? ORDER BY issuer", p.orgID)
	fields := append(orgFields(o.Row), endFields(o.Row.ArchivedAt, o.Row.DeletedAt, o.Row.PurgedAt)...)
	p.rows = append(p.rows, settings.Row{
		Kind: settings.Org, Target: o.Row.Name,
		Fields: append(fields, ledger.Field{Name: "providers", Value: events.OptionalList(providers)}),
	})
	return err
}

// logSettingsBatch is the number of rows that one write logs, without those that belong to them.
const logSettingsBatch = 50

// logSettings logs the access to orgs and their settings from before a release that compares them with their
// audit events. The event about the org comes last, and has the version of the fields.
func (s *Store) logSettings(ctx context.Context) error {
	orgs, err := readLoose(ctx, s, txn.ForWrite(""), func(rd reader) ([]int64, error) {
		return all(rd, txn.ScanID, "SELECT id FROM orgs WHERE unlogged_settings <> '' ORDER BY id")
	})
	if err != nil {
		return fmt.Errorf("read the orgs: %w", err)
	}
	for _, orgID := range orgs {
		err := s.repeatAs(ctx, sqldb.Write{Yields: true, Owners: []int64{orgID}}, func(t *tx) (last bool, err error) {
			return t.logSettings(orgID)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// logSettings logs the next rows of an org.
func (t *tx) logSettings(orgID int64) (last bool, err error) {
	var org, place string
	err = t.Row("SELECT name, unlogged_settings FROM orgs WHERE id = ?", orgID).Scan(&org, &place)
	if err != nil || place == "" { // another process has logged them
		return true, err
	}

	rows, next, err := t.settings(orgID, place, logSettingsBatch)
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if row.IsPast(t.Now) {
			continue
		}
		fields := append([]ledger.Field{{Name: settings.KindField, Value: row.Kind}}, row.Fields...)
		if row.Kind == settings.Org {
			fields = append(fields, ledger.Field{Name: settings.VersionField, Value: fieldsVersion})
		}
		a := events.Audited{Action: ledger.AuditDatabaseBaseline, Repo: row.Repo, Target: row.Target, After: fields}
		if err := t.s.Journal.Audit(t.kernel, orgID, org, a); err != nil {
			return false, err
		}
	}
	_, err = t.Exec("UPDATE orgs SET unlogged_settings = ? WHERE id = ?", next, orgID)
	return next == "", err
}
