// Package states is the room of the state machine: it settles commits, which is to derive their states from the facts
// and to record what has changed, and it opens and closes violations. What the state of a commit is, package policy
// decides. Its tables are transitions and violations.
package states

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/where"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// States derives the states of commits. Its methods are safe for concurrent use, except those with a txn.Tx, which the
// writer's goroutine calls.
type States struct {
	db      *txn.DB
	journal *events.Journal
	jobs    *backlog.Jobs
	signers *signers.Signers
	facts   *facts.Facts
	radar   *overlaps.Radar

	programs *txn.Cache[string, *where.Program] // by expression
	// evaluating limits the number of statements that are evaluated at the same time.
	evaluating chan struct{}
	closing    <-chan struct{} // is closed when the database is

	// rows buffers the rows that a write inserts. It is empty between writes.
	rows rows
	// inBackground reports whether the write settles commits of a job.
	inBackground bool
	// ahead has the commits that the write has settled although it may have read them before.
	ahead map[int64]bool
}

// MaxEvaluating limits the statements that are evaluated at the same time. Each takes at most a few tens of
// megabytes and of milliseconds.
const MaxEvaluating = 4

// maxPrograms limits the compiled expressions.
const maxPrograms = 500

// rows buffers rows, by table.
type rows struct{ transitions, violations *sqldb.Rows }

// New returns the room of a database. Evaluations end when closing is closed.
func New(
	db *txn.DB, journal *events.Journal, jobs *backlog.Jobs, who *signers.Signers, known *facts.Facts,
	radar *overlaps.Radar, closing <-chan struct{},
) *States {
	st := &States{
		db: db, journal: journal, jobs: jobs, signers: who, facts: known, radar: radar,
		programs:   txn.NewCache[string, *where.Program](maxPrograms),
		evaluating: make(chan struct{}, MaxEvaluating), closing: closing,
		rows: rows{
			transitions: sqldb.NewRows(`
INSERT INTO transitions (commit_id, event, from_state, to_state, at, cause_type, cause_id) VALUES `, "", 7),
			violations: sqldb.NewRows(`
INSERT INTO violations (id, repo_id, org_id, commit_id, predicate_id, attestation_id, state, opened_at,
  missing) VALUES `, "", 9),
		},
	}
	db.Attach(txn.Part{
		Flush: st.flush, Keep: func(*txn.Tx) { st.begin() }, Discard: st.discard, AfterRollback: st.discard,
	})
	return st
}

// flush writes all buffered rows.
func (st *States) flush(t *txn.Tx) error {
	for _, rows := range [...]*sqldb.Rows{st.rows.transitions, st.rows.violations} {
		if err := rows.Flush(t.Conn); err != nil {
			return fmt.Errorf("write transitions and violations: %w", err)
		}
	}
	return nil
}

// discard drops what a failed write has left in memory.
func (st *States) discard() {
	st.rows.transitions.Reset()
	st.rows.violations.Reset()
	st.begin()
}

// begin forgets what is known of one write.
func (st *States) begin() { st.inBackground, st.ahead = false, nil }
