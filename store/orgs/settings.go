package orgs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/settings"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// SettingsStart is the place before the first row of an org. See [Store.Settings].
const SettingsStart = "repo:0"

// Settings reads the next rows of who has access to an org, and of its settings, with the fields that audit events
// have. A row may come with others that belong to it, so that there are more than limit. next is the place after
// them; "" is the end. Revoked, removed and deleted ones are left out, except repos, members and the org.
func (or *Registry) Settings(
	c *sqldb.Conn, orgID int64, place string, limit int,
) (rows []settings.Row, next string, err error) {
	return or.settings(or.db.NewReader(c), orgID, place, limit)
}

func (or *Registry) settings(
	rd txn.Reader, orgID int64, place string, limit int,
) (rows []settings.Row, next string, err error) {
	kind, id, _ := strings.Cut(place, ":")
	after, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil, "", fmt.Errorf("read the place %q: %w", place, err)
	}

	p := access.SettingsPage{Reader: rd, OrgID: orgID, After: after, Limit: limit}
	repos := access.SettingsSource{Kind: settings.Repo, Read: or.repoSettings}
	sources := slices.Concat([]access.SettingsSource{repos}, access.SettingsSources(),
		[]access.SettingsSource{{Kind: settings.Org, Read: orgSettings}})
	for i, source := range sources {
		if source.Kind != kind {
			continue
		}
		if err := source.Read(&p); err != nil {
			return nil, "", fmt.Errorf("read rows of the kind %s: %w", kind, err)
		}
		switch {
		case p.Count == limit:
			next = kind + ":" + strconv.FormatInt(p.After, 10)
		case i+1 < len(sources):
			next = sources[i+1].Kind + ":0"
		}
	}
	return p.Rows, next, nil
}

// repoSettings reads repos with their webhooks.
func (or *Registry) repoSettings(p *access.SettingsPage) error {
	list, err := txn.All(p.Reader, ScanRepo, SelectRepo+"WHERE r.org_id = ? AND r.id > ? ORDER BY r.id LIMIT ?", p.OrgID,
		p.After, p.Limit)
	if err != nil {
		return err
	}
	ids := make([]any, len(list))
	for i, r := range list {
		ids[i] = r.ID
		p.Add(r.ID, settings.Row{
			Kind: settings.Repo, Target: r.Row.Name, Repo: r.Row.Name,
			Fields: append(repoFields(r.Row), endFields(r.Row.ArchivedAt, r.Row.DeletedAt, r.Row.PurgedAt)...),
		})
	}
	rows, err := or.webhooks.WebhookSettings(p.Reader, ids)
	p.Rows = append(p.Rows, rows...)
	return err
}

// endFields returns the fields of an org or a repo that its life cycle changes.
func endFields(archived, deleted, purged ledger.Time) []ledger.Field {
	return append(lifecycleFields("", archived, deleted)[1:], purgeFields(purged)...)
}

// orgSettings reads the org.
func orgSettings(p *access.SettingsPage) error {
	o, err := scanOrg(p.Row(selectOrg+"WHERE id = ?", p.OrgID))
	if err != nil {
		return err
	}
	providers, err := txn.All(p.Reader, txn.ScanText,
		"SELECT issuer FROM provider_orgs WHERE org_id = ? ORDER BY issuer", p.OrgID)
	fields := append(orgFields(o.Row), endFields(o.Row.ArchivedAt, o.Row.DeletedAt, o.Row.PurgedAt)...)
	p.Rows = append(p.Rows, settings.Row{
		Kind: settings.Org, Target: o.Row.Name,
		Fields: append(fields, ledger.Field{Name: "providers", Value: events.OptionalList(providers)}),
	})
	return err
}

// logSettingsBatch is the number of rows that one write logs, without those that belong to them.
const logSettingsBatch = 50

// LogSettings logs the access to orgs and their settings from before a release that compares them with their
// audit events. The event about the org comes last, and has the version of the fields.
func (or *Registry) LogSettings(ctx context.Context) error {
	orgs, err := txn.ReadLoose(ctx, or.db, txn.ForWrite(""), func(rd txn.Reader) ([]int64, error) {
		return txn.All(rd, txn.ScanID, "SELECT id FROM orgs WHERE unlogged_settings <> '' ORDER BY id")
	})
	if err != nil {
		return fmt.Errorf("read the orgs: %w", err)
	}
	for _, orgID := range orgs {
		err := or.db.Repeat(ctx, sqldb.Write{Yields: true, Owners: []int64{orgID}}, func(t *txn.Tx) (last bool, err error) {
			return or.logSettings(t, orgID)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// logSettings logs the next rows of an org.
func (or *Registry) logSettings(t *txn.Tx, orgID int64) (last bool, err error) {
	var org, place string
	err = t.Row("SELECT name, unlogged_settings FROM orgs WHERE id = ?", orgID).Scan(&org, &place)
	if err != nil || place == "" { // another process has logged them
		return true, err
	}

	rows, next, err := or.settings(t.Reader, orgID, place, logSettingsBatch)
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
		if err := or.journal.Audit(t, orgID, org, a); err != nil {
			return false, err
		}
	}
	_, err = t.Exec("UPDATE orgs SET unlogged_settings = ? WHERE id = ?", next, orgID)
	return next == "", err
}
