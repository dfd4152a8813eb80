package record

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Register creates or completes the record of a commit. Empty fields of the registration
// leave the earlier values unchanged. A registration with a branch makes the commit the
// tip of that branch. Register then derives the commit's state again. It returns the
// commit's record without its changes, and with the strongest overlaps. If the
// registration has the commit object, Register also records the object's SSH signature, if
// it has one by a trusted key.
func (re *Recorder) Register(
	ctx context.Context, org, repo, sha string, n ledger.Registration,
) (v ledger.Commit, created bool, err error) {
	sub, err := overlaps.Submit(sha, n)
	if err == nil && sub.Object == nil {
		sub, err = re.withStored(ctx, org, repo, sha, sub)
	}
	if err != nil {
		return v, false, err
	}

	v, done, err := re.registerCommit(ctx, org, repo, sha, sub)
	if err != nil || sub.Object == nil || !sub.Object.HasSSHSignature() {
		return v, done.created, err
	}

	signature, isNew, err := re.recordSignature(ctx, org, repo, sub.Object)
	if err == nil && isNew {
		v, err = txn.Read(ctx, re.db, txn.ForWrite(org), func(rd txn.Reader) (ledger.Commit, error) {
			return re.Registered(rd, done)
		})
	}
	v.Signature = signature
	return v, done.created, txn.Unread("the commit was registered", err)
}

// withStored returns a registration with the object of the commit, if that came before.
func (re *Recorder) withStored(
	ctx context.Context, org, repo, sha string, sub overlaps.Submission,
) (overlaps.Submission, error) {
	objects, err := re.stored(ctx, org, repo, sha)
	if err != nil || objects[sha] == nil {
		return sub, err
	}
	n := sub.Registration
	n.Object = objects[sha]
	return overlaps.Submit(sha, n)
}

// registerCommit registers a commit, and returns its record.
func (re *Recorder) registerCommit(
	ctx context.Context, org, repo, sha string, sub overlaps.Submission,
) (v ledger.Commit, done Registered, err error) {
	p, err := re.radar.Prospect(ctx, org, repo, sha, sub.Registration)
	if err != nil {
		return v, done, err
	}
	var ahead *overlaps.ProspectScan
	if p.Tip.Branch != "" && sub.ConcernsRadar {
		if ahead, err = re.radar.ScanProspect(ctx, p); err != nil {
			return v, done, err
		}
	}

	done, err = txn.Write(ctx, re.db, sqldb.Write{Org: org}, func(t *txn.Tx) (Registered, error) {
		return re.RegisterSubmission(t, org, repo, sha, sub, ahead)
	})
	if err != nil {
		return v, done, err
	}
	v, err = txn.Read(ctx, re.db, txn.ForWrite(org), func(rd txn.Reader) (ledger.Commit, error) {
		return re.Registered(rd, done)
	})
	return v, done, txn.Unread("the commit was registered", err)
}

// Registered is the result of a registration.
type Registered struct {
	repo    txn.Repo
	Radar   overlaps.TipResult
	created bool
}

// RegisterSubmission registers a commit in a write. ahead is the scan that was made before, or nil.
func (re *Recorder) RegisterSubmission(
	t *txn.Tx, org, repo, sha string, n overlaps.Submission, ahead *overlaps.ProspectScan,
) (done Registered, err error) {
	d, err := re.facts.WritableDeriver(t.Reader, org, repo)
	if err != nil {
		return done, err
	}
	done.repo = d.Repo
	c, isNew, err := re.facts.FindOrAddCommit(t, d, sha)
	if err != nil {
		return done, err
	}
	done.created = isNew

	if err := checkClaims(t, c, n); err != nil {
		return done, err
	}
	if !isNew {
		s, err := re.facts.GatherOne(t.Reader, d, c)
		if err != nil {
			return done, err
		}
		if err := re.states.SettleDue(t, s, ledger.Cause{}); err != nil {
			return done, err
		}
	}

	if err := t.Flush(); err != nil {
		return done, err
	}
	moved, err := re.describeCommit(t, d, c, n)
	if err != nil {
		return done, err
	}
	if !c.IsProven() && c.Merged&facts.IsMerged != 0 { // its merges may know its authors now
		re.facts.InheritChanged(t, d, c, ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA})
	}
	if !n.ConcernsRadar && !moved {
		done.Radar.Commit = c.ID
		re.facts.AddWork(ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA}, c.ID)
		return done, re.states.Drain(t, d)
	}
	done.Radar, err = re.registerTip(t, d, c, isNew, n.Registration, ahead)
	return done, err
}

// checkClaims returns an error if a registration contradicts what the ledger knows of a
// commit. Only the commit object may correct the author.
func checkClaims(t *txn.Tx, c *facts.CommitRow, n overlaps.Submission) error {
	switch {
	case n.Object != nil:
		return nil
	case c.IsProven():
		return checkProven(t, c, n.Registration)
	}
	return checkAuthor(c, n.Author)
}

// describeCommit stores what a registration says of a commit. moved reports whether the
// radar must look at the commit again.
func (re *Recorder) describeCommit(t *txn.Tx, d *facts.Deriver, c *facts.CommitRow, n overlaps.Submission) (moved bool,
	err error) {
	claims, isProof := n.Registration, n.Object != nil && !c.IsProven()
	if isProof || c.IsProven() {
		claims = gitobject.WithoutClaims(claims)
	}
	if n.Object != nil && !isProof {
		if err := re.readAgain(t, d, c, n.Object); err != nil {
			return false, err
		}
	}
	if err := re.claimCommit(t, d, c, claims); err != nil {
		return false, err
	}
	if !isProof {
		return false, re.facts.LogKnown(t, d.Repo, c.ID, nil)
	}
	return re.prove(t, d, c, n.Object)
}

// readAgain takes from the object of a proven commit who wrote it: an earlier release may have read
// fewer co-authors.
func (re *Recorder) readAgain(t *txn.Tx, d *facts.Deriver, c *facts.CommitRow, o *gitobject.Commit) error {
	writers, err := facts.EncodeWriters(o.Writers())
	if err != nil {
		return err
	}
	if writers != c.Claims.Writers {
		c.Claims.Writers = writers
		re.facts.InheritChanged(t, d, c, ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA})
	}
	return nil
}

// Registered returns the record of a commit after its registration.
func (re *Recorder) Registered(rd txn.Reader, done Registered) (ledger.Commit, error) {
	c, err := facts.ScanCommit(rd.Row(facts.SelectCommit+"WHERE id = ?", done.Radar.Commit))
	if err != nil {
		return c.Row, fmt.Errorf("read commit: %w", err)
	}
	if done.Radar.Scanned {
		c.Row.Overlaps, c.Row.OverlapsTruncated = done.Radar.Counts(), done.Radar.More
	}
	if err := re.lists.CompleteCommit(rd, done.repo, &c, lists.About{}, false); err != nil {
		return c.Row, err
	}
	radar, err := overlaps.Result(rd, done.Radar, overlaps.AsSide(c.Row.CommitSummary), overlaps.MaxReported)
	c.Row.Radar = &radar
	return c.Row, err
}

// registerTip has the radar scan a registered commit, and derives its state again.
func (re *Recorder) registerTip(t *txn.Tx,
	d *facts.Deriver, c *facts.CommitRow, isNew bool, n ledger.Registration, ahead *overlaps.ProspectScan,
) (overlaps.TipResult, error) {
	merged, err := n, error(nil)
	if !isNew {
		if merged, err = facts.RegistrationOf(t.Reader, c.ID); err != nil {
			return overlaps.TipResult{}, err
		}
	}
	result, err := re.radar.Track(t, d, c, n, merged, ahead)
	if err != nil {
		return result, err
	}

	cause := ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA}
	if c.State >= ledger.Promotable && result.Blocked(d.Contract.Radar) {
		if cause, err = overlaps.Cause(t, c, result); err != nil {
			return result, err
		}
	}
	re.facts.AddWork(cause, c.ID)
	return result, re.states.Drain(t, d)
}

// claimCommit stores what a registration claims of a commit.
func (re *Recorder) claimCommit(t *txn.Tx, d *facts.Deriver, c *facts.CommitRow, n ledger.Registration) error {
	if err := c.Claims.Add(c.ClaimedTargets(), n); err != nil {
		return err
	}
	if err := re.claimKey(t, d.Repo.OrgID, n.SigningKey); err != nil {
		return err
	}
	_, err := t.Exec(`
UPDATE commits SET branch = coalesce(nullif(?, ''), branch), target = coalesce(nullif(?, ''), target),
  base = coalesce(nullif(?, ''), base), author_name = coalesce(nullif(?, ''), author_name),
  author_email = coalesce(nullif(?, ''), author_email), message = coalesce(nullif(?, ''), message),
  committed_at = coalesce(nullif(CAST(? AS BIGINT), 0), committed_at), targets = ?, writers = ?, signing_keys = ?
WHERE id = ?`, n.Branch, n.Target, n.Base, n.Author.Name, n.Author.Email, n.Message, n.CommittedAt,
		c.Claims.Targets, c.Claims.Writers, c.Claims.SigningKeys, c.ID)
	if err != nil {
		return fmt.Errorf("update commit: %w", err)
	}

	if n.Parents == nil && n.Ancestors == nil && n.Contained == nil && n.Changes == nil {
		return nil
	}
	details, err := facts.FindDetails(t.Reader, c.ID)
	if err != nil {
		return err
	}
	details.Merge(n)
	return re.facts.SaveDetails(t, c.ID, details)
}

// Withdraw takes a commit out of flight because its branch was given up. It is a no-op if
// the commit is not in flight.
func (re *Recorder) Withdraw(ctx context.Context, org, repo, shaOrPrefix string) error {
	return re.db.Change(ctx, org, func(t *txn.Tx) error {
		d, err := re.facts.WritableDeriver(t.Reader, org, repo)
		if err != nil {
			return err
		}
		c, err := facts.FindCommit(t.Reader, d.Repo, shaOrPrefix)
		if err != nil {
			return err
		}
		err = re.radar.EndTips(t, d, radarindex.Withdrawn, "t.commit_id = ? AND t.flight < ?", c.ID,
			radarindex.Superseded)
		if err != nil {
			return err
		}
		return re.states.Drain(t, d)
	})
}
