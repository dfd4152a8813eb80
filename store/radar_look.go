package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// A prospect is a commit as the tip that it would be if it were registered now.
type prospect struct {
	repo         repoRow
	settings     ledger.RadarSettings
	commit       commitRow           // without an id where it is not known yet
	registration ledger.Registration // with what is known already
	tip          tipRow
	seq          int64 // of the tip that the commit is or was; 0 if it was none
}

// prospect reads what the radar has to look for when a registration comes.
func (s *Store) prospect(ctx context.Context, org, repo, sha string, n ledger.Registration) (p prospect, err error) {
	err = s.read(ctx, func(c *conn) error {
		if p.repo, err = findRepo(c, org, repo); err != nil {
			return err
		}
		contract, err := s.contract(c, p.repo)
		if err != nil {
			return err
		}
		p.settings = contract.Radar
		p.registration, p.tip = n, tipRow{place: 1 << 62, openedAt: s.Now()}
		if err := p.complete(c, sha, s.Now()); err != nil {
			return err
		}
		p.tip.Tip = tipOf(sha, p.registration)
		return nil
	})
	return p, err
}

// complete adds what is known of the commit.
func (p *prospect) complete(c *conn, sha string, now ledger.Time) (err error) {
	p.commit, err = scanCommitRow(c.row(selectCommitRow+"WHERE repo_id = ? AND sha = ?", p.repo.id, sha))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read commit: %w", err)
	}
	if p.registration, err = mergedRegistration(c, p.commit.id, p.registration); err != nil {
		return err
	}
	tip, _, err := findTip(c, p.commit.id)
	if p.seq = tip.seq; tip.flies(p.settings, now) {
		p.tip = tip
	}
	return err
}

// overlaps reports whether it may overlap with anything.
func (p *prospect) overlaps() bool {
	return p.settings.Enabled && len(p.registration.Changes) > 0 && p.commit.state != ledger.Deployed
}

// A look is a scan of an index that is done. For a registration that happens
// before it gets to the writer, beside those of others: the writer has only to
// look at what came since.
type look struct {
	*scan
	found []found
	more  bool
	of    prospect // what it was a look for
}

func lookIn(index *tipIndex, p prospect, now ledger.Time) *look {
	l := &look{scan: newScan(index, p.settings, p.tip, p.registration, now), of: p}
	l.found, l.more = l.run()
	return l
}

// isOf reports whether the look was for that registration of a commit: what is
// known of it and of its tip, and the contract, have not changed since.
func (l *look) isOf(d deriver, seq int64, known ledger.Registration) bool {
	was := l.of.registration
	return l.of.repo.policyVersion == d.repo.policyVersion && l.of.seq == seq && was.Branch == known.Branch && was.Base == known.Base &&
		slices.Equal(was.Parents, known.Parents) && slices.Equal(was.Ancestors, known.Ancestors) &&
		slices.Equal(was.Contained, known.Contained) && sameChanges(was.Changes, known.Changes)
}

// sameChanges compares changes as they are stored.
func sameChanges(a, b []ledger.Change) bool {
	if len(a) != len(b) || len(a) == 0 || &a[0] == &b[0] {
		return len(a) == len(b)
	}
	one, err := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

// lookAhead looks for a commit that is about to be registered, or might be. It
// answers nil where nothing can come of it.
func (s *Store) lookAhead(ctx context.Context, p prospect) (*look, error) {
	if !p.overlaps() {
		return nil, nil
	}
	index, err := s.freshTips(ctx, p.repo.id)
	if err != nil {
		return nil, err
	}
	return lookIn(index, p, s.Now()), nil
}
