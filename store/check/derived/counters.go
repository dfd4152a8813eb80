package derived

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// counters are queries for counters that are wrong. Each returns a row for each: which one, what
// it says, and what there is. The parameter is the row id of an org.
var counters = []struct{ row, query string }{
	{"attestations of repo", `
SELECT r.name, r.attestations, (SELECT count(*) FROM attestations a WHERE a.repo_id = r.id)
FROM repos r WHERE r.org_id = ?`},
	{"attestations of predicate", `
SELECT p.name, p.attestations, (SELECT count(*) FROM attestations a JOIN repos r ON r.id = a.repo_id
  WHERE r.org_id = p.org_id AND a.predicate_id = p.id)
FROM predicates p WHERE p.org_id = ?`},
	{"violations of org", `
SELECT o.name, o.violations, (SELECT count(*) FROM violations v WHERE v.org_id = o.id) FROM orgs o WHERE o.id = ?`},
	{"open violations of org", `
SELECT o.name, o.open_violations, (SELECT count(*) FROM violations v WHERE v.org_id = o.id AND v.closed_at = 0)
FROM orgs o WHERE o.id = ?`},
	{"open violations of repo", `
SELECT r.name, r.open_violations, (SELECT count(*) FROM violations v WHERE v.repo_id = r.id AND v.closed_at = 0)
FROM repos r WHERE r.org_id = ?`},
}

// stateCounters returns, for a repo, how many commits are counted in each state, and how many
// there are.
const stateCounters = `
SELECT state, sum(counted), sum(counted) + sum(n) FROM (
  SELECT state, commits AS counted, -commits AS n FROM repo_states WHERE repo_id = ?
  UNION ALL SELECT state, 0, count(*) FROM commits WHERE repo_id = ? GROUP BY state) counts GROUP BY state`

// counters checks the counters of an org.
func (o *Org) counters(ctx context.Context, repos []repo) error {
	pending := false
	err := o.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Row(`
SELECT EXISTS (SELECT 1 FROM backlog WHERE org_id = ? AND kind IN ('close', 'excuse'))`, o.ID).Scan(&pending)
	})
	if err != nil {
		return err
	}

	for i, counter := range counters {
		if i >= 2 && pending {
			o.Uncheckedf("%s: the %s, because violations are being closed", o.Name, counter.row)
			continue
		}
		err := o.counter(ctx, o.Name, counter.row, counter.query, o.ID)
		if err != nil {
			return err
		}
	}
	for _, r := range repos {
		err := o.Read(ctx, func(conn *sqldb.Conn) error {
			return conn.Each(func(row sqldb.Scanner) error {
				var state ledger.State
				var says, has int64
				err := row.Scan(&state, &says, &has)
				if err == nil && says != has {
					o.Problemf("counter", o.Name, "commits of "+r.name+" in "+state.String(), "the counter is %d, and there are %d",
						says, has)
				}
				return err
			}, stateCounters, r.id, r.id)
		})
		if err != nil {
			return fmt.Errorf("count commits: %w", err)
		}
	}
	return nil
}

// counter checks the counters that a query returns.
func (o *Org) counter(ctx context.Context, org, what, query string, id int64) error {
	return o.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error {
			var name string
			var says, has int64
			err := row.Scan(&name, &says, &has)
			if err == nil && says != has {
				o.Problemf("counter", org, what+" "+name, "the counter is %d, and there are %d", says, has)
			}
			return err
		}, query, id)
	})
}
