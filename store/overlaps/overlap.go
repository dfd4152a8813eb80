package overlaps

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// IsOpen is the condition that an overlap o of the later tip l and the earlier tip e is
// open. Its two parameters are the time before which tips are too old.
const IsOpen = " l." + facts.IsInFlight + " AND e." + facts.IsLive +
	" AND e.place < l.place AND l.opened_at >= ? AND e.opened_at >= ? "

// Parts of the queries for overlaps: of a tip as the later one, and of a tip as the earlier
// one, among the later tips l in flight.
const (
	pairColumns = "o.later, o.earlier, o.level, o.since"
	WithEarlier = "FROM overlaps o JOIN tips l ON l.commit_id = o.later JOIN tips e ON e.commit_id = o.earlier "
	withLater   = `
FROM tips e /*+ordered*/ JOIN tips l ON l.repo_id = e.repo_id AND l.place > e.place AND l.` + facts.IsInFlight + `
/*+ordered*/ JOIN overlaps o ON o.later = l.commit_id AND o.earlier = e.commit_id `
	EarlierThan = "o.later = ?"
	laterThan   = "e.commit_id = ?"
)

// Queries that count the open overlaps of a live tip: the rows that they examine, and the
// overlaps of three levels.
const (
	// countAsLater counts those with earlier tips. The tip is in flight.
	countAsLater = `
SELECT count(*), count(e.place) FILTER (WHERE o.level = ?), count(e.place) FILTER (WHERE o.level = ?),
  count(e.place) FILTER (WHERE o.level = ?)
FROM overlaps o LEFT JOIN tips e
  ON e.commit_id = o.earlier AND e.` + facts.IsLive + ` AND e.place < ? AND e.opened_at >= ?
WHERE o.later = ?`
	// countAsEarlier counts those with a limited number of the tips that came next.
	countAsEarlier = `
SELECT count(*), count(o.later) FILTER (WHERE o.level = ?), count(o.later) FILTER (WHERE o.level = ?),
  count(o.later) FILTER (WHERE o.level = ?)
FROM (SELECT commit_id, opened_at FROM tips /*+index tips_by_place*/
  WHERE repo_id = ? AND ` + facts.IsInFlight + ` AND place > ? ORDER BY place LIMIT ?) l
LEFT JOIN overlaps o ON o.later = l.commit_id AND o.earlier = ? AND l.opened_at >= ?`
)

// A PairRow is an overlap in the database.
type PairRow struct {
	later, Earlier int64
	Level          radar.Level
	reported       radar.Level // the highest level that an event has reported
	since          ledger.Time
	// Path is the path with the strongest overlap, and reason its reason.
	Path   string
	Reason radar.Reason
}

// other returns the other commit of the pair.
func (p PairRow) other(commitID int64) int64 {
	if p.Earlier == commitID {
		return p.later
	}
	return p.Earlier
}

func scanPair(row txn.Scanner) (PairRow, error) {
	var p PairRow
	err := row.Scan(&p.later, &p.Earlier, &p.Level, &p.reported, &p.since)
	return p, err
}

func comparePairs(a, b PairRow) int {
	return cmp.Or(cmp.Compare(a.later, b.later), cmp.Compare(a.Earlier, b.Earlier))
}

type pairKey struct{ later, earlier int64 }

// knownPairs reads the recorded overlaps of a commit.
func knownPairs(t *txn.Tx, commitID int64) (map[pairKey]PairRow, error) {
	rows, err := txn.All(t.Reader, scanPair,
		"SELECT later, earlier, level, announced, since FROM overlaps WHERE later = ?", commitID)
	if err != nil {
		return nil, fmt.Errorf("read overlaps: %w", err)
	}
	asEarlier, err := txn.All(t.Reader, scanPair,
		"SELECT later, earlier, o.level, announced, since "+withLater+"WHERE "+laterThan, commitID)
	if err != nil {
		return nil, fmt.Errorf("read overlaps: %w", err)
	}
	rows = append(rows, asEarlier...)
	known := make(map[pairKey]PairRow, len(rows))
	for _, p := range rows {
		known[pairKey{p.later, p.Earlier}] = p
	}
	return known, nil
}

// savePairs writes overlaps, sorted by key.
func savePairs(t *txn.Tx, pairs []PairRow) error {
	slices.SortFunc(pairs, comparePairs)
	rows := sqldb.NewRows("INSERT INTO overlaps (later, earlier, level, announced, since, path, reason) VALUES ", `
ON CONFLICT (later, earlier) DO UPDATE SET level = excluded.level, announced = excluded.announced,
  since = excluded.since, path = excluded.path, reason = excluded.reason`, 7)
	for _, p := range pairs {
		rows.Add(p.later, p.Earlier, int64(p.Level), int64(p.reported), int64(p.since), p.Path, string(p.Reason))
	}
	if err := rows.Flush(t.Conn); err != nil {
		return fmt.Errorf("insert overlaps: %w", err)
	}
	return nil
}

// clearOverlaps deletes the overlaps in which a tip is the later one. The others are
// deleted together with the later tips.
func clearOverlaps(t *txn.Tx, commitID int64) error {
	if _, err := t.Exec("DELETE FROM overlaps WHERE later = ?", commitID); err != nil {
		return fmt.Errorf("clear overlaps: %w", err)
	}
	return nil
}

// An overlap is an overlap that a scan found.
type overlap struct {
	radarindex.Match
	author ledger.Author // author of the other tip; set by addAuthors
	since  ledger.Time   // when the overlap was first recorded; 0 if it is not recorded
}

func overlapsOf(matches []radarindex.Match) []overlap {
	list := make([]overlap, len(matches))
	for i, m := range matches {
		list[i].Match = m
	}
	return list
}

// addAuthors sets the author of each overlap.
func addAuthors(rd txn.Reader, list []overlap) error {
	at := make(map[int64]int, len(list))
	ids := make([]any, len(list))
	for i, f := range list {
		at[f.CommitID], ids[i] = i, f.CommitID
	}
	err := rd.EachIn(func(row txn.Scanner) error {
		var id int64
		var author ledger.Author
		err := row.Scan(&id, &author.Name, &author.Email)
		list[at[id]].author = author
		return err
	}, "SELECT id, author_name, author_email FROM commits WHERE id IN ", 1, ids)
	if err != nil {
		return fmt.Errorf("read authors: %w", err)
	}
	return nil
}
