package facts

import (
	"bytes"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Known returns what is known of a commit, without its changed paths.
func (c *CommitRow) Known() (facts.Commit, error) {
	writers, err := c.Claims.DecodeWriters()
	return facts.Commit{
		ID: c.SHA, Tree: c.Tree, Author: c.Author, Writers: writers, SigningKeys: c.Claims.Keys(), Branch: c.Branch,
		Targets: c.ClaimedTargets(),
	}, err
}

// knownOf reads what is known of a commit.
func knownOf(rd txn.Reader, commitID int64) (facts.Commit, error) {
	c, err := FindCommitRow(rd, commitID)
	if err != nil {
		return facts.Commit{}, err
	}
	list, err := KnownOfAll(rd, []*CommitRow{c})
	if err != nil {
		return facts.Commit{}, err
	}
	return list[0], nil
}

// KnownOfAll reads what is known of commits, in the order of the list.
func KnownOfAll(rd txn.Reader, commits []*CommitRow) ([]facts.Commit, error) {
	list := make([]facts.Commit, len(commits))
	places, ids := make(map[int64]*facts.Commit, len(commits)), make([]any, len(commits))
	for i, c := range commits {
		var err error
		if list[i], err = c.Known(); err != nil {
			return nil, fmt.Errorf("commit %s: %w", c.SHA, err)
		}
		places[c.ID], ids[i] = &list[i], c.ID
	}

	var keyless []any // an old release has stored their paths without a key
	err := rd.EachIn(func(row txn.Scanner) error {
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
	err = readPaths(rd, func(id int64) *policy.Facts {
		read[id] = new(policy.Facts)
		return read[id]
	}, keyless)
	for id, f := range read {
		places[id].Changes = facts.ChangesKey(f.Changes)
	}
	return list, err
}

// LogKnown appends an event of a commit if what is known of it is not what the last one
// says. corrected lists which claims were not true.
func (fa *Facts) LogKnown(t *txn.Tx, r txn.Repo, commitID int64, corrected []ledger.Correction) error {
	known, err := knownOf(t.Reader, commitID)
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
	return fa.journal.AppendCommit(t, r, known, corrected)
}

// logCommitsBatch is the number of commits that one write logs.
const logCommitsBatch = 200

// LogNext logs what is known of the next commits of a repo, which were registered before a release that logs it.
func (fa *Facts) LogNext(t *txn.Tx, j *backlog.Job) (done bool, err error) {
	r, err := t.RepoByID(j.Repo)
	if err != nil {
		return false, err
	}
	commits, err := txn.All(t.Reader, txn.ScanID,
		"SELECT id FROM commits WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?",
		j.Repo, j.Position, logCommitsBatch)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	for _, id := range commits {
		if err := fa.LogKnown(t, r, id, nil); err != nil {
			return false, err
		}
		j.Position = id
	}
	return len(commits) < logCommitsBatch, nil
}
