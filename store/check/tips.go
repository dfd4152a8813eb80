package check

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// tips checks that what the radar compares are commits of the repo. What it has found is not derived again.
func (c *checker) tips(ctx context.Context, o *org, r repo) error {
	err := c.read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error {
			var sha, said string
			err := row.Scan(&sha, &said)
			if err == nil {
				c.problemf("radar", o.name, "commit "+r.name+"@"+sha, "the radar has it as %s of this repo", said)
			}
			return err
		}, `
SELECT c.sha, t.sha FROM tips t /*+ordered*/ JOIN commits c ON c.id = t.commit_id
WHERE t.repo_id = ? AND (c.repo_id <> t.repo_id OR c.sha <> t.sha) ORDER BY t.commit_id`, r.id)
	})
	if err != nil {
		return fmt.Errorf("read tips: %w", err)
	}
	return nil
}
