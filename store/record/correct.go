package record

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Correct replaces what registrations have claimed of a commit, given its full id or a
// prefix that is unique in the repo, and derives its state again. by is the name of the
// administrator's token. It returns the commit's record without its changes, and what was
// corrected: nothing if the commit already had these values.
func (re *Recorder) Correct(
	ctx context.Context, org, repo, prefix string, change ledger.CommitCorrection, by string,
) (v ledger.Commit, done []ledger.Correction, err error) {
	type corrected struct {
		Registered
		list []ledger.Correction
	}
	result, err := txn.Write(ctx, re.db, sqldb.Write{Org: org}, func(t *txn.Tx) (r corrected, err error) {
		r.Registered, r.list, err = re.correct(t, org, repo, prefix, change, by)
		return r, err
	})
	if err != nil {
		return v, nil, err
	}
	v, err = txn.Read(ctx, re.db, txn.ForWrite(org), func(rd txn.Reader) (ledger.Commit, error) {
		c, err := facts.ScanCommit(rd.Row(facts.SelectCommit+"WHERE id = ?", result.Radar.Commit))
		if err != nil {
			return c.Row, fmt.Errorf("read commit: %w", err)
		}
		err = re.lists.CompleteCommit(rd, result.repo, &c, lists.About{}, false)
		return c.Row, err
	})
	return v, result.list, txn.Unread("the commit was corrected", err)
}

func (re *Recorder) correct(t *txn.Tx,
	org, repo, prefix string, change ledger.CommitCorrection, by string,
) (done Registered, list []ledger.Correction, err error) {
	d, err := re.facts.WritableDeriver(t.Reader, org, repo)
	if err != nil {
		return done, nil, err
	}
	done.repo = d.Repo
	found, err := facts.FindCommit(t.Reader, d.Repo, prefix)
	if err != nil {
		return done, nil, err
	}
	c, err := facts.FindCommitRow(t.Reader, found.ID)
	if err != nil {
		return done, nil, err
	}

	s, err := re.facts.GatherOne(t.Reader, d, c)
	if err != nil {
		return done, nil, err
	}
	if err := re.states.SettleDue(t, s, ledger.Cause{}); err != nil {
		return done, nil, err
	}
	if err := t.Flush(); err != nil {
		return done, nil, err
	}

	done.Radar.Commit = c.ID
	if list, err = re.replaceClaims(t, c, change); err != nil || len(list) == 0 {
		return done, nil, err
	}
	for i := range list {
		list[i].At, list[i].By = t.Now, by
		if err := facts.AddCorrection(t, c, list[i]); err != nil {
			return done, nil, err
		}
	}
	if err := re.facts.LogKnown(t, d.Repo, c.ID, list); err != nil {
		return done, nil, err
	}
	if err := re.auditCorrection(t, d.Repo, c.SHA, list); err != nil {
		return done, nil, err
	}
	done.Radar, err = re.registerTip(t, d, c, false, ledger.Registration{}, nil)
	return done, list, err
}

// auditCorrection appends the event of a commit that was corrected.
func (re *Recorder) auditCorrection(t *txn.Tx, r txn.Repo, sha string, list []ledger.Correction) error {
	var before, after []ledger.Field
	for _, c := range list {
		before = append(before, ledger.Field{Name: c.Field, Value: c.Before})
		after = append(after, ledger.Field{Name: c.Field, Value: c.After})
	}
	return re.journal.Audit(t, r.OrgID, r.Org, events.Audited{
		Action: ledger.AuditCommitCorrected, Repo: r.Name, Target: sha, Before: before, After: after,
	})
}

// replaceClaims replaces the targets and the changes of a commit, and returns what has
// changed.
func (re *Recorder) replaceClaims(t *txn.Tx, c *facts.CommitRow,
	change ledger.CommitCorrection) (list []ledger.Correction, err error) {
	if before := c.ClaimedTargets(); change.Targets != nil && !slices.Equal(before, *change.Targets) {
		if err := replaceTargets(t, c, *change.Targets); err != nil {
			return nil, err
		}
		list = append(list, ledger.Correction{
			Field: "targets", Before: ledger.CorrectedText(before), After: ledger.CorrectedText(*change.Targets),
		})
	}
	if change.Changes == nil {
		return list, nil
	}

	details, err := facts.FindDetails(t.Reader, c.ID)
	if err != nil {
		return nil, err
	}
	before, after := details, details
	after.Changes, after.Paths = *change.Changes, nil
	if before.Paths == nil && (before.Changes == nil) == (after.Changes == nil) &&
		overlaps.SameChanges(before.Changes, after.Changes) {
		return list, nil
	}
	list = append(list, ledger.Correction{Field: "changes", Before: before.Summary(), After: after.Summary()})
	return list, re.facts.SaveDetails(t, c.ID, after)
}

func replaceTargets(t *txn.Tx, c *facts.CommitRow, targets []string) error {
	c.Target, c.Claims.Targets = "", ""
	if len(targets) > 0 {
		c.Target = targets[len(targets)-1]
	}
	if len(targets) > 1 {
		c.Claims.Targets = strings.Join(targets, "\n")
	}
	_, err := t.Exec("UPDATE commits SET target = ?, targets = ? WHERE id = ?", c.Target, c.Claims.Targets, c.ID)
	if err != nil {
		return fmt.Errorf("update commit: %w", err)
	}
	return nil
}
