package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
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
	sub, err := submit(sha, n)
	if err != nil {
		return v, false, err
	}
	v, done, err := s.registerCommit(ctx, org, repo, sha, sub)
	if err != nil || sub.object == nil || !sub.object.HasSSHSignature() {
		return v, done.created, err
	}

	signature, isNew, err := s.recordSignature(ctx, org, repo, sub.object)
	if err == nil && isNew {
		v, err = read(ctx, s, txn.ForWrite(org), func(rd reader) (ledger.Commit, error) { return rd.registered(done) })
	}
	v.Signature = signature
	return v, done.created, txn.Unread("the commit was registered", err)
}

// registerCommit registers a commit, and returns its record.
func (s *Store) registerCommit(
	ctx context.Context, org, repo, sha string, sub submission,
) (v ledger.Commit, done registered, err error) {
	p, err := s.prospect(ctx, org, repo, sha, sub.Registration)
	if err != nil {
		return v, done, err
	}
	var ahead *prospectScan
	if p.tip.Branch != "" && sub.concernsRadar {
		if ahead, err = s.scanProspect(ctx, p); err != nil {
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
	radar   tipResult
	created bool
}

func (t *tx) register(org, repo, sha string, n submission, ahead *prospectScan) (done registered, err error) {
	d, err := t.writableDeriver(org, repo)
	if err != nil {
		return done, err
	}
	done.repo = d.repo
	c, isNew, err := t.findOrAddCommit(d, sha)
	if err != nil {
		return done, err
	}
	done.created = isNew

	if err := t.checkClaims(c, n); err != nil {
		return done, err
	}
	if !isNew {
		s, err := t.gatherOne(d, c)
		if err != nil {
			return done, err
		}
		if err := t.settleDue(s, ledger.Cause{}); err != nil {
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
	if !c.isProven() && c.merged&isMerged != 0 { // its merges may know its authors now
		t.inheritChanged(d, c, ledger.Cause{Type: ledger.CauseCommit, ID: c.sha})
	}
	if !n.concernsRadar && !moved {
		done.radar.commit = c.id
		t.addWork(ledger.Cause{Type: ledger.CauseCommit, ID: c.sha}, c.id)
		return done, t.drain(d)
	}
	done.radar, err = t.registerTip(d, c, isNew, n.Registration, ahead)
	return done, err
}

// checkClaims returns an error if a registration contradicts what the ledger knows of a
// commit. Only the commit object may correct the author.
func (t *tx) checkClaims(c *commitRow, n submission) error {
	switch {
	case n.object != nil:
		return nil
	case c.isProven():
		return t.checkProven(c, n.Registration)
	}
	return checkAuthor(c, n.Author)
}

// describeCommit stores what a registration says of a commit. moved reports whether the
// radar must look at the commit again.
func (t *tx) describeCommit(d *deriver, c *commitRow, n submission) (moved bool, err error) {
	claims, isProof := n.Registration, n.object != nil && !c.isProven()
	if isProof || c.isProven() {
		claims = gitobject.WithoutClaims(claims)
	}
	if n.object != nil && !isProof {
		if err := t.readAgain(d, c, n.object); err != nil {
			return false, err
		}
	}
	if err := t.claimCommit(d, c, claims); err != nil {
		return false, err
	}
	if !isProof {
		return false, t.logKnown(d.repo, c.id, nil)
	}
	return t.prove(d, c, n.object)
}

// readAgain takes from the object of a proven commit who wrote it: an earlier release may have read
// fewer co-authors.
func (t *tx) readAgain(d *deriver, c *commitRow, o *gitobject.Commit) error {
	writers, err := encodeWriters(o.Writers())
	if err != nil {
		return err
	}
	if writers != c.claims.writers {
		c.claims.writers = writers
		t.inheritChanged(d, c, ledger.Cause{Type: ledger.CauseCommit, ID: c.sha})
	}
	return nil
}

// registered returns the record of a commit after its registration.
func (rd reader) registered(done registered) (ledger.Commit, error) {
	c, err := scanCommit(rd.Row(selectCommit+"WHERE id = ?", done.radar.commit))
	if err != nil {
		return c.Row, fmt.Errorf("read commit: %w", err)
	}
	if done.radar.scanned {
		c.Row.Overlaps, c.Row.OverlapsTruncated = done.radar.counts(), done.radar.more
	}
	if err := rd.completeCommit(done.repo, &c, ""); err != nil {
		return c.Row, err
	}
	radar, err := rd.result(done.radar, asSide(c.Row.CommitSummary), maxReported)
	c.Row.Radar = &radar
	return c.Row, err
}

// registerTip has the radar scan a registered commit, and derives its state again.
func (t *tx) registerTip(
	d *deriver, c *commitRow, isNew bool, n ledger.Registration, ahead *prospectScan,
) (tipResult, error) {
	merged, err := n, error(nil)
	if !isNew {
		if merged, err = t.registrationOf(c.id); err != nil {
			return tipResult{}, err
		}
	}
	result, err := t.track(d, c, n, merged, ahead)
	if err != nil {
		return result, err
	}

	cause := ledger.Cause{Type: ledger.CauseCommit, ID: c.sha}
	if c.state >= ledger.Promotable && result.blocked(d.contract.Radar) {
		if cause, err = t.cause(c, result); err != nil {
			return result, err
		}
	}
	t.addWork(cause, c.id)
	return result, t.drain(d)
}

// claimCommit stores what a registration claims of a commit.
func (t *tx) claimCommit(d *deriver, c *commitRow, n ledger.Registration) error {
	if err := c.claims.add(c.claimedTargets(), n); err != nil {
		return err
	}
	if err := t.claimKey(d.repo.OrgID, n.SigningKey); err != nil {
		return err
	}
	_, err := t.Exec(`
UPDATE commits SET branch = coalesce(nullif(?, ''), branch), target = coalesce(nullif(?, ''), target),
  base = coalesce(nullif(?, ''), base), author_name = coalesce(nullif(?, ''), author_name),
  author_email = coalesce(nullif(?, ''), author_email), message = coalesce(nullif(?, ''), message),
  committed_at = coalesce(nullif(CAST(? AS BIGINT), 0), committed_at), targets = ?, writers = ?, signing_keys = ?
WHERE id = ?`, n.Branch, n.Target, n.Base, n.Author.Name, n.Author.Email, n.Message, n.CommittedAt,
		c.claims.targets, c.claims.writers, c.claims.signingKeys, c.id)
	if err != nil {
		return fmt.Errorf("update commit: %w", err)
	}

	if n.Parents == nil && n.Ancestors == nil && n.Contained == nil && n.Changes == nil {
		return nil
	}
	details, err := t.findDetails(c.id)
	if err != nil {
		return err
	}
	details.merge(n)
	return t.saveDetails(c.id, details)
}

// Withdraw takes a commit out of flight because its branch was given up. It is a no-op if
// the commit is not in flight.
func (s *Store) Withdraw(ctx context.Context, org, repo, shaOrPrefix string) error {
	return s.write(ctx, org, func(t *tx) error {
		d, err := t.writableDeriver(org, repo)
		if err != nil {
			return err
		}
		c, err := t.findCommit(d.repo, shaOrPrefix)
		if err != nil {
			return err
		}
		err = t.endTips(d, radarindex.Withdrawn, "t.commit_id = ? AND t.flight < ?", c.ID, radarindex.Superseded)
		if err != nil {
			return err
		}
		return t.drain(d)
	})
}
