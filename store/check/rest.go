package check

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// policies checks the contracts of a repo: their digests, and the events of their versions.
// Versions that were applied since the check of the events are left out.
func (c *checker) policies(ctx context.Context, o *org, r repo) error {
	type version struct {
		number   int64
		digest   string
		contract []byte
		seq      int64              // of its event; -1 if it has none
		said     ledger.PolicyEvent // what the row says of its event
	}
	logged := o.policies[r.id] // by version
	next, active, isChanging := int64(1), "", false
	for {
		var page []version
		err := c.Read(ctx, func(conn *sqldb.Conn) (err error) {
			page, err = sqldb.All(conn, func(row sqldb.Scanner) (v version, err error) {
				return v, row.Scan(&v.number, &v.digest, &v.contract, &v.seq, &v.said.ID, &v.said.Timestamp,
					&v.said.ChangedBy)
			}, `
SELECT p.version, p.digest, p.contract, coalesce(e.seq, -1), coalesce(e.event_id, ''), p.created_at, p.created_by
FROM policies p LEFT JOIN events e ON e.id = p.event
WHERE p.repo_id = ? AND p.version >= ? ORDER BY p.version LIMIT 20`, r.id, next)
			return err
		})
		if err != nil {
			return err
		}
		for _, v := range page {
			if isChanging = v.seq >= o.end; isChanging {
				break
			}
			row := fmt.Sprintf("policy %d of %s", v.number, r.name)
			if v.number != next {
				c.Problemf(verify.CheckPolicy, o.name, row, "the version before is missing")
			}
			next, active = v.number+1, v.digest
			said, isLogged := logged[v.number]
			if err := contractIs(v.contract, v.digest, said); err != nil {
				c.Problemf(verify.CheckPolicy, o.name, row, "%v", err)
			} else if v.number > 1 && !isLogged {
				c.Problemf(verify.CheckPolicy, o.name, row, "the log has no event of this version")
			}
			c.changeOf(o, row, v.said, said)
			delete(logged, v.number)
		}
		if len(page) == 0 || isChanging {
			break
		}
	}

	for number := range logged {
		row := fmt.Sprintf("policy %d of %s", number, r.name)
		c.Problemf(verify.CheckPolicy, o.name, row, "there is an event of the version, and no row")
	}
	if !isChanging && (r.policyVersion != next-1 || r.policyDigest != active) {
		c.Problemf(verify.CheckPolicy, o.name, "repo "+r.name, "version %d (%s) is active, and the last is %d (%s)",
			r.policyVersion, r.policyDigest, next-1, active)
	}
	return nil
}

// contractIs checks that a stored contract has the digest in its row, and is the one in its event, which is
// nil if the log has none.
func contractIs(stored []byte, says string, logged *ledger.PolicyEvent) error {
	digest := digestText(hashOf(stored))
	if err := verify.Digested(digest, says); err != nil {
		return err
	}
	contract, err := policy.ParseStored(stored)
	if err != nil {
		return fmt.Errorf("the contract cannot be read: %w", err)
	}
	return verify.Contract(digest, contract.Rules, logged)
}

// changeOf compares the event, the author and the time in the row of a contract with those in the log. said is
// nil if the log has no event of the version. Rows of early releases name no event.
func (c *checker) changeOf(o *org, row string, has ledger.PolicyEvent, said *ledger.PolicyEvent) {
	switch {
	case said == nil && has.ID != "":
		c.Problemf(verify.CheckPolicy, o.name, row, "the row has the event %s, which is not one of the version", has.ID)
	case said == nil:
	case has.ID != "" && has.ID != said.ID, has.Timestamp != said.Timestamp, has.ChangedBy != said.ChangedBy:
		const text = "by the row and its event %q, %s has changed it at %s, and by event %q %s at %s"
		c.Problemf(verify.CheckPolicy, o.name, row, text, has.ID, has.ChangedBy, has.Timestamp, said.ID, said.ChangedBy,
			said.Timestamp)
	}
}

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
func (c *checker) counters(ctx context.Context, o *org, repos []repo) error {
	pending := false
	err := c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Row(`
SELECT EXISTS (SELECT 1 FROM backlog WHERE org_id = ? AND kind IN ('close', 'excuse'))`, o.id).Scan(&pending)
	})
	if err != nil {
		return err
	}

	for i, counter := range counters {
		if i >= 2 && pending {
			c.Uncheckedf("%s: the %s, because violations are being closed", o.name, counter.row)
			continue
		}
		err := c.counter(ctx, o.name, counter.row, counter.query, o.id)
		if err != nil {
			return err
		}
	}
	for _, r := range repos {
		err := c.Read(ctx, func(conn *sqldb.Conn) error {
			return conn.Each(func(row sqldb.Scanner) error {
				var state ledger.State
				var says, has int64
				err := row.Scan(&state, &says, &has)
				if err == nil && says != has {
					c.Problemf("counter", o.name, "commits of "+r.name+" in "+state.String(), "the counter is %d, and there are %d",
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
func (c *checker) counter(ctx context.Context, org, what, query string, id int64) error {
	return c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error {
			var name string
			var says, has int64
			err := row.Scan(&name, &says, &has)
			if err == nil && says != has {
				c.Problemf("counter", org, what+" "+name, "the counter is %d, and there are %d", says, has)
			}
			return err
		}, query, id)
	})
}
