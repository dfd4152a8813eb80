package overlaps

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A RadarFilter selects the overlaps of a list. Empty fields do not filter.
type RadarFilter struct {
	txn.Query
	Level  radar.Level // exactly this level
	Commit string      // full id or prefix of one of the two commits
	Branch string      // branch of one of the two commits
}

// An OpenPair is an open overlap of two tips.
type OpenPair struct {
	Later   int64
	earlier int64
	level   radar.Level
	since   ledger.Time
}

func scanOpenPair(row txn.Scanner) (OpenPair, error) {
	var p OpenPair
	err := row.Scan(&p.Later, &p.earlier, &p.level, &p.since)
	return p, err
}

// Overlaps lists the open overlaps of a repo's commits, the strongest first. Overlaps of
// the same level are in the order of the later commit, the last registered first.
func (ra *Radar) Overlaps(ctx context.Context, org, repo string, f RadarFilter) (ledger.Page[ledger.RadarPair], error) {
	return txn.Read(ctx, ra.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[ledger.RadarPair], err error) {
		d, err := ra.facts.DeriverOf(rd, org, repo)
		if err != nil {
			return list, err
		}

		cursors := rd.Listing("overlaps", d.Repo.ID)
		position, err := cursors.Position(f.Query, 3) // level, later, earlier
		if err != nil {
			return list, err
		}
		l := Lister(rd, d)
		pairs, end, err := l.Pairs(f, position)
		if err != nil {
			return list, err
		}
		list.Data, pairs, err = l.compare(pairs, f.Level)
		if len(pairs) > 0 {
			end = pairs[0].position() // the page is full
		}
		if end != nil {
			list.NextCursor = cursors.Cursor(end...)
		}
		return list, err
	})
}

// maxRecordBytes is the maximum size of the change records that a page of overlaps reads.
// There is at least one pair on a page.
const maxRecordBytes = 16 << 20

// compare compares the commits of each pair again. It omits pairs that no longer overlap,
// or not at the given level: the ignored paths may have changed since the last scan. If the
// change records are too large for a page, it returns the rest of the pairs, starting with
// the last one that it has compared.
func (l *PairLister) compare(
	pairs []OpenPair, only radar.Level,
) (list []ledger.RadarPair, rest []OpenPair, err error) {
	list = make([]ledger.RadarPair, 0, len(pairs))
	for i, p := range pairs {
		pair, err := l.pair(p)
		if err != nil {
			return nil, nil, err
		}
		if pair.Level != radar.NoLevel && (only == radar.NoLevel || only == pair.Level) {
			list = append(list, pair)
		}
		if l.size > maxRecordBytes && i+1 < len(pairs) {
			rest = pairs[i:]
			break
		}
	}
	slices.SortStableFunc(list, func(a, b ledger.RadarPair) int { return cmp.Compare(b.Level, a.Level) })
	return list, rest, nil
}

// A PairLister lists open overlaps of one repo. It reads each commit once.
type PairLister struct {
	txn.Reader
	repo     txn.Repo
	settings conflicts.Settings
	radar    *radar.Radar
	oldest   ledger.Time
	sides    map[int64]side
	size     int // of the change records in sides, in bytes
	inFlight int // the number of tips in flight, up to txn.MaxExamined; -1 if not known
	Examined int // the number of rows that AddOverlaps has examined
}

// A side is one commit of a pair.
type side struct {
	ledger.RadarCommit
	tip       radar.Tip
	footprint *radar.Footprint
	size      int // of the change record in bytes
}

// Lister returns a reader of the overlaps of a repo.
func Lister(rd txn.Reader, d *facts.Deriver) *PairLister {
	return &PairLister{
		Reader: rd, repo: d.Repo, settings: d.Contract.Radar, radar: radar.New(d.Contract.Radar.Ignore),
		oldest: d.Contract.Radar.Oldest(rd.Now), sides: make(map[int64]side), inFlight: -1,
	}
}

// Pairs reads a page of pairs after the position. It also returns the position of the last
// row that it has examined, or nil if there are no more.
func (l *PairLister) Pairs(f RadarFilter, position []int64) (list []OpenPair, end []int64, err error) {
	if !l.settings.Enabled {
		return nil, nil, nil
	}
	w := l.walk()
	if f.Commit != "" || f.Branch != "" {
		tips, few, err := l.matching(&w, f)
		if err != nil {
			return nil, nil, err
		}
		if few {
			return l.pairsOf(tips, f, position)
		}
	}

	for level, budget := radar.High, txn.MaxExamined; level > radar.NoLevel; level-- {
		if f.Level != radar.NoLevel && f.Level != level || position != nil && int64(level) > position[0] {
			continue
		}
		if budget <= 0 || len(list) == f.Limit {
			return list, []int64{int64(level), math.MaxInt64, math.MaxInt64}, nil
		}
		var start []any
		if position != nil && int64(level) == position[0] {
			start = []any{position[1], position[2]}
		}

		p, err := w.ofLevel(level).Run(l.Conn, start, f.Limit-len(list), budget)
		if err != nil {
			return nil, nil, fmt.Errorf("list overlaps: %w", err)
		}
		for _, r := range p.Rows {
			list = append(list, r.Row)
		}
		if p.End != nil {
			earlier, _ := p.End[1].(int64) // NULL: no overlap of the tip is examined
			return list, []int64{int64(level), p.End[0].(int64), earlier}, nil
		}
		budget -= p.Examined
	}
	return list, nil, nil
}

// A pairWalk is a walk of the open overlaps by the later tips in flight, the newest first.
type pairWalk struct {
	txn.Walk[OpenPair]
	// only is the tip whose overlaps the walk reads; 0 means those of all tips.
	only int64
}

func (l *PairLister) walk() pairWalk {
	return pairWalk{Walk: txn.Walk[OpenPair]{
		Where: "l.repo_id = ? AND l." + facts.IsInFlight, Args: []any{l.repo.ID},
		Keys: []string{"l.commit_id", "o.earlier"}, Down: true,
		Key:     func(p txn.Keyed[OpenPair]) []any { return []any{p.Row.Later, p.Row.earlier} },
		Columns: pairColumns, Joins: " /*+ordered*/ JOIN tips e ON e.commit_id = o.earlier",
		Scan: func(row txn.Scanner) (p txn.Keyed[OpenPair], err error) {
			p.Row, err = scanOpenPair(row)
			return p, err
		},
		Filter: " AND" + IsOpen, FilterArgs: []any{l.oldest, l.oldest},
	}}
}

// onlyOneTip limits the overlaps o of a later tip l to those with one tip. SQLite looks up
// the one overlap of each l, and reads all overlaps of the tip itself. The parameters are
// the tip, except the fourth one, which is the greatest integer.
const onlyOneTip = `
AND o.earlier >= CASE l.commit_id WHEN ? THEN 0 ELSE CAST(? AS BIGINT) END
AND o.earlier <= CASE l.commit_id WHEN ? THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END`

// ofLevel returns a walk of the overlaps of one level. It examines each tip, and the
// overlaps of those tips that have had one of this level or above. The level is a literal,
// because parameters have the order of the text.
func (w pairWalk) ofLevel(level radar.Level) txn.Walk[OpenPair] {
	number := strconv.Itoa(int(level))
	w.From = "tips l /*+index tips_in_flight*/ LEFT JOIN overlaps o ON o.later = l.commit_id AND l.level >= " + number
	if w.only != 0 {
		w.From += onlyOneTip
		w.Args = append([]any{w.only, w.only, w.only, math.MaxInt64, w.only}, w.Args...)
	}
	w.Filter += " AND o.level = " + number
	return w.Walk
}

// matching returns the tips that match the filter's commit and branch, and whether they are
// so few that all their overlaps can be read. It adds these conditions to the walk.
func (l *PairLister) matching(w *pairWalk, f RadarFilter) (tips []int64, few bool, err error) {
	where, args := "repo_id = ? AND "+facts.IsLive, []any{l.repo.ID}
	if f.Branch != "" {
		where, args = where+" AND branch = ?", append(args, f.Branch)
	}
	var commit int64
	if f.Commit != "" {
		c, err := facts.FindCommit(l.Reader, l.repo, f.Commit)
		if err != nil {
			return nil, false, err
		}
		commit = c.ID
		where, args = where+" AND commit_id = ?", append(args, commit)
	}
	w.Filter += " AND (? = '' OR l.branch = ? OR e.branch = ?)" +
		" AND (CAST(? AS BIGINT) = 0 OR l.commit_id = ? OR e.commit_id = ?)"
	w.FilterArgs = append(w.FilterArgs, f.Branch, f.Branch, f.Branch, commit, commit, commit)

	tips, err = txn.All(l.Reader, txn.ScanID, "SELECT commit_id FROM tips WHERE "+where+" LIMIT ?",
		append(args, txn.MaxWalks+1)...)
	if err != nil {
		return nil, false, fmt.Errorf("read tips: %w", err)
	}
	if len(tips) == 1 {
		w.only = tips[0]
	}
	inFlight, err := l.countInFlight()
	return tips, len(tips) <= txn.MaxWalks && len(tips)*(inFlight+radar.MaxPairs) <= txn.MaxExamined, err
}

// countInFlight returns the number of the repo's tips in flight, up to txn.MaxExamined.
func (l *PairLister) countInFlight() (int, error) {
	if l.inFlight >= 0 {
		return l.inFlight, nil
	}
	err := l.Row("SELECT count(*) FROM (SELECT 1 FROM tips WHERE repo_id = ? AND "+facts.IsInFlight+" LIMIT ?) counted",
		l.repo.ID, txn.MaxExamined).Scan(&l.inFlight)
	if err != nil {
		return 0, fmt.Errorf("count tips: %w", err)
	}
	return l.inFlight, nil
}

// pairsOf reads a page of the pairs of the given tips, as pairs does.
func (l *PairLister) pairsOf(tips []int64, f RadarFilter, position []int64) (list []OpenPair, end []int64, err error) {
	for _, id := range tips {
		err := l.eachPair(id, func(p OpenPair) {
			if (f.Level == radar.NoLevel || f.Level == p.level) &&
				(position == nil || slices.Compare(p.position(), position) < 0) {
				list = append(list, p)
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(list, func(a, b OpenPair) int { return slices.Compare(b.position(), a.position()) })
	if len(list) > f.Limit {
		list = list[:f.Limit]
		end = list[f.Limit-1].position()
	}
	return list, end, nil
}

// position returns the numbers of the pair's cursor. Lists are in descending order of
// positions.
func (p OpenPair) position() []int64 { return []int64{int64(p.level), p.Later, p.earlier} }

// eachPair calls visit for each open overlap of a tip.
func (l *PairLister) eachPair(tip int64, visit func(OpenPair)) error {
	for _, from := range []string{WithEarlier + "WHERE " + EarlierThan, withLater + "WHERE " + laterThan} {
		err := l.EachLong(func(row txn.Scanner) error {
			p, err := scanOpenPair(row)
			visit(p)
			return err
		}, "SELECT "+pairColumns+" "+from+" AND"+IsOpen, tip, l.oldest, l.oldest)
		if err != nil {
			return fmt.Errorf("read overlaps: %w", err)
		}
	}
	return nil
}

// pair compares the two commits of a pair again, because the database contains only the
// level and the strongest path of an overlap.
func (l *PairLister) pair(p OpenPair) (ledger.RadarPair, error) {
	later, err := l.side(p.Later)
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

func (l *PairLister) side(commitID int64) (side, error) {
	if v, ok := l.sides[commitID]; ok {
		return v, nil
	}
	k, err := scanSide(l.Row(selectSide+"= ?", commitID))
	if err != nil {
		return k.Row, fmt.Errorf("read commit: %w", err)
	}
	v := k.Row
	d, err := facts.FindDetails(l.Reader, commitID)
	if err != nil {
		return v, err
	}
	v.tip.Ancestors = d.Ancestors
	v.footprint = l.radar.Footprint(d.Changes)
	l.size += v.size
	l.sides[commitID] = v
	return v, nil
}

// isTruncated is the condition that a commit c had more overlaps than are recorded.
const isTruncated = "EXISTS (SELECT 1 FROM tips WHERE commit_id = c.id AND " + facts.IsLive + " AND truncated = 1)"

// selectSide reads the side of a pair from a commit c. It ends before the condition on
// the row id.
const selectSide = "SELECT c.id, c.sha, c.branch, c.base, c.author_name, c.author_email, c.message, " + isTruncated +
	", coalesce((SELECT length(changes) FROM commit_details WHERE commit_id = c.id), 0) FROM commits c WHERE c.id "

func scanSide(row txn.Scanner) (txn.Keyed[side], error) {
	var k txn.Keyed[side]
	var message string
	v := &k.Row
	err := row.Scan(&k.ID, &v.SHA, &v.Branch, &v.tip.Base, &v.Author.Name, &v.Author.Email, &message,
		&v.OverlapsTruncated, &v.size)
	v.Subject = ledger.Subject(message)
	return k, err
}

// Counts returns the number of overlaps by level.
func (t TipResult) Counts() map[string]int {
	counts := NoOverlaps()
	for _, f := range t.Overlaps {
		counts[f.Level.String()]++
	}
	return counts
}

// NoOverlaps returns the numbers of overlaps by level: none.
func NoOverlaps() map[string]int {
	return map[string]int{radar.High.String(): 0, radar.Medium.String(): 0, radar.Low.String(): 0}
}

// Result returns the strongest overlaps of a scan, at most limit.
func Result(rd txn.Reader, t TipResult, own ledger.RadarCommit, limit int) (ledger.RadarResult, error) {
	list := t.Overlaps[:min(len(t.Overlaps), limit)]
	r := ledger.RadarResult{
		Overlaps: []ledger.RadarPair{}, Truncated: t.More || len(list) < len(t.Overlaps), Behind: t.behind,
	}

	others := make(map[int64]ledger.RadarCommit, len(list))
	ids := make([]any, len(list))
	for i, f := range list {
		ids[i] = f.CommitID
	}
	err := rd.EachIn(func(row txn.Scanner) error {
		v, err := scanSide(row)
		others[v.ID] = v.Row.RadarCommit
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

// AsSide returns a commit as the side of a pair.
func AsSide(c ledger.CommitSummary) ledger.RadarCommit {
	return ledger.RadarCommit{SHA: c.SHA, Branch: c.Branch, Author: c.Author, Subject: ledger.Subject(c.Message),
		OverlapsTruncated: c.OverlapsTruncated}
}

// AddOverlaps adds to a commit the number of its open overlaps by level, and whether there
// may be more.
func (l *PairLister) AddOverlaps(v *ledger.CommitSummary, commitID int64) error {
	counts := NoOverlaps()
	v.Overlaps = counts
	if !l.settings.Enabled {
		return nil
	}

	tip, ok, err := facts.FindTip(l.Reader, commitID)
	if err != nil || !ok || tip.Flight >= radarindex.Superseded {
		return err
	}
	err = l.Row("SELECT truncated FROM tips WHERE commit_id = ?", commitID).Scan(&v.OverlapsTruncated)
	if err != nil {
		return fmt.Errorf("read tip: %w", err)
	}
	if tip.OpenedAt < l.oldest {
		return nil
	}

	if tip.Flight == radarindex.InFlight {
		if _, err := l.countPairs(counts, countAsLater, tip.Place, l.oldest, commitID); err != nil {
			return err
		}
	}
	examined, err := l.countPairs(counts, countAsEarlier, l.repo.ID, tip.Place, txn.MaxExamined, commitID, l.oldest)
	v.OverlapsTruncated = v.OverlapsTruncated || examined == txn.MaxExamined
	return err
}

// countPairs adds the numbers of a query to counts. It returns the number of rows that the
// query has examined.
func (l *PairLister) countPairs(counts map[string]int, query string, args ...any) (examined int, err error) {
	var high, medium, low int
	args = append([]any{radar.High, radar.Medium, radar.Low}, args...)
	if err := l.Row(query, args...).Scan(&examined, &high, &medium, &low); err != nil {
		return 0, fmt.Errorf("count overlaps: %w", err)
	}
	l.Examined += examined
	counts[radar.High.String()] += high
	counts[radar.Medium.String()] += medium
	counts[radar.Low.String()] += low
	return examined, nil
}
