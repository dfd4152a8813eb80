package verify

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/internal/evidence"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// exportedStates are the states of commits by the events in an export.
type exportedStates struct {
	unlisted map[string]bool // commits whose first events the ledger does not list
	moves    map[string][]ledger.Transition
	reached  verify.States
}

// states follows the states of the commits by their events.
func (x *exportAudit) states() *exportedStates {
	s := &exportedStates{unlisted: make(map[string]bool), moves: make(map[string][]ledger.Transition)}
	for _, u := range x.manifest.Unlisted {
		s.unlisted[u.Commit] = true
	}
	for _, e := range eventsOf[ledger.StateEvent](x, ledger.EventState) {
		var err error
		if e.Org != x.manifest.Org || !x.names.had(e.Repo) || !x.isOf[e.Commit] {
			err = fmt.Errorf("it is of %s in %s/%s, which the export is not of", e.Commit, e.Org, e.Repo)
		} else {
			err = s.add(e)
		}
		if err != nil {
			x.ofCommits.Add(e.ID, verify.Failure(checkStates, "%v", err))
		}
	}
	return s
}

// add adds the next event.
func (s *exportedStates) add(e ledger.StateEvent) error {
	move := ledger.Transition{From: e.From, To: e.To, At: e.Timestamp, Cause: e.Cause}
	s.moves[e.Commit] = append(s.moves[e.Commit], move)
	if s.unlisted[e.Commit] {
		return nil
	}
	return s.reached.Add(e, true)
}

// check checks that the state of a commit, and its transitions, are those of its events.
func (s *exportedStates) check(c evidence.Commit) verify.Check {
	sha := c.Record.SHA
	if s.unlisted[sha] {
		return verify.Skipped(checkStates, "the ledger does not list the events of its first transitions any more")
	}
	if !slices.Equal(c.Transitions, s.moves[sha]) {
		return verify.Failure(checkStates, "it has %d transitions, which are not those of its %d events", len(c.Transitions),
			len(s.moves[sha]))
	}
	return verify.Result(checkStates, s.reached.Check(sha, c.Record.State, c.Record.StateSince),
		"it is that of the events in the log")
}
