package store

import "github.com/ledgerd/ledgerd/ledger"

// A latestKey is the key of the table latest, which holds the latest attestation of
// each signer for each predicate of a commit.
type latestKey struct {
	commit, predicate int64
	slot              string
	signer            int64
}

// setLatest sets the latest attestation of a key. It is written by flush.
func (t *tx) setLatest(key latestKey, attestation int64) {
	if t.latest == nil {
		t.latest = make(map[latestKey]int64)
	}
	t.latest[key] = attestation
}

// markDirty schedules a changed commit to be written by flush.
func (t *tx) markDirty(c *commitRow) {
	if !c.isDirty {
		c.isDirty = true
		t.dirty = append(t.dirty, c)
	}
}

// bufferDirty adds the dirty commits to the buffers.
func (t *tx) bufferDirty() {
	for _, c := range t.dirty {
		rows := t.batch.rows.updated
		switch {
		case c.isNew:
			rows = t.batch.rows.commits
		case c.isMoved:
			rows = t.batch.rows.moved
		}
		rows.Add(c.id, c.repoID, c.sha, int64(c.state), int64(c.stateSince), int64(c.registeredAt),
			int64(c.policyVersion), int64(c.expires), c.attestations, c.newest, c.basis,
			int64(c.failingSince), int64(c.standing))
		if c.expires != 0 {
			t.s.jobs.Expire(c.repoID, c.expires)
		}
		c.isNew, c.isDirty, c.isMoved = false, false, false
	}
	t.dirty = t.dirty[:0]
}

// addWork adds commits to the worklist, to derive their state again.
func (t *tx) addWork(cause ledger.Cause, commits ...int64) {
	for _, id := range commits {
		t.work.add(id, workEntry{cause: cause})
	}
}
