package orgs

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
	"github.com/ledgerd/ledgerd/store/webhooks"
)

// PurgeRepo makes the deletion of a repo final: it cannot be restored, and its webhooks, envelopes
// and bodies of events are deleted in the background. Its records, their
// digests and the leaves in the log stay. It is a no-op if the repo was purged, and returns
// CodeNotDeleted unless the repo is deleted.
func (or *Registry) PurgeRepo(ctx context.Context, org, repo string) error {
	return or.db.Change(ctx, org, func(t *txn.Tx) error {
		r, err := ScanRepo(t.Row(SelectRepo+"WHERE o.name = ? AND r.name = ?", org, repo))
		if err != nil {
			return t.MissingRepo(err, org, repo)
		}
		if r.Row.DeletedAt == 0 {
			return ledger.Errorf(ledger.CodeNotDeleted, "repo %s/%s is not deleted: delete it first", org, r.Row.Name)
		}
		if r.Row.PurgedAt != 0 {
			return nil
		}

		if err := or.purgeRepos(t, "id = ?", r.ID); err != nil {
			return err
		}
		return or.journal.AuditIn(t, org, events.Audited{
			Action: ledger.AuditRepoPurged, Repo: r.Row.Name, Target: r.Row.Name,
			Before: purgeFields(0), After: purgeFields(t.Now),
		})
	})
}

// PurgeOrg is PurgeRepo for a deleted org, with all its repos.
func (or *Registry) PurgeOrg(ctx context.Context, org string) error {
	return or.db.Change(ctx, org, func(t *txn.Tx) error {
		o, err := scanOrg(t.Row(selectOrg+"WHERE name = ?", org))
		if err != nil {
			return txn.Missing(err, "org %s not found", org)
		}
		if o.Row.DeletedAt == 0 {
			return ledger.Errorf(ledger.CodeNotDeleted, "org %s is not deleted: delete it first", org)
		}
		if o.Row.PurgedAt != 0 {
			return nil
		}

		if _, err := t.Exec("UPDATE orgs SET purged_at = ? WHERE id = ?", t.Now, o.ID); err != nil {
			return fmt.Errorf("purge org: %w", err)
		}
		if err := or.purgeRepos(t, "org_id = ?", o.ID); err != nil {
			return err
		}
		return or.journal.Audit(t, o.ID, org, events.Audited{
			Action: ledger.AuditOrgPurged, Target: org, Before: purgeFields(0), After: purgeFields(t.Now),
		})
	})
}

// purgeRepos marks the repos that a condition with one parameter selects as purged, and deletes
// their webhooks.
func (or *Registry) purgeRepos(t *txn.Tx, where string, id int64) error {
	if err := webhooks.DeleteAll(t, "repo_id IN (SELECT id FROM repos WHERE "+where+")", id); err != nil {
		return err
	}
	if _, err := t.Exec("UPDATE repos SET purged_at = ? WHERE purged_at = 0 AND "+where, t.Now, id); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return or.jobs.PruneAll(t, where, id)
}

func purgeFields(purged ledger.Time) []ledger.Field {
	return []ledger.Field{{Name: "purged_at", Value: events.Optional(purged)}}
}
