package store

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A batch holds the state that the writes of one transaction share, and state in
// memory that outlives the transaction. Only the writer's goroutine uses it.
type batch struct {
	// left is what the write that runs leaves to the transaction, and flush writes its rows.
	left  *gathered
	flush func() error
	// tips holds the radar's indexes of the tips on disk.
	tips *radarindex.Set
	// recent holds the footprints of the tips registered last.
	recent radarindex.Recent
	// rows buffers the rows that a write inserts. It is empty between writes.
	rows *buffers
	// total is what all writes of the transaction gathered.
	total gathered
	last  ledger.Time // start of the last write
}

func newBatch(tips *radarindex.Set) *batch {
	return &batch{tips: tips, rows: newBuffers()}
}

// gathered is the work that a write leaves to its transaction. The transaction
// does each item once, even if several writes gathered it.
type gathered struct {
	counts map[counter]int64
	// cached reports whether the caches contain rows that this write inserted.
	cached bool
}

// add adds what a successful write gathered.
func (b *batch) add(g *gathered, now ledger.Time) {
	if b.total.counts == nil {
		b.total.counts = make(map[counter]int64)
	}
	for c, by := range g.counts {
		b.total.counts[c] += by
	}
	b.last = now
}

// discard drops the state in memory that a failed write left.
func (b *batch) discard() {
	b.rows.reset()
	b.recent = radarindex.Recent{} // the sequence numbers of its tips will be reused
}

// reset prepares the batch for the next transaction.
func (b *batch) reset() {
	clear(b.total.counts)
}

// beforeCommit writes each changed counter once.
func (b *batch) beforeCommit(c *sqldb.Conn) error {
	for counter, by := range b.total.counts {
		if by == 0 {
			continue
		}

		var err error
		switch counter.kind {
		case repoAttestations:
			err = c.Queue("UPDATE repos SET attestations = attestations + ? WHERE id = ?", by, counter.id)
		case predicateAttestations:
			err = c.Queue("UPDATE predicates SET attestations = attestations + ?, last_at = ? WHERE id = ?",
				by, b.last, counter.id)
		case commitsInState:
			err = c.Queue(`
INSERT INTO repo_states (repo_id, state, commits) VALUES (?, ?, ?)
ON CONFLICT (repo_id, state) DO UPDATE SET commits = repo_states.commits + excluded.commits`,
				counter.id, counter.state, by)
		case orgViolations:
			err = c.Queue("UPDATE orgs SET violations = violations + ? WHERE id = ?", by, counter.id)
		case openOfOrg:
			err = c.Queue("UPDATE orgs SET open_violations = open_violations + ? WHERE id = ?", by, counter.id)
		case openOfRepo:
			err = c.Queue("UPDATE repos SET open_violations = open_violations + ? WHERE id = ?", by, counter.id)
		}

		if err != nil {
			return fmt.Errorf("write counters: %w", err)
		}
	}
	return nil
}

// count adds by to a counter if the write succeeds.
func (g *gathered) count(c counter, by int64) {
	if g.counts == nil {
		g.counts = make(map[counter]int64)
	}
	g.counts[c] += by
}
