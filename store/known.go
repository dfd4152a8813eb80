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
	list, err := rd.knownOfAll([]*commitRow{c})
	if err != nil {
		return facts.Commit{}, err
	}
	return list[0], nil
}

// knownOfAll reads what is known of commits, in the order of the list.
func (rd reader) knownOfAll(commits []*commitRow) ([]facts.Commit, error) {
	list := make([]facts.Commit, len(commits))
	places, ids := make(map[int64]*facts.Commit, len(commits)), make([]any, len(commits))
	for i, c := range commits {
		var err error
		if list[i], err = c.known(); err != nil {
			return nil, fmt.Errorf("commit %s: %w", c.sha, err)
		}
		places[c.id], ids[i] = &list[i], c.id
	}

	var keyless []any // an old release has stored their paths without a key
	err := rd.EachIn(func(row scanner) error {
		var id int64
		var key string
		err := row.Scan(&id, &key)
		if places[id].Changes = key; key == "" {
			keyless = append(keyless, id)
		}
		return err
	}, "SELECT commit_id, paths_key FROM commit_details WHERE changes IS NOT NULL AND commit_id IN ", 1, ids)
	if err != nil {
		return nil, fmt.Errorf("read the keys of changes: %w", err)
	}
	read := make(map[int64]*policy.Facts, len(keyless))
	err = rd.readPaths(func(id int64) *policy.Facts {
		read[id] = new(policy.Facts)
		return read[id]
	}, keyless)
	for id, f := range read {
		places[id].Changes = policy.ChangesKey(f.Changes)
	}
	return list, err
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
		_, err = writeYielding(ctx, s, nil, func(t *tx) (struct{}, error) { return struct{}{}, t.logSome() })
		if err != nil {
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
