package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

// A prospect is a commit as the tip that it would be if it were registered now.
type prospect struct {
	repo         repoRow
	settings     policy.RadarSettings
	commit       *commitRow          // nil where it is not known yet
	registration ledger.Registration // with what is known already
	tip          radarindex.Tip
	seq          int64 // of the tip that the commit is or was; 0 if it was none
}

// prospect reads what the radar has to look for when a registration comes.
func (s *Store) prospect(ctx context.Context, org, repo, sha string, n ledger.Registration) (prospect, error) {
	return read(ctx, s, func(rd reader) (p prospect, err error) {
		if p.repo, err = rd.findRepo(org, repo); err != nil {
			return p, err
		}
		contract, err := rd.contract(p.repo)
		if err != nil {
			return p, err
		}
		p.settings = contract.Radar
		p.registration, p.tip = n, radarindex.Tip{Place: 1 << 62, OpenedAt: rd.now}
		if err := rd.complete(&p, sha); err != nil {
			return p, err
		}
		p.tip.Tip = tipOf(sha, p.registration)
		return p, nil
	})
}

// complete adds what is known of the commit.
func (rd reader) complete(p *prospect, sha string) error {
	c, err := scanCommitRow(rd.Row(selectCommitRow+"WHERE repo_id = ? AND sha = ?", p.repo.id, sha))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read commit: %w", err)
	}
	p.commit = c
	if p.registration, err = rd.mergedRegistration(c.id, p.registration); err != nil {
		return err
	}
	tip, _, err := rd.findTip(c.id)
	if p.seq = tip.Seq; tip.InFlightAt(p.settings, rd.now) {
		p.tip = tip
	}
	return err
}

// overlaps reports whether it may overlap with anything.
func (p *prospect) overlaps() bool {
	return p.settings.Enabled && len(p.registration.Changes) > 0 && (p.commit == nil || p.commit.state != ledger.Deployed)
}

// A look is a finished scan. For a registration it runs before the registration
// gets to the writer, in parallel with others: the writer only has to compare
// with the tips that came since.
type look struct {
	*radarindex.Scan
	of prospect // what was scanned for
}

func lookIn(index *radarindex.Index, p prospect, now ledger.Time) *look {
	return &look{index.Scan(p.settings, p.tip, p.registration, now), p}
}

// isOf reports whether the look was for that registration of a commit: what is
// known of it and of its tip, and the contract, have not changed since.
func (l *look) isOf(d *deriver, seq int64, known ledger.Registration) bool {
	was := l.of.registration
	return l.of.repo.policyVersion == d.repo.policyVersion && l.of.seq == seq && was.Branch == known.Branch &&
		was.Base == known.Base &&
		slices.Equal(was.Parents, known.Parents) && slices.Equal(was.Ancestors, known.Ancestors) &&
		slices.Equal(was.Contained, known.Contained) && sameChanges(was.Changes, known.Changes)
}

// sameChanges compares changes as they are stored.
func sameChanges(a, b []radar.Change) bool {
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
	index, err := s.tips.Fresh(ctx, p.repo.id, tipSource{s})
	if err != nil {
		return nil, err
	}
	return lookIn(index, p, s.Now()), nil
}

// finish brings the overlaps of a look up to date with what the writer knows. If
// the scan was partial, it also compares with each tip that is known to overlap.
func (t *tx) finish(l *look, known map[pairKey]pairRow) (list []radarindex.Match, more bool, err error) {
	since, list, err := t.newer(l)
	if err != nil {
		return nil, false, err
	}
	if l.Seq == 0 { // the index was empty, and newer has read all live tips
		l.Matches, l.More, l.Partial = nil, false, false
	}
	for _, f := range l.Matches {
		if !slices.Contains(since, f.CommitID) && l.Compares(f.Tip) {
			list = append(list, f)
		}
	}
	if l.Partial {
		if list, err = t.addKnown(l, list, since, known); err != nil {
			return nil, false, err
		}
	}
	list, more = radarindex.Strongest(list)
	return list, more || l.More, nil
}

// newer returns the tips that have changed since the scanned index was up to
// date, and the overlaps with them.
func (t *tx) newer(l *look) (since []int64, list []radarindex.Match, err error) {
	query, args := newerTips, []any{l.Index().RepoID(), l.Seq}
	if l.Seq == 0 { // a tip that has ended was never found
		query, args = liveTips, args[:1]
	}
	tips, err := all(t.reader, scanTip, query, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("read newer tips: %w", err)
	}
	for i := range tips {
		tip := &tips[i]
		since = append(since, tip.CommitID)
		if !l.Compares(tip) {
			continue
		}
		footprint := t.batch.recent.Footprint(tip, l.of.repo.policyVersion)
		if footprint == nil {
			changes, err := t.findChanges(tip.CommitID)
			if err != nil {
				return nil, nil, err
			}
			footprint = l.FootprintOf(changes)
		}
		if f, overlaps := l.Compare(tip, footprint); overlaps {
			list = append(list, f)
		}
	}
	return since, list, nil
}

// addKnown adds the recorded overlaps that still exist and that list lacks.
func (t *tx) addKnown(
	l *look, list []radarindex.Match, since []int64, known map[pairKey]pairRow,
) ([]radarindex.Match, error) {
	for _, p := range slices.SortedFunc(maps.Values(known), comparePairs) {
		other := p.other(l.Own.CommitID)
		isOther := func(f radarindex.Match) bool { return f.CommitID == other }
		if slices.Contains(since, other) || slices.ContainsFunc(list, isOther) {
			continue
		}
		tip, is, err := t.findTip(other)
		if err != nil {
			return nil, err
		}
		if !is || !l.Compares(&tip) {
			continue
		}
		changes, err := t.findChanges(other)
		if err != nil {
			return nil, err
		}
		if f, overlaps := l.Compare(&tip, l.FootprintOf(changes)); overlaps {
			list = append(list, f)
		}
	}
	return list, nil
}

func tipOf(sha string, n ledger.Registration) radar.Tip {
	return radar.Tip{SHA: sha, Branch: n.Branch, Base: n.Base, Parents: n.Parents, Ancestors: n.Ancestors}
}
