package store

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// A flight is how a tip is.
type flight int

const (
	inFlight   flight = iota + 1
	deployed          // out of flight, but what overlaps with it still has to be rebased
	landed            // likewise: the base of another commit holds it
	superseded        // its branch has a newer commit
	withdrawn
	forgotten // what it changed is not known any more
)

// A tipRow is a commit that its branch registered last.
type tipRow struct {
	ledger.Tip
	commitID   int64
	flight     flight
	place, seq int64
	openedAt   ledger.Time
	endedAt    ledger.Time
	// policyVersion is that of the contract whose radar looked at it last.
	policyVersion int
}

// flies reports whether others are compared with the tip: it is in flight and
// not too old.
func (t tipRow) flies(settings ledger.RadarSettings, now ledger.Time) bool {
	return t.flight == inFlight && t.openedAt >= settings.Oldest(now)
}

const tipColumns = "t.commit_id, t.flight, t.place, t.seq, t.opened_at, t.ended_at, t.policy_version, t.branch, t.lineage, t.sha"

// scanTip reads the tipColumns, and what else the row begins with.
func scanTip(row scanner, first ...any) (tipRow, error) {
	var t tipRow
	var lineage string
	err := row.Scan(append(first, &t.commitID, &t.flight, &t.place, &t.seq, &t.openedAt, &t.endedAt, &t.policyVersion, &t.Branch, &lineage, &t.SHA)...)
	if err == nil {
		t.Base, t.Parents, t.Ancestors = splitLineage(lineage)
	}
	return t, err
}

// joinLineage writes the commits that a tip is built on: its base, its parents
// and its ancestors, with blanks between, and commas between those of a kind.
func joinLineage(t ledger.Tip) string {
	return t.Base + " " + strings.Join(t.Parents, ",") + " " + strings.Join(t.Ancestors, ",")
}

func splitLineage(text string) (base string, parents, ancestors []string) {
	base, rest, _ := strings.Cut(text, " ")
	first, second, _ := strings.Cut(rest, " ")
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, ",")
	}
	return base, list(first), list(second)
}

// findTip reads the tip that a commit is or was; false if it never was one.
func findTip(c *conn, commitID int64) (tipRow, bool, error) {
	t, err := scanTip(c.row("SELECT "+tipColumns+" FROM tips t WHERE t.commit_id = ?", commitID))
	if errors.Is(err, sql.ErrNoRows) {
		return t, false, nil
	}
	if err != nil {
		return t, false, fmt.Errorf("read tip: %w", err)
	}
	return t, true, nil
}

// openTip makes a commit the tip of its branch and puts what it changes where
// others look for it. A commit that was in flight keeps its place, and so does
// one that is deployed; any other comes behind all. before is the number that it
// had; 0 if it was no tip.
func (t *tx) openTip(d deriver, c commitRow, tip ledger.Tip, footprint *ledger.Footprint, changes []ledger.Change) (row tipRow, before int64, err error) {
	row, known, err := findTip(t.conn, c.id)
	if err != nil {
		return row, 0, err
	}
	r := d.repo
	before = row.seq
	if err = t.row("SELECT coalesce(max(seq), 0) + 1 FROM tips WHERE repo_id = ?", r.id).Scan(&row.seq); err != nil {
		return row, 0, fmt.Errorf("number tip: %w", err)
	}
	if known {
		if err := t.clearPaths(c.id); err != nil {
			return row, 0, err
		}
	}
	staysDeployed := row.flight == deployed && c.state == ledger.Deployed
	if !row.flies(d.contract.Radar, t.now) && !staysDeployed {
		row.place, row.openedAt = row.seq, t.now
		if err := t.clearOverlaps(c.id); err != nil {
			return row, 0, err
		}
	}
	row.Tip, row.commitID, row.policyVersion = tip, c.id, r.policyVersion
	switch {
	case staysDeployed:
	case c.state == ledger.Deployed:
		row.flight, row.endedAt = deployed, t.now
	default:
		row.flight, row.endedAt = inFlight, 0
	}
	_, err = t.exec(`INSERT OR REPLACE INTO tips (commit_id, repo_id, sha, branch, flight, place, seq, opened_at, ended_at, policy_version, lineage) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.id, r.id, tip.SHA, tip.Branch, row.flight, row.place, row.seq, row.openedAt, row.endedAt, r.policyVersion, joinLineage(tip))
	if err != nil {
		return row, 0, fmt.Errorf("insert tip: %w", err)
	}
	return row, before, t.touchPaths(r, c.id, footprint, changes)
}

// touchPaths puts a tip's changes where those who come later look for them.
func (t *tx) touchPaths(r repoRow, commitID int64, footprint *ledger.Footprint, changes []ledger.Change) error {
	named := footprint.Names()
	var paths, dirs []any
	for i := range changes {
		bytes, err := appendChange(nil, &changes[i])
		if err != nil {
			return fmt.Errorf("encode change: %w", err)
		}
		for _, path := range []string{changes[i].Path, changes[i].OldPath} {
			if _, ok := slices.BinarySearch(named, path); ok {
				paths = append(paths, r.id, path, commitID, bytes)
			}
		}
	}
	for _, dir := range footprint.Dirs() {
		dirs = append(dirs, r.id, dir, commitID)
	}
	// Of changes that name one path, which Registration.Check refuses, the first counts.
	if err := t.insertMany("INSERT OR IGNORE INTO tip_paths (repo_id, path, commit_id, change) VALUES ", 4, paths); err != nil {
		return fmt.Errorf("insert paths: %w", err)
	}
	if err := t.insertMany("INSERT INTO tip_dirs (repo_id, dir, commit_id) VALUES ", 3, dirs); err != nil {
		return fmt.Errorf("insert directories: %w", err)
	}
	return nil
}

// clearPaths takes away what a tip changes.
func (t *tx) clearPaths(commitID int64) error {
	return t.clear(commitID, "DELETE FROM tip_paths WHERE commit_id = ?", "DELETE FROM tip_dirs WHERE commit_id = ?")
}

// clearOverlaps takes away what a tip overlapped with as the later one; the
// others go with the tips that are later than it.
func (t *tx) clearOverlaps(commitID int64) error {
	return t.clear(commitID, "DELETE FROM overlaps WHERE later = ?")
}

func (t *tx) clear(commitID int64, statements ...string) error {
	for _, statement := range statements {
		if _, err := t.exec(statement, commitID); err != nil {
			return fmt.Errorf("clear tip: %w", err)
		}
	}
	return nil
}

// takeBranch tells whether a registered commit is the tip of its branch from now
// on, and ends the tips that it replaces. Where no branch is named, it is if it
// was. A commit that the tip is built on is not: it was pushed late, or again.
func (t *tx) takeBranch(d deriver, c commitRow, branch string) (bool, error) {
	if branch == "" {
		tip, _, err := findTip(t.conn, c.id)
		return tip.flies(d.contract.Radar, t.now), err
	}
	others, err := t.tipsBefore(d, superseded, "t.branch = ? AND t.commit_id <> ?", branch, c.id)
	if err != nil || slices.ContainsFunc(others, func(o tipRow) bool { return o.BuiltOn(c.sha) }) {
		return false, err
	}
	return true, t.endEach(d, superseded, others)
}

// tipsBefore reads the tips that the condition finds among those that have not
// come as far as the given flight.
func (t *tx) tipsBefore(d deriver, to flight, where string, args ...any) ([]tipRow, error) {
	tips, err := all(t.conn, func(row scanner) (tipRow, error) { return scanTip(row) },
		"SELECT "+tipColumns+" FROM tips t WHERE t.repo_id = ? AND t.flight < ? AND "+where, append([]any{d.repo.id, to}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read tips: %w", err)
	}
	return tips, nil
}

// endTips takes the tips that the condition finds out of flight, and settles
// those that they kept from being PROMOTABLE, and them. What they overlapped with
// goes in the background: it is not open any more.
func (t *tx) endTips(d deriver, to flight, where string, args ...any) error {
	tips, err := t.tipsBefore(d, to, where, args...)
	if err != nil {
		return err
	}
	return t.endEach(d, to, tips)
}

func (t *tx) endEach(d deriver, to flight, tips []tipRow) error {
	for _, tip := range tips {
		if err := t.endTip(d, tip, to); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) endTip(d deriver, tip tipRow, to flight) error {
	if _, err := t.exec("UPDATE tips SET flight = ?, ended_at = ? WHERE commit_id = ?", to, t.now, tip.commitID); err != nil {
		return fmt.Errorf("end tip: %w", err)
	}
	concerned := []int64{tip.commitID} // nothing blocks it any more
	if to >= superseded {              // before that, others may still have to look at it
		if err := t.clearPaths(tip.commitID); err != nil {
			return err
		}
		blocked, err := t.blockedBy(d, tip)
		if err != nil {
			return err
		}
		concerned = append(concerned, blocked...)
	}
	if !d.contract.Radar.Blocks() {
		return nil
	}
	for _, id := range concerned {
		if err := t.resettle(d, id, ledger.Cause{Type: ledger.CauseRadar, ID: tip.SHA}); err != nil {
			return err
		}
	}
	return nil
}

// blockedBy lists the commits that an overlap with an earlier tip keeps from
// being PROMOTABLE, as far as the contract's radar blocks.
func (t *tx) blockedBy(d deriver, tip tipRow) ([]int64, error) {
	if !d.contract.Radar.Blocks() {
		return nil, nil
	}
	block := d.contract.Radar.Block
	blocked, err := all(t.conn, scanID, "SELECT o.later "+withLater+"WHERE "+laterThan+" AND l.level >= ? AND o.level >= ?", tip.commitID, block, block)
	if err != nil {
		return nil, fmt.Errorf("read what was blocked: %w", err)
	}
	return blocked, nil
}
