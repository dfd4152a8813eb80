package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// known returns what is known of a commit, without its changed paths.
func (c *commitRow) known() (facts.Commit, error) {
	writers, err := c.claims.decodeWriters()
	return facts.Commit{
		ID: c.sha, Tree: c.tree, Author: c.author, Writers: writers, SigningKeys: c.claims.keys(), Branch: c.branch,
		Targets: c.claimedTargets(),
	}, err
}

// knownOf reads what is known of a commit.
func (rd reader) knownOf(commitID int64) (facts.Commit, error) {
	c, err := rd.findCommitRow(commitID)
	if err != nil {
		return facts.Commit{}, err
	}
	known, err := c.known()
	if err != nil {
		return known, err
	}
	hasChanges := false
	err = rd.Each(func(row scanner) error {
		hasChanges = true
		return row.Scan(&known.Changes)
	}, "SELECT paths_key FROM commit_details WHERE commit_id = ? AND changes IS NOT NULL", commitID)
	if err != nil || !hasChanges || known.Changes != "" {
		return known, err
	}

	var f policy.Facts // a release without keys has stored the paths
	err = rd.readPaths(func(int64) *policy.Facts { return &f }, []any{commitID})
	known.Changes = policy.ChangesKey(f.Changes)
	return known, err
}

// logKnown appends an event of a commit if what is known of it is not what the last one
// says. corrected lists which claims were not true.
func (t *tx) logKnown(r repoRow, commitID int64, corrected []ledger.Correction) error {
	known, err := t.knownOf(commitID)
	if err != nil {
		return err
	}
	sum, logged := []byte{}, []byte(nil)
	if known.IsRegistered() {
		digest := known.Sum()
		sum = digest[:]
	}
	if err := t.Row("SELECT facts FROM commits WHERE id = ?", commitID).Scan(&logged); err != nil {
		return fmt.Errorf("read the logged facts of a commit: %w", err)
	}
	if bytes.Equal(sum, logged) && len(corrected) == 0 {
		return nil
	}

	if _, err := t.Exec("UPDATE commits SET facts = ? WHERE id = ?", sum, commitID); err != nil {
		return fmt.Errorf("note the logged facts of a commit: %w", err)
	}
	return t.commitEvent(r, known, corrected)
}

// logCommitsBatch is the number of commits that one write logs.
const logCommitsBatch = 200

// logCommits logs what is known of the commits that were registered before a release that
// logs it.
func (s *Store) logCommits(ctx context.Context) error {
	for {
		isPending, err := readLoose(ctx, s, forWrite(""), func(rd reader) (pending bool, err error) {
			return pending, rd.Row("SELECT EXISTS (SELECT 1 FROM unlogged_commits)").Scan(&pending)
		})
		if err != nil || !isPending {
			return err
		}
		if _, err := writeYielding(ctx, s, func(t *tx) (struct{}, error) { return struct{}{}, t.logSome() }); err != nil {
			return err
		}
	}
}

// logSome logs what is known of the next commits.
func (t *tx) logSome() error {
	var done, last int64
	err := t.Row("SELECT done, last FROM unlogged_commits").Scan(&done, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // by another process
	}
	if err != nil {
		return fmt.Errorf("read the progress: %w", err)
	}

	type row struct{ id, repo int64 }
	commits, err := all(t.reader, func(s scanner) (r row, err error) { return r, s.Scan(&r.id, &r.repo) },
		"SELECT id, repo_id FROM commits WHERE id > ? AND id <= ? ORDER BY id LIMIT ?", done, last, logCommitsBatch)
	if err != nil {
		return fmt.Errorf("read commits: %w", err)
	}
	if len(commits) == 0 {
		_, err := t.Exec("DELETE FROM unlogged_commits")
		return err
	}
	for _, c := range commits {
		r, err := t.repoByID(c.repo)
		if err != nil {
			return err
		}
		if err := t.logKnown(r, c.id, nil); err != nil {
			return err
		}
	}
	_, err = t.Exec("UPDATE unlogged_commits SET done = ?", commits[len(commits)-1].id)
	return err
}
