package orgs

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// ChangeRepo sets the fields of a repo that are not nil in c. An archived repo can only be
// renamed and unarchived, or get another retention, and a deleted one only restored.
func (or *Registry) ChangeRepo(ctx context.Context, org, repo string, c ledger.RepoChange) (ledger.Repo, error) {
	return txn.Write(ctx, or.db, sqldb.Write{Org: org}, func(t *txn.Tx) (ledger.Repo, error) {
		r, err := ScanRepo(t.Row(SelectRepo+"WHERE o.name = ? AND r.name = ?", org, repo))
		if err != nil {
			return ledger.Repo{}, t.MissingRepo(err, org, repo)
		}
		changed, err := c.Apply(r.Row)
		if err != nil {
			return ledger.Repo{}, err
		}
		if r, err = or.moveRepo(t, r, c); err != nil || c.IsEmpty() {
			return r.Row, err
		}
		row, err := t.FindRepo(org, r.Row.Name)
		if err == nil && (c.WebURL != nil || c.Forge != nil || row.Deleted) {
			err = row.CheckWritable()
		}
		if err != nil {
			return ledger.Repo{}, err
		}
		changed.Name, changed.ArchivedAt, changed.DeletedAt = r.Row.Name, r.Row.ArchivedAt, r.Row.DeletedAt
		changed.FormerNames = r.Row.FormerNames

		keep := changed.Retention
		_, err = t.Exec(`
UPDATE repos SET web_url = ?, forge = ?, keep_envelopes = ?, keep_events = ?, keep_deliveries = ? WHERE id = ?`,
			changed.WebURL, changed.Forge, keep.Envelopes.Std().Milliseconds(), keep.Events.Std().Milliseconds(),
			keep.Deliveries.Std().Milliseconds(), r.ID)
		if err != nil {
			return ledger.Repo{}, fmt.Errorf("update repo: %w", err)
		}
		if keep != r.Row.Retention {
			if err := or.jobs.PruneAll(t, "id = ?", r.ID); err != nil {
				return ledger.Repo{}, err
			}
		}
		return changed, or.journal.AuditChange(t, org, events.Audited{
			Action: ledger.AuditRepoChanged, Repo: changed.Name, Target: changed.Name,
			Before: repoFields(r.Row), After: repoFields(changed),
		})
	})
}

// moveRepo renames, restores, archives or unarchives a repo. It returns the repo as it is then.
func (or *Registry) moveRepo(t *txn.Tx, r txn.Keyed[ledger.Repo], c ledger.RepoChange) (txn.Keyed[ledger.Repo], error) {
	if c.Name != nil && *c.Name != r.Row.Name {
		if err := or.renameRepo(t, r, *c.Name); err != nil {
			return r, err
		}
		var err error
		if r, err = ScanRepo(t.Row(SelectRepo+"WHERE r.id = ?", r.ID)); err != nil {
			return r, fmt.Errorf("read repo: %w", err)
		}
	}
	if c.Archived == nil || *c.Archived == (r.Row.ArchivedAt != 0) {
		return r, nil
	}
	return or.archiveRepo(t, r, *c.Archived)
}

// renameRepo gives a repo another name. A deleted one is restored by that.
func (or *Registry) renameRepo(t *txn.Tx, r txn.Keyed[ledger.Repo], name string) error {
	row, err := t.RepoByID(r.ID)
	if err != nil {
		return err
	}
	if r.Row.PurgedAt != 0 {
		return ledger.Errorf(ledger.CodeArchived, "repo %s/%s was purged: it cannot be restored", r.Row.Org, r.Row.Name)
	}
	if r.Row.DeletedAt == 0 {
		if err := or.keepName(t, row.OrgID, r.ID, r.Row.Name); err != nil {
			return err
		}
	}
	_, err = t.Exec("UPDATE repos SET name = ?, deleted_at = 0 WHERE id = ?", name, r.ID)
	if sqldb.ClassOf(err) == sqldb.Duplicate {
		return ledger.Errorf(ledger.CodeAlreadyExists,
			"repo %s/%s already exists (names are not case-sensitive)", r.Row.Org, name)
	}
	if err != nil {
		return fmt.Errorf("rename repo: %w", err)
	}

	if r.Row.DeletedAt != 0 { // evidence may have expired in the meantime
		if err := or.jobs.Later(t, r.ID, backlog.Settle, 0, ledger.Cause{Type: ledger.CauseExpiry}); err != nil {
			return err
		}
	}
	return or.journal.Audit(t, row.OrgID, row.Org, events.Audited{
		Action: ledger.AuditRepoRenamed, Repo: name, Target: name,
		Before: lifecycleFields(row.Name, 0, r.Row.DeletedAt), After: lifecycleFields(name, 0, 0),
	})
}

// maxFormerNames is the maximum number of names that an org or a repo had.
const maxFormerNames = 100

// keepName notes the name that an org or a repo had up to now. A repoID of 0 is the org. It returns
// CodeLimitReached if it had too many names.
func (or *Registry) keepName(t *txn.Tx, orgID, repoID int64, name string) error {
	var count int
	err := t.Row("SELECT count(*) FROM former_names WHERE org_id = ? AND repo_id = ?", orgID, repoID).Scan(&count)
	if err != nil {
		return fmt.Errorf("count former names: %w", err)
	}
	if count >= maxFormerNames {
		return ledger.Errorf(ledger.CodeLimitReached, "%s was renamed or deleted %d times, the maximum", name, count)
	}

	next, err := or.journal.NextSeq(t, orgID)
	if err != nil {
		return err
	}
	_, err = t.Exec(`
INSERT INTO former_names (org_id, repo_id, until_seq, name) VALUES (?, ?, ?, ?)
ON CONFLICT (org_id, repo_id, until_seq) DO UPDATE SET name = excluded.name`, orgID, repoID, next, name)
	if err != nil {
		return fmt.Errorf("keep the former name: %w", err)
	}
	return nil
}

// archiveRepo archives a repo, or ends that.
func (or *Registry) archiveRepo(t *txn.Tx, r txn.Keyed[ledger.Repo], archived bool) (txn.Keyed[ledger.Repo], error) {
	if r.Row.DeletedAt != 0 {
		return r, ledger.Errorf(ledger.CodeArchived, "repo %s/%s is deleted: restore it first", r.Row.Org, r.Row.Name)
	}
	before, action := r.Row.ArchivedAt, ledger.AuditRepoUnarchived
	r.Row.ArchivedAt = 0
	if archived {
		r.Row.ArchivedAt, action = t.Now, ledger.AuditRepoArchived
	}
	if _, err := t.Exec("UPDATE repos SET archived_at = ? WHERE id = ?", r.Row.ArchivedAt, r.ID); err != nil {
		return r, fmt.Errorf("archive repo: %w", err)
	}
	return r, or.journal.AuditIn(t, r.Row.Org, events.Audited{
		Action: action, Repo: r.Row.Name, Target: r.Row.Name,
		Before: lifecycleFields(r.Row.Name, before, 0), After: lifecycleFields(r.Row.Name, r.Row.ArchivedAt, 0),
	})
}

// DeleteRepo deletes a repo: its name is free, its webhooks get nothing more, and what it has
// recorded stays under the name of [ledger.DeletedName]. It is a no-op if the repo is deleted.
func (or *Registry) DeleteRepo(ctx context.Context, org, repo string) error {
	return or.db.Change(ctx, org, func(t *txn.Tx) error {
		r, err := t.FindRepo(org, repo)
		if err != nil || r.Deleted {
			return err
		}
		if err := or.journal.Audit(t, r.OrgID, r.Org, events.Audited{
			Action: ledger.AuditRepoDeleted, Repo: r.Name, Target: r.Name,
			Before: lifecycleFields(r.Name, 0, 0), After: lifecycleFields(ledger.DeletedName(r.ID), 0, t.Now),
		}); err != nil {
			return err
		}

		if err := or.keepName(t, r.OrgID, r.ID, r.Name); err != nil {
			return err
		}
		_, err = t.Exec("UPDATE repos SET name = ?, deleted_at = ?, webhook_events = 0 WHERE id = ?",
			ledger.DeletedName(r.ID), t.Now, r.ID)
		if err != nil {
			return fmt.Errorf("delete repo: %w", err)
		}
		if err := or.webhooks.Stop(t, "repo_id = ?", r.ID, "the repo was deleted"); err != nil {
			return err
		}
		d, err := or.facts.DeriverByID(t.Reader, r.ID)
		if err != nil {
			return err
		}
		err = or.radar.EndTips(t, d, radarindex.Withdrawn, "t.repo_id = ? AND t.flight < ?", r.ID,
			radarindex.Superseded)
		if err != nil {
			return err
		}
		return or.states.Drain(t, d)
	})
}

// ChangeOrg sets the fields of an org that are not nil in c. An archived org can only be
// renamed and unarchived, and a deleted one only restored.
func (or *Registry) ChangeOrg(ctx context.Context, name string, c ledger.OrgChange) (ledger.Org, error) {
	if err := c.Check(); err != nil {
		return ledger.Org{}, err
	}
	return txn.Write(ctx, or.db, sqldb.Write{Org: name}, func(t *txn.Tx) (ledger.Org, error) {
		o, err := scanOrg(t.Row(selectOrg+"WHERE name = ?", name))
		if err != nil {
			return o.Row, txn.Missing(err, "org %s not found", name)
		}
		if o, err = or.moveOrg(t, o, c); err != nil || c.LogPublic == nil {
			return o.Row, err
		}
		if _, err := t.WritableOrg(o.Row.Name); err != nil {
			return o.Row, err
		}

		name := o.Row.Name
		before := orgFields(o.Row)
		o.Row.LogPublic = *c.LogPublic
		if _, err = t.Exec("UPDATE orgs SET log_public = ? WHERE id = ?", o.Row.LogPublic, o.ID); err != nil {
			return o.Row, fmt.Errorf("update org: %w", err)
		}
		return o.Row, or.journal.AuditChange(t, name, events.Audited{
			Action: ledger.AuditOrgChanged, Target: name, Before: before, After: orgFields(o.Row),
		})
	})
}

// moveOrg renames, restores, archives or unarchives an org. It returns the org as it is then.
func (or *Registry) moveOrg(t *txn.Tx, o txn.Keyed[ledger.Org], c ledger.OrgChange) (txn.Keyed[ledger.Org], error) {
	if c.Name != nil && *c.Name != o.Row.Name {
		if err := or.renameOrg(t, o, *c.Name); err != nil {
			return o, err
		}
		var err error
		if o, err = scanOrg(t.Row(selectOrg+"WHERE id = ?", o.ID)); err != nil {
			return o, fmt.Errorf("read org: %w", err)
		}
	}
	if c.Archived == nil || *c.Archived == (o.Row.ArchivedAt != 0) {
		return o, nil
	}
	return or.archiveOrg(t, o, *c.Archived)
}

// renameOrg gives an org another name. A deleted one is restored by that, without its tokens. One
// whose log is signed keeps its name, which is that of the log and its key.
func (or *Registry) renameOrg(t *txn.Tx, o txn.Keyed[ledger.Org], name string) error {
	before := o.Row.Name
	if o.Row.PurgedAt != 0 {
		return ledger.Errorf(ledger.CodeArchived, "org %s was purged: it cannot be restored", o.Row.Name)
	}
	if o.Row.DeletedAt != 0 {
		before = o.Row.FormerNames[len(o.Row.FormerNames)-1].Name
	}
	var isSigned bool
	err := t.Row("SELECT EXISTS (SELECT 1 FROM logs WHERE org_id = ? AND origin <> '')", o.ID).Scan(&isSigned)
	if err != nil {
		return fmt.Errorf("read the logs of the org: %w", err)
	}
	if isSigned && name != before {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "name",
			"the transparency log of %s is signed under this name, so the org keeps it", before)
	}

	if o.Row.DeletedAt == 0 {
		if err := or.keepName(t, o.ID, 0, before); err != nil {
			return err
		}
	}
	_, err = t.Exec("UPDATE orgs SET name = ?, deleted_at = 0 WHERE id = ?", name, o.ID)
	if sqldb.ClassOf(err) == sqldb.Duplicate {
		return ledger.Errorf(ledger.CodeAlreadyExists, "org %s already exists", name)
	}
	if err != nil {
		return fmt.Errorf("rename org: %w", err)
	}

	if o.Row.DeletedAt != 0 {
		if err := or.jobs.SettleOrg(t, o.ID, ledger.Cause{Type: ledger.CauseExpiry}); err != nil {
			return err
		}
	}
	return or.journal.Audit(t, o.ID, name, events.Audited{
		Action: ledger.AuditOrgRenamed, Target: name,
		Before: lifecycleFields(before, 0, o.Row.DeletedAt), After: lifecycleFields(name, 0, 0),
	})
}

// archiveOrg archives an org, or ends that.
func (or *Registry) archiveOrg(t *txn.Tx, o txn.Keyed[ledger.Org], archived bool) (txn.Keyed[ledger.Org], error) {
	if o.Row.DeletedAt != 0 {
		return o, ledger.Errorf(ledger.CodeArchived, "org %s is deleted: restore it first", o.Row.Name)
	}
	before, action := o.Row.ArchivedAt, ledger.AuditOrgUnarchived
	o.Row.ArchivedAt = 0
	if archived {
		o.Row.ArchivedAt, action = t.Now, ledger.AuditOrgArchived
	}
	if _, err := t.Exec("UPDATE orgs SET archived_at = ? WHERE id = ?", o.Row.ArchivedAt, o.ID); err != nil {
		return o, fmt.Errorf("archive org: %w", err)
	}
	return o, or.journal.Audit(t, o.ID, o.Row.Name, events.Audited{
		Action: action, Target: o.Row.Name,
		Before: lifecycleFields(o.Row.Name, before, 0), After: lifecycleFields(o.Row.Name, o.Row.ArchivedAt, 0),
	})
}

// DeleteOrg deletes an org: its name is free, its members, tokens, issuers and sessions end, its webhooks
// get nothing more, and what it has recorded stays under the name of [ledger.DeletedName]. It is a no-op if
// the org is deleted.
func (or *Registry) DeleteOrg(ctx context.Context, org string) error {
	return or.db.Change(ctx, org, func(t *txn.Tx) error {
		o, err := scanOrg(t.Row(selectOrg+"WHERE name = ?", org))
		if err != nil || o.Row.DeletedAt != 0 {
			return txn.Missing(err, "org %s not found", org)
		}
		if err := or.journal.Audit(t, o.ID, org, events.Audited{
			Action: ledger.AuditOrgDeleted, Target: org,
			Before: lifecycleFields(org, 0, 0), After: lifecycleFields(ledger.DeletedName(o.ID), 0, t.Now),
		}); err != nil {
			return err
		}

		if err := or.keepName(t, o.ID, 0, org); err != nil {
			return err
		}
		for _, change := range []struct {
			query string
			args  []any
		}{
			{"UPDATE orgs SET name = ?, deleted_at = ? WHERE id = ?", []any{ledger.DeletedName(o.ID), t.Now, o.ID}},
			{"UPDATE repos SET webhook_events = 0 WHERE org_id = ?", []any{o.ID}},
		} {
			if _, err := t.Exec(change.query, change.args...); err != nil {
				return fmt.Errorf("delete org: %w", err)
			}
		}
		if err := access.End(t, o.ID); err != nil {
			return err
		}
		return or.webhooks.Stop(t, "repo_id IN (SELECT id FROM repos WHERE org_id = ?)", o.ID, "the org was deleted")
	})
}

// lifecycleFields returns the fields of an org or a repo that its life cycle changes.
func lifecycleFields(name string, archived, deleted ledger.Time) []ledger.Field {
	return []ledger.Field{
		{Name: "name", Value: name},
		{Name: "archived_at", Value: events.Optional(archived)},
		{Name: "deleted_at", Value: events.Optional(deleted)},
	}
}
