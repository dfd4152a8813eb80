package derived

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/store/check/report"
	"github.com/ledgerd/ledgerd/store/recheck"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// selectOtherTips finds tips of a repo that are not as their commits say. The clocks of servers may differ a
// little, and one that an operator has accepted goes back.
const selectOtherTips = `
SELECT c.sha, CASE WHEN c.repo_id <> t.repo_id OR c.sha <> t.sha THEN t.sha ELSE '' END
FROM tips t /*+ordered*/ JOIN commits c ON c.id = t.commit_id
WHERE t.repo_id = ? AND (c.repo_id <> t.repo_id OR c.sha <> t.sha OR t.place > t.seq
  OR t.flight < 3 AND (t.flight = 2) <> (c.state = 4) OR t.flight < 4 AND (t.flight = 1) <> (t.ended_at = 0)
  OR t.opened_at < c.registered_at - 7200000 AND NOT EXISTS (SELECT 1 FROM clock))
ORDER BY t.commit_id`

// radar checks that the tips of a repo are commits of it, and derives again the overlaps that block them.
func (o *Org) radar(ctx context.Context, r repo) error {
	err := o.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error {
			var sha, said string
			err := row.Scan(&sha, &said)
			problem := "its times as a tip, its place, or whether it is in flight, do not fit its state or each other"
			if said != "" {
				problem = "the radar has it as " + said + " of this repo"
			}
			if err == nil {
				o.Problemf("radar", o.Name, "commit "+r.name+"@"+sha, "%s", problem)
			}
			return err
		}, selectOtherTips, r.id)
	})
	if err != nil {
		return fmt.Errorf("read tips: %w", err)
	}

	return o.Store.RecheckRadar(ctx, r.id, func(result recheck.RadarResult) {
		for _, d := range result.Differences {
			o.Problemf("radar", o.Name, "commit "+r.name+"@"+d.Commit, "%s", d.Problem)
		}
		for _, reason := range result.Unchecked {
			o.Incompletef("%s: overlaps of %s that may block commits: %s", o.Name, r.name, reason)
		}
	})
}

// CheckOverlaps checks that the radar has found overlaps only between two tips of one repo.
func CheckOverlaps(ctx context.Context, d *report.Database) error {
	return d.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error {
			var later, earlier int64
			err := row.Scan(&later, &earlier)
			if err == nil {
				d.Problemf("radar", "", fmt.Sprintf("overlap of the commits in row %d and %d", later, earlier),
					"they are not two tips of one repo")
			}
			return err
		}, `
SELECT o.later, o.earlier
FROM overlaps o LEFT JOIN tips l ON l.commit_id = o.later LEFT JOIN tips e ON e.commit_id = o.earlier
WHERE l.commit_id IS NULL OR e.commit_id IS NULL OR l.repo_id <> e.repo_id OR o.later = o.earlier
ORDER BY o.later, o.earlier`)
	})
}
