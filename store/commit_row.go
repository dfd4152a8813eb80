package store

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// A commitRow holds the columns of a commit from which its state is derived.
type commitRow struct {
	id            int64
	repoID        int64
	sha           string
	state         ledger.State
	stateSince    ledger.Time
	registeredAt  ledger.Time
	policyVersion int         // the version under which the state was derived
	expires       ledger.Time // when evidence or an overlap on which the state depends expires
	attestations  int64
	newest        int64 // row id of the newest attestation; 0 if the commit has no attestations
	branch        string
	target        string
	author        ledger.Author

	// How this write has changed the commit since it was last buffered.
	isNew, isDirty, isMoved bool
}

// authors returns who wrote the commit. It is empty if that is unknown.
func (c *commitRow) authors() []ledger.Author {
	if c.author == (ledger.Author{}) {
		return nil
	}
	return []ledger.Author{c.author}
}

const selectCommitRow = `
SELECT id, repo_id, sha, state, state_since, registered_at, policy_version, expires, attestations,
  newest, branch, target, author_name, author_email
FROM commits `

func scanCommitRow(row scanner) (*commitRow, error) {
	c := new(commitRow)
	err := row.Scan(&c.id, &c.repoID, &c.sha, &c.state, &c.stateSince, &c.registeredAt, &c.policyVersion,
		&c.expires, &c.attestations, &c.newest, &c.branch, &c.target, &c.author.Name, &c.author.Email)
	return c, err
}

func (rd reader) findCommitRow(id int64) (*commitRow, error) {
	c, err := scanCommitRow(rd.Row(selectCommitRow+"WHERE id = ?", id))
	if err != nil {
		return nil, fmt.Errorf("read commit: %w", err)
	}
	return c, nil
}
