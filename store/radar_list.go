package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A RadarFilter selects the overlaps of a list. Empty fields do not filter.
type RadarFilter struct {
	Query
	Level  radar.Level // exactly this level
	Commit string      // full id or prefix of one of the two commits
	Branch string      // branch of one of the two commits
}

// An openPair is an open overlap of two tips.
type openPair struct {
	later, earlier int64
	level          radar.Level
	since          ledger.Time
}

func scanOpenPair(row scanner) (openPair, error) {
	var p openPair
	err := row.Scan(&p.later, &p.earlier, &p.level, &p.since)
	return p, err
}

// Overlaps lists the open overlaps of a repo's commits, the strongest first. Overlaps of
// the same level are in the order of the later commit, the last registered first.
func (s *Store) Overlaps(ctx context.Context, org, repo string, f RadarFilter) (ledger.Page[ledger.RadarPair], error) {
	position, err := f.keys(3) // level, later, earlier
	if err != nil {
		return ledger.Page[ledger.RadarPair]{}, err
	}
	return read(ctx, s, byOrg(org), func(rd reader) (list ledger.Page[ledger.RadarPair], err error) {
		d, err := rd.deriverOf(org, repo)
		if err != nil {
			return list, err
		}

		l := rd.lister(d)
		pairs, err := l.pairs(f, position)
		if err != nil {
			return list, err
		}
		if len(pairs) > f.Limit {
			pairs = pairs[:f.Limit]
			last := pairs[f.Limit-1]
			list.NextCursor = cursor(last.position()...)
		}

		list.Data, err = l.compare(pairs, f.Level)
		return list, err
	})
}

// compare compares the commits of each pair again. It omits pairs that no longer overlap,
// or not at the given level: the ignored paths may have changed since the last scan.
func (l *pairLister) compare(pairs []openPair, only radar.Level) ([]ledger.RadarPair, error) {
	list := make([]ledger.RadarPair, 0, len(pairs))
	for _, p := range pairs {
		pair, err := l.pair(p)
		if err != nil {
			return nil, err
		}
		if pair.Level != radar.NoLevel && (only == radar.NoLevel || only == pair.Level) {
			list = append(list, pair)
		}
	}
	slices.SortStableFunc(list, func(a, b ledger.RadarPair) int { return cmp.Compare(b.Level, a.Level) })
	return list, nil
}

// A pairLister lists open overlaps of one repo. It reads each commit once.
type pairLister struct {
	reader
	repo     repoRow
	settings policy.RadarSettings
	radar    *radar.Radar
	oldest   ledger.Time
	sides    map[int64]side
}

// A side is one commit of a pair.
type side struct {
	ledger.RadarCommit
	tip       radar.Tip
	footprint *radar.Footprint
}

func (rd reader) lister(d *deriver) *pairLister {
	return &pairLister{
		reader: rd, repo: d.repo, settings: d.contract.Radar, radar: radar.New(d.contract.Radar.Ignore),
		oldest: d.contract.Radar.Oldest(rd.now), sides: make(map[int64]side),
	}
}

// pairs reads the pairs after the position, one more than the filter's limit.
func (l *pairLister) pairs(f RadarFilter, position []int64) ([]openPair, error) {
	if !l.settings.Enabled {
		return nil, nil
	}
	if f.Commit != "" || f.Branch != "" {
		return l.pairsOf(f, position)
	}

	where, args := "WHERE"+isOpen+"AND l.repo_id = ?", []any{l.oldest, l.oldest, l.repo.id}
	var list []openPair
	for level := radar.High; level > radar.NoLevel && len(list) <= f.Limit; level-- {
		if f.Level != radar.NoLevel && f.Level != level || position != nil && int64(level) > position[0] {
			continue
		}

		query, params := pairColumns+ofAll+where+" AND l.level >= ? AND o.level = ?",
			append(args[:len(args):len(args)], level, level)
		if position != nil && int64(level) == position[0] {
			query, params = query+" AND (o.later, o.earlier) < (?, ?)", append(params, position[1], position[2])
		}

		rows, err := all(l.reader, scanOpenPair, query+" ORDER BY l.commit_id DESC, o.earlier DESC LIMIT ?",
			append(params, f.Limit+1-len(list))...)
		if err != nil {
			return nil, fmt.Errorf("read overlaps: %w", err)
		}
		list = append(list, rows...)
	}
	return list, nil
}

// pairsOf reads the pairs of the tips that match the filter's commit and branch.
func (l *pairLister) pairsOf(f RadarFilter, position []int64) ([]openPair, error) {
	where, args := "repo_id = ? AND "+isLive, []any{l.repo.id}
	if f.Branch != "" {
		where, args = where+" AND branch = ?", append(args, f.Branch)
	}
	if f.Commit != "" {
		c, err := l.findCommit(l.repo, f.Commit)
		if err != nil {
			return nil, err
		}
		where, args = where+" AND commit_id = ?", append(args, c.id)
	}

	tips, err := all(l.reader, scanID, "SELECT commit_id FROM tips WHERE "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read tips: %w", err)
	}

	var list []openPair
	for _, id := range tips {
		err := l.eachPair(id, func(p openPair) {
			if (f.Level == radar.NoLevel || f.Level == p.level) &&
				(position == nil || slices.Compare(p.position(), position) < 0) {
				list = append(list, p)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b openPair) int { return slices.Compare(b.position(), a.position()) })
	return list[:min(len(list), f.Limit+1)], nil
}

// position returns the numbers of the pair's cursor. Lists are in descending order of
// positions.
func (p openPair) position() []int64 { return []int64{int64(p.level), p.later, p.earlier} }

// eachPair calls visit for each open overlap of a tip.
func (l *pairLister) eachPair(tip int64, visit func(openPair)) error {
	for _, from := range []string{withEarlier + "WHERE " + earlierThan, withLater + "WHERE " + laterThan} {
		err := l.Each(func(row scanner) error {
			p, err := scanOpenPair(row)
			visit(p)
			return err
		}, pairColumns+from+" AND"+isOpen, tip, l.oldest, l.oldest)
		if err != nil {
			return fmt.Errorf("read overlaps: %w", err)
		}
	}
	return nil
}

// pair compares the two commits of a pair again, because the database contains only the
// level and the strongest path of an overlap.
func (l *pairLister) pair(p openPair) (ledger.RadarPair, error) {
	later, err := l.side(p.later)
	if err != nil {
		return ledger.RadarPair{}, err
	}
	earlier, err := l.side(p.earlier)
	if err != nil {
		return ledger.RadarPair{}, err
	}
	o := radar.Compare(later.footprint, earlier.footprint,
		radar.Options{Shared: radar.SharesUnmerged(later.tip, earlier.tip)})
	pair := pairOf(later.RadarCommit, earlier.RadarCommit, o)
	pair.Since = p.since
	return pair, nil
}

func pairOf(later, earlier ledger.RadarCommit, o radar.Overlap) ledger.RadarPair {
	return ledger.RadarPair{
		Level: o.Level, Commit: later, Other: earlier, SameAuthor: later.Author.SameAs(earlier.Author),
		Paths: o.Strongest(), PathsTotal: len(o.Paths),
	}
}

func (l *pairLister) side(commitID int64) (side, error) {
	if v, ok := l.sides[commitID]; ok {
		return v, nil
	}
	k, err := scanSide(l.Row(selectSide+"= ?", commitID))
	if err != nil {
		return k.row, fmt.Errorf("read commit: %w", err)
	}
	v := k.row
	d, err := l.findDetails(commitID)
	if err != nil {
		return v, err
	}
	v.tip.Ancestors = d.ancestors
	v.footprint = l.radar.Footprint(d.changes)
	l.sides[commitID] = v
	return v, nil
}

// isTruncated is the condition that a commit c had more overlaps than are recorded.
const isTruncated = "EXISTS (SELECT 1 FROM tips WHERE commit_id = c.id AND " + isLive + " AND truncated = 1)"

// selectSide reads the side of a pair from a commit c. It ends before the condition on
// the row id.
const selectSide = "SELECT c.id, c.sha, c.branch, c.base, c.author_name, c.author_email, c.message, " + isTruncated +
	" FROM commits c WHERE c.id "

func scanSide(row scanner) (keyed[side], error) {
	var k keyed[side]
	var message string
	v := &k.row
	err := row.Scan(&k.id, &v.SHA, &v.Branch, &v.tip.Base, &v.Author.Name, &v.Author.Email, &message, &v.OverlapsTruncated)
	v.Subject = ledger.Subject(message)
	return k, err
}

// counts returns the number of overlaps by level.
func (t tipResult) counts() map[string]int {
	counts := noOverlaps()
	for _, f := range t.overlaps {
		counts[f.Level.String()]++
	}
	return counts
}

func noOverlaps() map[string]int {
	return map[string]int{radar.High.String(): 0, radar.Medium.String(): 0, radar.Low.String(): 0}
}

// result returns the strongest overlaps of a scan, at most limit.
func (rd reader) result(t tipResult, own ledger.RadarCommit, limit int) (ledger.RadarResult, error) {
	list := t.overlaps[:min(len(t.overlaps), limit)]
	r := ledger.RadarResult{Overlaps: []ledger.RadarPair{}, Truncated: t.more || len(list) < len(t.overlaps)}

	others := make(map[int64]ledger.RadarCommit, len(list))
	ids := make([]any, len(list))
	for i, f := range list {
		ids[i] = f.CommitID
	}
	err := rd.EachIn(func(row scanner) error {
		v, err := scanSide(row)
		others[v.id] = v.row.RadarCommit
		return err
	}, selectSide+"IN ", 1, ids)
	if err != nil {
		return r, fmt.Errorf("read commits: %w", err)
	}

	for _, f := range list {
		pair := pairOf(own, others[f.CommitID], f.Overlap)
		if f.Place > t.place {
			pair = pairOf(others[f.CommitID], own, f.Overlap.Swap())
		}
		pair.Since = f.since
		r.Level = max(r.Level, pair.Level)
		r.Overlaps = append(r.Overlaps, pair)
	}
	return r, nil
}

// asSide returns a commit as the side of a pair.
func asSide(c ledger.CommitSummary) ledger.RadarCommit {
	return ledger.RadarCommit{SHA: c.SHA, Branch: c.Branch, Author: c.Author, Subject: ledger.Subject(c.Message),
		OverlapsTruncated: c.OverlapsTruncated}
}

// addOverlaps adds to a commit the number of its open overlaps by level, and whether it
// had more than are recorded.
func (l *pairLister) addOverlaps(v *ledger.CommitSummary, commitID int64) error {
	counts := noOverlaps()
	v.Overlaps = counts
	if !l.settings.Enabled {
		return nil
	}

	for _, from := range []string{withEarlier + "WHERE " + earlierThan, withLater + "WHERE " + laterThan} {
		var high, medium, low int
		err := l.Row(countColumns+from+" AND"+isOpen,
			radar.High, radar.Medium, radar.Low, commitID, l.oldest, l.oldest).Scan(&high, &medium, &low)
		if err != nil {
			return fmt.Errorf("count overlaps: %w", err)
		}
		counts[radar.High.String()] += high
		counts[radar.Medium.String()] += medium
		counts[radar.Low.String()] += low
	}

	err := l.Row("SELECT "+isTruncated+" FROM commits c WHERE id = ?", commitID).Scan(&v.OverlapsTruncated)
	if err != nil {
		return fmt.Errorf("read tip: %w", err)
	}
	return nil
}
