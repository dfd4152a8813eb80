package orgs

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/settings"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// CreateOrg creates an org. It returns CodeAlreadyExists if the name is taken.
func (or *Registry) CreateOrg(ctx context.Context, name string) (ledger.Org, error) {
	if err := ledger.CheckOrg(name); err != nil {
		return ledger.Org{}, err
	}
	return txn.Write(ctx, or.db, sqldb.Write{Org: name}, func(t *txn.Tx) (ledger.Org, error) {
		id, err := t.Insert("INSERT INTO orgs (name, created_at) VALUES (?, ?)", name, t.Now)
		if sqldb.ClassOf(err) == sqldb.Duplicate {
			err = ledger.Errorf(ledger.CodeAlreadyExists, "org %s already exists", name)
		}
		if err != nil {
			return ledger.Org{}, err
		}
		if _, err := events.BeginLog(t, id, 1, 0); err != nil {
			return ledger.Org{}, err
		}
		o := ledger.Org{Name: name, CreatedAt: t.Now}
		return o, or.journal.Audit(t, id, name, events.Audited{
			Action: ledger.AuditOrgCreated, Target: name,
			After: append(orgFields(o), ledger.Field{Name: settings.VersionField, Value: fieldsVersion}),
		})
	})
}

func scanOrg(row txn.Scanner) (txn.Keyed[ledger.Org], error) {
	var o txn.Keyed[ledger.Org]
	var former string
	err := row.Scan(&o.ID, &o.Row.Name, &o.Row.CreatedAt, &o.Row.LogPublic, &o.Row.ArchivedAt, &o.Row.DeletedAt,
		&o.Row.PurgedAt, &former)
	if err == nil {
		o.Row.FormerNames, err = formerNames(former)
	}
	return o, err
}

const selectOrg = `
SELECT id, name, created_at, log_public, archived_at, deleted_at, purged_at,
  coalesce((SELECT string_agg(f.name || ':' || f.until_seq, ' ' ORDER BY f.until_seq) FROM former_names f
    WHERE f.org_id = orgs.id AND f.repo_id = 0), '')
FROM orgs `

// Org returns an org by name.
func (or *Registry) Org(ctx context.Context, name string) (ledger.Org, error) {
	return txn.Read(ctx, or.db, txn.ByOrg(name), func(rd txn.Reader) (ledger.Org, error) {
		o, err := scanOrg(rd.Row(selectOrg+"WHERE name = ?", name))
		return o.Row, txn.Missing(err, "org %s not found", name)
	})
}

// Orgs lists the orgs that are not deleted, oldest first.
func (or *Registry) Orgs(ctx context.Context, q txn.Query) (ledger.Page[ledger.Org], error) {
	return or.orgs(ctx, q, "WHERE id > ? AND deleted_at = 0 ORDER BY id LIMIT ?")
}

// DeletedOrgs lists the deleted orgs, oldest first.
func (or *Registry) DeletedOrgs(ctx context.Context, q txn.Query) (ledger.Page[ledger.Org], error) {
	return or.orgs(ctx, q, "WHERE id > ? AND deleted_at > 0 ORDER BY id LIMIT ?")
}

// orgs lists the orgs that a condition selects, whose parameters are the id after which the page
// starts, and the number of rows.
func (or *Registry) orgs(ctx context.Context, q txn.Query, where string) (ledger.Page[ledger.Org], error) {
	return txn.Read(ctx, or.db, txn.ByOrg(""), func(rd txn.Reader) (list ledger.Page[ledger.Org], err error) {
		l := rd.Listing("orgs", 0)
		after, err := l.After(q, 0)
		if err != nil {
			return list, err
		}
		p, err := txn.ReadPage(rd.Conn, scanOrg, q.Limit, selectOrg+where, after)
		return p.Page(l), err
	})
}

// formerNames parses the former names of a row: the names, each with a colon and the number of
// events, separated by spaces.
func formerNames(text string) (list []ledger.FormerName, err error) {
	for _, field := range strings.Fields(text) {
		name, events, _ := strings.Cut(field, ":")
		n, err := strconv.ParseInt(events, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parse former names: %w", err)
		}
		list = append(list, ledger.FormerName{Name: name, Events: n})
	}
	return list, nil
}
