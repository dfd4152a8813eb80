package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Plans returns the query plan of every statement that the store has run, as steps.
func (s *Store) Plans(ctx context.Context) (map[string][]string, error) {
	plans := make(map[string][]string)
	add := func(c *sqldb.Conn) error {
		for _, statement := range c.Statements() {
			steps, err := c.Plan(statement)
			if err != nil {
				return err
			}
			plans[statement] = steps
		}
		return nil
	}
	for lane := range sqldb.Lanes {
		for range 8 { // all connections of the lane
			if err := s.db.ReadLoose(ctx, sqldb.Reader{Lane: lane}, add); err != nil {
				return nil, err
			}
		}
	}
	return plans, s.db.Write(ctx, sqldb.Write{Do: add})
}

// Statements returns the statements of plans, sorted.
func Statements(plans map[string][]string) []string { return slices.Sorted(maps.Keys(plans)) }

// InsertDeployedTips inserts n deployed tips of one branch.
func (s *Store) InsertDeployedTips(ctx context.Context, org, repo, branch string, n int) error {
	return s.write(ctx, org, func(t *tx) error {
		r, err := t.findRepo(org, repo)
		if err != nil {
			return err
		}
		for i := range n {
			id, err := t.Insert(`
INSERT INTO commits (repo_id, sha, state, state_since, registered_at, policy_version, branch)
VALUES (?, ?, 4, 1, 1, 1, ?)`,
				r.id, fmt.Sprintf("%040x", 1<<40+i), branch)
			if err != nil {
				return err
			}

			_, err = t.Exec(`
INSERT INTO tips (commit_id, repo_id, sha, branch, flight, place, seq, opened_at, policy_version, lineage)
VALUES (?, ?, ?, ?, 2, ?, ?, ?, 1, '  ')`, id, r.id, fmt.Sprintf("%040x", 1<<40+i), branch, 1<<40+i, 1<<40+i, t.now)
			if err != nil {
				return err
			}
		}
		return nil
	})
}
