package facts

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A counter is a count stored in the database.
type counter struct {
	kind  CounterKind
	id    int64
	state ledger.State // only for CommitsInState
}

// A CounterKind is what is counted.
type CounterKind uint8

// The counts.
const (
	RepoAttestations      CounterKind = iota // by repo
	PredicateAttestations                    // by predicate
	CommitsInState                           // by repo and state
	OrgViolations                            // by org
	OpenOfOrg                                // open violations, by org
	OpenOfRepo                               // open violations, by repo
)

// counts are the counters that writes change.
type counts struct {
	// left holds those that the write which runs changes, and total those that all writes of the transaction do.
	left, total map[counter]int64
	last        ledger.Time // start of the last write
}

func newCounts() counts {
	return counts{left: make(map[counter]int64), total: make(map[counter]int64)}
}

// keep adds what a successful write has changed.
func (n *counts) keep(now ledger.Time) {
	for c, by := range n.left {
		n.total[c] += by
	}
	n.last = now
}

// Count adds by to a counter if this write succeeds.
func (n *counts) Count(kind CounterKind, id int64, by int64) {
	n.left[counter{kind: kind, id: id}] += by
}

// CountState adds by to the number of a repo's commits in a state.
func (n *counts) CountState(repoID int64, state ledger.State, by int64) {
	n.left[counter{CommitsInState, repoID, state}] += by
}

// writeCounts writes each changed counter once.
func (n *counts) writeCounts(c *sqldb.Conn) error {
	for counter, by := range n.total {
		if by == 0 {
			continue
		}

		var err error
		switch counter.kind {
		case RepoAttestations:
			err = c.Queue("UPDATE repos SET attestations = attestations + ? WHERE id = ?", by, counter.id)
		case PredicateAttestations:
			err = c.Queue("UPDATE predicates SET attestations = attestations + ?, last_at = ? WHERE id = ?",
				by, n.last, counter.id)
		case CommitsInState:
			err = c.Queue(`
INSERT INTO repo_states (repo_id, state, commits) VALUES (?, ?, ?)
ON CONFLICT (repo_id, state) DO UPDATE SET commits = repo_states.commits + excluded.commits`,
				counter.id, counter.state, by)
		case OrgViolations:
			err = c.Queue("UPDATE orgs SET violations = violations + ? WHERE id = ?", by, counter.id)
		case OpenOfOrg:
			err = c.Queue("UPDATE orgs SET open_violations = open_violations + ? WHERE id = ?", by, counter.id)
		case OpenOfRepo:
			err = c.Queue("UPDATE repos SET open_violations = open_violations + ? WHERE id = ?", by, counter.id)
		}

		if err != nil {
			return fmt.Errorf("write counters: %w", err)
		}
	}
	return nil
}
