package orgs

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/size"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// SetPolicy makes the contract the next version of the repo's policy. If ifVersion is
// not 0 and not the active version, it returns CodePreconditionFailed. by is the name
// of the caller. All commits of the repo are then settled, in the background.
func (or *Registry) SetPolicy(
	ctx context.Context, org, repo string, contract policy.Contract, ifVersion int, by string,
) (policy.Policy, error) {
	return txn.Write(ctx, or.db, sqldb.Write{Org: org}, func(t *txn.Tx) (p policy.Policy, err error) {
		d, err := or.facts.WritableDeriver(t.Reader, org, repo)
		if err != nil {
			return p, err
		}
		r := d.Repo
		if ifVersion != 0 && ifVersion != r.PolicyVersion {
			return p, ledger.Errorf(ledger.CodePreconditionFailed,
				"the active policy is version %d, not %d: read it again", r.PolicyVersion, ifVersion)
		}

		if err := size.Check(&contract, size.Of(d.Contract)); err != nil {
			return p, err
		}

		version := r.PolicyVersion + 1
		event, err := or.journal.AppendPolicy(t, r, version, contract, by)
		if err != nil {
			return p, err
		}
		if err := policies.InsertPolicy(t, r.ID, version, contract, by, event); err != nil {
			return p, err
		}
		_, err = t.Exec("UPDATE repos SET policy_version = ?, policy_digest = ? WHERE id = ?",
			version, contract.Digest(), r.ID)
		if err != nil {
			return p, fmt.Errorf("activate policy: %w", err)
		}

		if err := or.jobs.Later(t, r.ID, backlog.Settle, 0, ledger.Cause{Type: ledger.CausePolicy}); err != nil {
			return p, err
		}
		if !d.Contract.Radar.Covers(contract.Radar) {
			if err := overlaps.MarkAllTips(t, r.ID); err != nil {
				return p, err
			}
		}

		row, err := policies.ScanPolicy(t.Row(policies.SelectPolicy+"WHERE p.repo_id = ? AND p.version = ?", r.ID, version))
		if err != nil {
			return p, fmt.Errorf("read policy: %w", err)
		}
		return row.Row, or.journal.Audit(t, r.OrgID, r.Org, events.Audited{
			Action: ledger.AuditPolicyApplied, Repo: r.Name, Target: r.Name,
			Before: policyFields(r.PolicyVersion, r.PolicyDigest), After: policyFields(version, contract.Digest()),
		})
	})
}
