package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// AddPlans adds to plans the query plan of every statement that the store has run since the last
// call, as steps. A connection forgets its statements if they are many.
func (s *Store) AddPlans(ctx context.Context, plans map[string][]string) error {
	add := func(c *sqldb.Conn) error {
		for _, statement := range sqlite.Forget(c) {
			if plans[statement] != nil {
				continue
			}
			steps, err := sqlite.Plan(c, statement)
			if err != nil {
				return err
			}
			plans[statement] = steps
		}
		sqlite.Forget(c) // those that Plan has run
		return nil
	}

	for lane := range sqldb.Lanes {
		for range 8 { // all connections of the lane
			if err := s.db.ReadLoose(ctx, sqldb.Reader{Lane: lane}, add); err != nil {
				return err
			}
		}
	}
	return s.db.Write(ctx, sqldb.Write{Do: add})
}

// LogRoots returns the roots of all logs.
func (s *Store) LogRoots(ctx context.Context) ([]events.LogRoot, error) {
	return txn.Read(ctx, s.db, txn.ForWrite(""), func(rd txn.Reader) ([]events.LogRoot, error) {
		return events.LogRoots(rd.Conn)
	})
}

// Statements returns the statements of plans, sorted.
func Statements(plans map[string][]string) []string { return slices.Sorted(maps.Keys(plans)) }

// LoseVerdicts deletes what expressions say of attestations.
func (s *Store) LoseVerdicts(ctx context.Context) error { return s.Run(ctx, "DELETE FROM verdicts") }

// Run runs a script in the writer. Nothing is cached afterwards.
func (s *Store) Run(ctx context.Context, script string) error {
	return s.db.Change(ctx, "", func(t *txn.Tx) error {
		s.Signers.Evict()
		s.Facts.Evict()
		return t.Run(script)
	})
}

// EvaluatedBatch is the number of verdicts that a step stores.
const EvaluatedBatch = states.EvaluatedBatch

// EvaluateNext evaluates expressions for a job that settles the first repo, and counts all verdicts.
func (s *Store) EvaluateNext(ctx context.Context) (more bool, verdicts int, err error) {
	if more, err = s.States.EvaluateNext(ctx, backlog.Job{Repo: 1, Task: backlog.Settle, Org: 1}); err != nil {
		return false, 0, err
	}
	_, err = txn.Read(ctx, s.db, txn.ForWrite(""), func(rd txn.Reader) (struct{}, error) {
		return struct{}{}, rd.Row("SELECT count(*) FROM verdicts").Scan(&verdicts)
	})
	return more, verdicts, err
}

// SettleBatch settles the next commits after a policy change as Work does, but without evaluating expressions
// before. stuck reports that it did nothing.
func (s *Store) SettleBatch(ctx context.Context, org, repo string) (stuck bool, err error) {
	return txn.Write(ctx, s.db, sqldb.Write{Org: ""}, func(t *txn.Tx) (stuck bool, err error) {
		r, err := t.FindRepo(org, repo)
		if err != nil {
			return false, err
		}
		_, stuck, err = s.States.SettleSome(t, &backlog.Job{Repo: r.ID, Task: backlog.Settle, Org: r.OrgID})
		return stuck, err
	})
}

// InsertTips inserts n tips of one branch, which are deployed (2) or in flight (1).
func (s *Store) InsertTips(ctx context.Context, org, repo, branch string, flight, n int) error {
	return s.db.Change(ctx, org, func(t *txn.Tx) error {
		r, err := t.FindRepo(org, repo)
		if err != nil {
			return err
		}
		var first int64
		if err := t.Row("SELECT max(id) + 1 FROM commits").Scan(&first); err != nil {
			return err
		}
		return t.Run(fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT %[1]d UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < %[1]d + %[2]d)
INSERT INTO commits (id, repo_id, sha, state, state_since, registered_at, policy_version, branch)
SELECT n, %[3]d, printf('%%040x', (1 << 40) + n), 4, 1, 1, 1, '%[4]s' FROM numbers;
INSERT INTO tips (commit_id, repo_id, sha, branch, flight, place, seq, opened_at, policy_version, lineage)
SELECT id, repo_id, sha, branch, %[5]d, (1 << 40) + id, (1 << 40) + id, %[6]d, 1, '  ' FROM commits
WHERE id >= %[1]d`, first, n, r.ID, branch, flight, t.Now))
	})
}

// InsertRepos inserts n repos r1 to rn.
func (s *Store) InsertRepos(ctx context.Context, org string, n int) error {
	return s.db.Change(ctx, org, func(t *txn.Tx) error {
		id, err := t.OrgID(org)
		if err != nil {
			return err
		}
		return t.Run(fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %[1]d)
INSERT INTO repos (org_id, name, default_branch, created_at, policy_version, policy_digest)
SELECT %[2]d, 'r' || n, 'main', 1, 1, '' FROM numbers;
INSERT INTO policies (repo_id, version, digest, contract, created_at, created_by)
SELECT id, 1, '', CAST('{"requirements":[]}' AS BLOB), 1, '' FROM repos
WHERE org_id = %[2]d AND name LIKE 'r%%'`, n, id))
	})
}

// RemapInherited finds what commits inherit from a commit again, as after its statements
// were mapped by other rules.
func (s *Store) RemapInherited(ctx context.Context, org, repo, sha string) error {
	return s.db.Change(ctx, org, func(t *txn.Tx) error {
		r, err := t.FindRepo(org, repo)
		if err != nil {
			return err
		}
		c, err := facts.FindCommit(t.Reader, r, sha)
		if err != nil {
			return err
		}

		keys, err := txn.All(t.Reader, func(row txn.Scanner) (key facts.LatestKey, err error) {
			return key, row.Scan(&key.Commit, &key.Predicate, &key.Slot, &key.Signer)
		}, "SELECT commit_id, predicate_id, slot, signer_id FROM latest WHERE commit_id = ?", c.ID)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := s.Facts.RemapInherited(t, ledger.Cause{Type: ledger.CauseUpgrade}, key, key); err != nil {
				return err
			}
		}
		return nil
	})
}
