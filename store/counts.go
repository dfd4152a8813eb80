package store

import "github.com/ledgerd/ledgerd/ledger"

// A counter is a count stored in the database.
type counter struct {
	kind  counterKind
	id    int64
	state ledger.State // only for commitsInState
}

type counterKind uint8

const (
	repoAttestations      counterKind = iota // by repo
	predicateAttestations                    // by predicate
	commitsInState                           // by repo and state
	orgViolations                            // by org
	openOfOrg                                // open violations, by org
	openOfRepo                               // open violations, by repo
)

// count adds by to a counter if this write succeeds.
func (t *tx) count(kind counterKind, id int64, by int64) {
	t.gathered.count(counter{kind: kind, id: id}, by)
}

// countState adds by to the number of a repo's commits in a state.
func (t *tx) countState(repoID int64, state ledger.State, by int64) {
	t.gathered.count(counter{commitsInState, repoID, state}, by)
}
