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
// others look for it. A commit that was in flight keeps its place, any other
// comes behind all. before is the number under which it was registered last.
func (t *tx) openTip(r repoRow, c commitRow, tip ledger.Tip, footprint *ledger.Footprint, changes []ledger.Change) (row tipRow, before int64, err error) {
	row, known, err := findTip(t.conn, c.id)
	if err != nil {
		return row, 0, err
	}
	before = row.seq
	if err = t.row("SELECT coalesce(max(seq), 0) + 1 FROM tips WHERE repo_id = ?", r.id).Scan(&row.seq); err != nil {
		return row, 0, fmt.Errorf("number tip: %w", err)
	}
	if known {
		if err := t.clearPaths(c.id); err != nil {
			return row, 0, err
		}
	}
	if !known || row.flight != inFlight {
		row.place, row.openedAt = row.seq, t.now
		if err := t.clearOverlaps(c.id); err != nil {
			return row, 0, err
		}
	}
	row.Tip, row.commitID, row.flight, row.endedAt, row.policyVersion = tip, c.id, inFlight, 0, r.policyVersion
	if c.state == ledger.Deployed {
		row.flight, row.endedAt = deployed, t.now
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
	// Of changes that name one path the first counts.
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

// endTips takes the tips that the query finds out of flight, and settles those
// that they kept from being PROMOTABLE. What they overlapped with goes in the
// background: it is not open any more.
func (t *tx) endTips(d deriver, to flight, where string, args ...any) error {
	ended, err := all(t.conn, func(row scanner) (tipRow, error) { return scanTip(row) },
		"SELECT "+tipColumns+" FROM tips t WHERE t.repo_id = ? AND t.flight < ? AND "+where, append([]any{d.repo.id, to}, args...)...)
	if err != nil {
		return fmt.Errorf("read tips: %w", err)
	}
	for _, tip := range ended {
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
	if to < superseded {
		return nil // others may still have to look at it
	}
	if err := t.clearPaths(tip.commitID); err != nil || !d.contract.Radar.Blocks() {
		return err
	}
	blocked, err := all(t.conn, scanID, "SELECT o.later "+withLater+"WHERE "+laterThan+" AND l.level >= ? AND o.level >= ?", tip.commitID, d.contract.Radar.Block, d.contract.Radar.Block)
	if err != nil {
		return fmt.Errorf("read what was blocked: %w", err)
	}
	for _, id := range blocked {
		if err := t.resettle(d, id, ledger.Cause{Type: ledger.CauseRadar, ID: tip.SHA}); err != nil {
			return err
		}
	}
	return nil
}
