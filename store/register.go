package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Register creates or completes the record of a commit. Empty fields of the registration
// leave the earlier values unchanged. A registration with a branch makes the commit the
// tip of that branch. Register then derives the commit's state again. It returns the
// commit's record without its changes, and with the strongest overlaps. If the
// registration has the commit object, Register also records the object's SSH signature, if
// it has one by a trusted key.
func (s *Store) Register(
	ctx context.Context, org, repo, sha string, n ledger.Registration,
) (v ledger.Commit, created bool, err error) {
	sub, err := overlaps.Submit(sha, n)
	if err != nil {
		return v, false, err
	}
	v, done, err := s.registerCommit(ctx, org, repo, sha, sub)
	if err != nil || sub.Object == nil || !sub.Object.HasSSHSignature() {
		return v, done.created, err
	}

	signature, isNew, err := s.recordSignature(ctx, org, repo, sub.Object)
	if err == nil && isNew {
		v, err = read(ctx, s, txn.ForWrite(org), func(rd reader) (ledger.Commit, error) { return rd.registered(done) })
	}
	v.Signature = signature
	return v, done.created, txn.Unread("the commit was registered", err)
}

// registerCommit registers a commit, and returns its record.
func (s *Store) registerCommit(
	ctx context.Context, org, repo, sha string, sub overlaps.Submission,
) (v ledger.Commit, done registered, err error) {
	p, err := s.Prospect(ctx, org, repo, sha, sub.Registration)
	if err != nil {
		return v, done, err
	}
	var ahead *overlaps.ProspectScan
	if p.Tip.Branch != "" && sub.ConcernsRadar {
		if ahead, err = s.ScanProspect(ctx, p); err != nil {
			return v, done, err
		}
	}

	done, err = write(ctx, s, org, func(t *tx) (registered, error) { return t.register(org, repo, sha, sub, ahead) })
	if err != nil {
		return v, done, err
	}
	v, err = read(ctx, s, txn.ForWrite(org), func(rd reader) (ledger.Commit, error) { return rd.registered(done) })
	return v, done, txn.Unread("the commit was registered", err)
}

// registered is the result of a registration.
type registered struct {
	repo    txn.Repo
	radar   overlaps.TipResult
	created bool
}

func (t *tx) register(org, repo, sha string, n overlaps.Submission, ahead *overlaps.ProspectScan) (done registered,
	err error) {
	d, err := t.s.Facts.WritableDeriver(t.Reader, org, repo)
	if err != nil {
		return done, err
	}
	done.repo = d.Repo
	c, isNew, err := t.s.Facts.FindOrAddCommit(t.kernel, d, sha)
	if err != nil {
		return done, err
	}
	done.created = isNew

	if err := t.checkClaims(c, n); err != nil {
		return done, err
	}
	if !isNew {
		s, err := t.s.Facts.GatherOne(t.Reader, d, c)
		if err != nil {
			return done, err
		}
		if err := t.s.States.SettleDue(t.kernel, s, ledger.Cause{}); err != nil {
			return done, err
		}
	}

	if err := t.kernel.Flush(); err != nil {
		return done, err
	}
	moved, err := t.describeCommit(d, c, n)
	if err != nil {
		return done, err
	}
	if !c.IsProven() && c.Merged&facts.IsMerged != 0 { // its merges may know its authors now
		t.s.Facts.InheritChanged(t.kernel, d, c, ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA})
	}
	if !n.ConcernsRadar && !moved {
		done.radar.Commit = c.ID
		t.s.Facts.AddWork(ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA}, c.ID)
		return done, t.s.States.Drain(t.kernel, d)
	}
	done.radar, err = t.registerTip(d, c, isNew, n.Registration, ahead)
	return done, err
}

// checkClaims returns an error if a registration contradicts what the ledger knows of a
// commit. Only the commit object may correct the author.
func (t *tx) checkClaims(c *facts.CommitRow, n overlaps.Submission) error {
	switch {
	case n.Object != nil:
		return nil
	case c.IsProven():
		return t.checkProven(c, n.Registration)
	}
	return checkAuthor(c, n.Author)
}

// describeCommit stores what a registration says of a commit. moved reports whether the
// radar must look at the commit again.
func (t *tx) describeCommit(d *facts.Deriver, c *facts.CommitRow, n overlaps.Submission) (moved bool, err error) {
	claims, isProof := n.Registration, n.Object != nil && !c.IsProven()
	if isProof || c.IsProven() {
		claims = gitobject.WithoutClaims(claims)
	}
	if n.Object != nil && !isProof {
		if err := t.readAgain(d, c, n.Object); err != nil {
			return false, err
		}
	}
	if err := t.claimCommit(d, c, claims); err != nil {
		return false, err
	}
	if !isProof {
		return false, t.s.Facts.LogKnown(t.kernel, d.Repo, c.ID, nil)
	}
	return t.prove(d, c, n.Object)
}

// readAgain takes from the object of a proven commit who wrote it: an earlier release may have read
// fewer co-authors.
func (t *tx) readAgain(d *facts.Deriver, c *facts.CommitRow, o *gitobject.Commit) error {
	writers, err := facts.EncodeWriters(o.Writers())
	if err != nil {
		return err
	}
	if writers != c.Claims.Writers {
		c.Claims.Writers = writers
		t.s.Facts.InheritChanged(t.kernel, d, c, ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA})
	}
	return nil
}

// registered returns the record of a commit after its registration.
func (rd reader) registered(done registered) (ledger.Commit, error) {
	c, err := facts.ScanCommit(rd.Row(facts.SelectCommit+"WHERE id = ?", done.radar.Commit))
	if err != nil {
		return c.Row, fmt.Errorf("read commit: %w", err)
	}
	if done.radar.Scanned {
		c.Row.Overlaps, c.Row.OverlapsTruncated = done.radar.Counts(), done.radar.More
	}
	if err := rd.s.Lists.CompleteCommit(rd.Reader, done.repo, &c, "", false); err != nil {
		return c.Row, err
	}
	radar, err := overlaps.Result(rd.Reader, done.radar, overlaps.AsSide(c.Row.CommitSummary), overlaps.MaxReported)
	c.Row.Radar = &radar
	return c.Row, err
}

// registerTip has the radar scan a registered commit, and derives its state again.
func (t *tx) registerTip(
	d *facts.Deriver, c *facts.CommitRow, isNew bool, n ledger.Registration, ahead *overlaps.ProspectScan,
) (overlaps.TipResult, error) {
	merged, err := n, error(nil)
	if !isNew {
		if merged, err = facts.RegistrationOf(t.Reader, c.ID); err != nil {
			return overlaps.TipResult{}, err
		}
	}
	result, err := t.s.Radar.Track(t.kernel, d, c, n, merged, ahead)
	if err != nil {
		return result, err
	}

	cause := ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA}
	if c.State >= ledger.Promotable && result.Blocked(d.Contract.Radar) {
		if cause, err = overlaps.Cause(t.kernel, c, result); err != nil {
			return result, err
		}
	}
	t.s.Facts.AddWork(cause, c.ID)
	return result, t.s.States.Drain(t.kernel, d)
}

// claimCommit stores what a registration claims of a commit.
func (t *tx) claimCommit(d *facts.Deriver, c *facts.CommitRow, n ledger.Registration) error {
	if err := c.Claims.Add(c.ClaimedTargets(), n); err != nil {
		return err
	}
	if err := t.claimKey(d.Repo.OrgID, n.SigningKey); err != nil {
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
	return t.s.Facts.SaveDetails(t.kernel, c.ID, details)
}

// Withdraw takes a commit out of flight because its branch was given up. It is a no-op if
// the commit is not in flight.
func (s *Store) Withdraw(ctx context.Context, org, repo, shaOrPrefix string) error {
	return s.write(ctx, org, func(t *tx) error {
		d, err := t.s.Facts.WritableDeriver(t.Reader, org, repo)
		if err != nil {
			return err
		}
		c, err := facts.FindCommit(t.Reader, d.Repo, shaOrPrefix)
		if err != nil {
			return err
		}
		err = t.s.Radar.EndTips(t.kernel, d, radarindex.Withdrawn, "t.commit_id = ? AND t.flight < ?", c.ID,
			radarindex.Superseded)
		if err != nil {
			return err
		}
		return t.s.States.Drain(t.kernel, d)
	})
}
