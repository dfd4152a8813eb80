package overlaps

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
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A prospect is a commit with the tip that it would be if it were registered now.
type prospect struct {
	repo         txn.Repo
	settings     conflicts.Settings
	commit       *facts.CommitRow    // nil if the commit is new
	registration ledger.Registration // including earlier registrations of the commit
	Tip          radarindex.Tip
	seq          int64 // sequence number of the commit's current tip; 0 if it was never a tip
}

// Prospect returns the prospect for a registration of a commit.
func (ra *Radar) Prospect(ctx context.Context, org, repo, sha string, n ledger.Registration) (prospect, error) {
	return txn.Read(ctx, ra.db, txn.ForWrite(org), func(rd txn.Reader) (p prospect, err error) {
		if p.repo, err = rd.FindRepo(org, repo); err != nil {
			return p, err
		}
		contract, err := ra.policies.Contract(rd, p.repo)
		if err != nil {
			return p, err
		}
		p.settings = contract.Radar
		p.registration, p.Tip = n, radarindex.Tip{Place: 1 << 62, OpenedAt: rd.Now}
		if err := complete(rd, &p, sha); err != nil {
			return p, err
		}
		p.Tip.Tip = TipOf(sha, p.registration)
		return p, nil
	})
}

// complete adds the data of a commit that is already registered.
func complete(rd txn.Reader, p *prospect, sha string) error {
	c, err := facts.ScanCommitRow(rd.Row(facts.SelectCommitRow+"WHERE repo_id = ? AND sha = ?", p.repo.ID, sha))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read commit: %w", err)
	}
	p.commit = c
	if p.registration, err = facts.MergedRegistration(rd, c.ID, p.registration); err != nil {
		return err
	}
	tip, _, err := facts.FindTip(rd, c.ID)
	if p.seq = tip.Seq; tip.InFlightAt(p.settings, rd.Now) {
		p.Tip = tip
	}
	return err
}

// canOverlap reports whether the commit can have overlaps.
func (p *prospect) canOverlap() bool {
	return p.settings.Enabled && len(p.registration.Changes) > 0 && (p.commit == nil || p.commit.State != ledger.Deployed)
}

// A ProspectScan is a finished scan for a prospect. The scan for a registration runs
// before its write, in parallel with other scans. The write only has to compare the
// commit with tips that have changed since.
type ProspectScan struct {
	*radarindex.Scan
	prospect prospect
}

// scan scans an index for overlaps with the prospect.
func (p prospect) scan(index *radarindex.Index, now ledger.Time) *ProspectScan {
	return &ProspectScan{index.Scan(p.settings, p.Tip, p.registration, now), p}
}

// matches reports whether the scan is still valid for a registration: the contract, the
// commit's tip and the merged registration have not changed since.
func (s *ProspectScan) matches(d *facts.Deriver, seq int64, merged ledger.Registration) bool {
	scanned := s.prospect.registration
	return s.prospect.repo.PolicyVersion == d.Repo.PolicyVersion && s.prospect.seq == seq &&
		scanned.Branch == merged.Branch && scanned.Base == merged.Base &&
		slices.Equal(scanned.Parents, merged.Parents) && slices.Equal(scanned.Ancestors, merged.Ancestors) &&
		slices.Equal(scanned.Contained, merged.Contained) && SameChanges(scanned.Changes, merged.Changes)
}

// SameChanges reports whether a and b are equal as stored in the database.
func SameChanges(a, b []radar.Change) bool {
	if len(a) != len(b) || len(a) == 0 || &a[0] == &b[0] {
		return len(a) == len(b)
	}
	one, err := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

// ScanProspect scans for overlaps with a prospect, outside the writer. It returns nil if
// the commit cannot have overlaps.
func (ra *Radar) ScanProspect(ctx context.Context, p prospect) (*ProspectScan, error) {
	if !p.canOverlap() {
		return nil, nil
	}
	index, err := ra.FreshIndex(ctx, p.repo.ID)
	if err != nil {
		return nil, err
	}
	return p.scan(index, ra.db.Clock.Now()), nil
}

// finish brings the overlaps of a scan up to date. If the scan was partial, it also
// compares the commit with the tips that it is known to overlap with. more reports
// whether there may be more overlaps.
func (ra *Radar) finish(t *txn.Tx, sc *ProspectScan, known map[pairKey]PairRow) (list []radarindex.Match, more bool,
	err error) {
	changed, list, err := ra.newer(t, sc)
	if err != nil {
		return nil, false, err
	}

	if sc.Seq == 0 { // the index was empty, and newer has read all live tips
		sc.Matches, sc.More, sc.Partial = nil, false, false
	}
	for _, m := range sc.Matches {
		if !slices.Contains(changed, m.CommitID) && sc.Compares(m.Tip) {
			list = append(list, m)
		}
	}
	if sc.Partial {
		if list, err = addKnown(t, sc, list, changed, known); err != nil {
			return nil, false, err
		}
	}

	list, more = radarindex.Strongest(list)
	return list, more || sc.More, nil
}

// newer returns the commits of the tips that have changed since the scanned index was up
// to date, and the overlaps with them.
func (ra *Radar) newer(t *txn.Tx, sc *ProspectScan) (changed []int64, list []radarindex.Match, err error) {
	query, args := newerTips, []any{sc.Index().RepoID(), sc.Seq}
	if sc.Seq == 0 { // the index was empty, so only live tips matter
		query, args = liveTips, args[:1]
	}
	tips, err := txn.All(t.Reader, facts.ScanTip, query, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("read newer tips: %w", err)
	}

	for i := range tips {
		tip := &tips[i]
		changed = append(changed, tip.CommitID)
		if !sc.Compares(tip) {
			continue
		}

		footprint := ra.recent.Footprint(tip, sc.prospect.repo.PolicyVersion)
		if footprint == nil {
			changes, err := facts.FindChanges(t.Reader, tip.CommitID)
			if err != nil {
				return nil, nil, err
			}
			footprint = sc.FootprintOf(changes)
		}
		if m, ok := sc.Compare(tip, footprint); ok {
			list = append(list, m)
		}
	}
	return changed, list, nil
}

// addKnown adds the known overlaps that still exist to list, except those already in list
// and those with the changed tips, which have been compared.
func addKnown(t *txn.Tx,
	sc *ProspectScan, list []radarindex.Match, changed []int64, known map[pairKey]PairRow,
) ([]radarindex.Match, error) {
	for _, p := range slices.SortedFunc(maps.Values(known), comparePairs) {
		other := p.other(sc.Own.CommitID)
		isOther := func(m radarindex.Match) bool { return m.CommitID == other }
		if slices.Contains(changed, other) || slices.ContainsFunc(list, isOther) {
			continue
		}

		tip, ok, err := facts.FindTip(t.Reader, other)
		if err != nil {
			return nil, err
		}
		if !ok || !sc.Compares(&tip) {
			continue
		}

		changes, err := facts.FindChanges(t.Reader, other)
		if err != nil {
			return nil, err
		}
		if m, ok := sc.Compare(&tip, sc.FootprintOf(changes)); ok {
			list = append(list, m)
		}
	}
	return list, nil
}

// TipOf returns the tip that a registration of a commit makes.
func TipOf(sha string, n ledger.Registration) radar.Tip {
	return radar.Tip{SHA: sha, Branch: n.Branch, Base: n.Base, Parents: n.Parents, Ancestors: n.Ancestors}
}
