package store

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// A counter is one number that the database keeps because pages show it, or
// because it numbers events.
type counter struct {
	kind  counterKind
	id    int64
	state ledger.State // of commitsInState
}

type counterKind uint8

const (
	repoAttestations      counterKind = iota // by repo
	predicateAttestations                    // by predicate
	commitsInState                           // by repo and state
	orgEvents                                // by org: the sequence number of its next event
)

// A delta is what a write adds to a counter.
type delta struct {
	counter
	by int64
}

// A tally gathers the deltas of a batch, so that each counter is written once
// in a transaction, however many of its writes touch it.
type tally struct {
	sums map[counter]int64
	seqs map[int64]int64 // by org: the next sequence number when the transaction began
	now  ledger.Time     // of the last write
	// queued are the webhooks that were given deliveries.
	queued []string
	// changed are the webhooks that are not what they were.
	changed []string
}

func newTally() *tally {
	return &tally{sums: make(map[counter]int64), seqs: make(map[int64]int64)}
}

// add takes over the deltas of a write that has succeeded.
func (y *tally) add(t *tx) {
	for _, d := range t.deltas {
		y.sums[d.counter] += d.by
	}
	y.now = t.now
	y.queued = append(y.queued, t.queued...)
	y.changed = append(y.changed, t.changed...)
}

// flush writes the counters.
func (y *tally) flush(c *conn) error {
	for counter, by := range y.sums {
		if by == 0 {
			continue
		}
		var err error
		switch counter.kind {
		case repoAttestations:
			_, err = c.exec("UPDATE repos SET attestations = attestations + ? WHERE id = ?", by, counter.id)
		case predicateAttestations:
			_, err = c.exec("UPDATE predicates SET attestations = attestations + ?, last_at = ? WHERE id = ?", by, y.now, counter.id)
		case commitsInState:
			_, err = c.exec("INSERT INTO repo_states (repo_id, state, commits) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET commits = commits + excluded.commits",
				counter.id, counter.state, by)
		case orgEvents:
			_, err = c.exec("UPDATE orgs SET next_seq = next_seq + ? WHERE id = ?", by, counter.id)
		}
		if err != nil {
			return fmt.Errorf("write counters: %w", err)
		}
	}
	return nil
}

func (y *tally) reset() {
	clear(y.sums)
	clear(y.seqs)
	y.queued, y.changed = y.queued[:0], y.changed[:0]
}

// count adds to a counter, if this write succeeds.
func (t *tx) count(kind counterKind, id int64, by int64) {
	t.deltas = append(t.deltas, delta{counter{kind: kind, id: id}, by})
}

// countState adds to the number of a repo's commits in a state.
func (t *tx) countState(repoID int64, state ledger.State, by int64) {
	t.deltas = append(t.deltas, delta{counter{commitsInState, repoID, state}, by})
}

// nextSeq takes the next sequence number of an org's events.
func (t *tx) nextSeq(orgID int64) (int64, error) { return t.takeSeqs(orgID, 1) }

// takeSeqs takes so many sequence numbers, one after the other, and returns the
// first.
func (t *tx) takeSeqs(orgID int64, n int) (int64, error) {
	seq, ok := t.tally.seqs[orgID]
	if !ok {
		if err := t.row("SELECT next_seq FROM orgs WHERE id = ?", orgID).Scan(&seq); err != nil {
			return 0, fmt.Errorf("number event: %w", err)
		}
		t.tally.seqs[orgID] = seq
	}
	events := counter{kind: orgEvents, id: orgID}
	seq += t.tally.sums[events]
	for _, d := range t.deltas {
		if d.counter == events {
			seq += d.by
		}
	}
	t.count(orgEvents, orgID, int64(n))
	return seq, nil
}
