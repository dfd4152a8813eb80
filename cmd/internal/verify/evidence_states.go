package verify

import (
	"fmt"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// exportedStates are the states of commits by the events in an export.
type exportedStates struct {
	unlisted map[string]bool // commits whose first events the ledger does not list
	moves    map[string][]ledger.Transition
	reached  verify.States
	isWrong  bool // an event does not verify
}

// states follows the states of the commits by their events.
func (x *exportAudit) states() *exportedStates {
	s := &exportedStates{unlisted: make(map[string]bool), moves: make(map[string][]ledger.Transition)}
	for _, kind := range x.wrong {
		s.isWrong = s.isWrong || kind == ledger.EventState || kind == ""
	}
	for _, u := range x.manifest.Unlisted {
		s.unlisted[u.Commit] = true
	}
	for _, e := range eventsOf[ledger.StateEvent](x, ledger.EventState) {
		var err error
		if e.Org != x.manifest.Org || !x.names.had(e.Repo) || !x.isOf[e.Commit] {
			err = fmt.Errorf("it is of %s in %s/%s, which the export is not of", e.Commit, e.Org, e.Repo)
		} else if !s.isWrong {
			err = s.add(e)
		}
		if err != nil {
			x.ofCommits.Add(e.ID, verify.Failure(verify.CheckStates, "%v", err))
		}
	}
	return s
}

// add adds the next event.
func (s *exportedStates) add(e ledger.StateEvent) error {
	s.moves[e.Commit] = append(s.moves[e.Commit], verify.TransitionOf(e))
	if s.unlisted[e.Commit] {
		return nil
	}
	return s.reached.Add(e, true)
}

// check checks that the state of a commit, and its transitions, are those of its events.
func (s *exportedStates) check(c evidence.Commit) verify.Check {
	sha := c.Record.SHA
	if s.unlisted[sha] {
		return verify.Skipped(verify.CheckStates, "the ledger does not list the events of its first transitions any more")
	}
	if s.isWrong {
		return verify.Skipped(verify.CheckStates, "an event of a state is wrong")
	}
	err := verify.Transitions(c.Transitions, s.moves[sha])
	if shown, logged := len(c.Transitions), len(s.moves[sha]); err == nil && shown != logged {
		err = fmt.Errorf("it has %d transitions, and %d events of them", shown, logged)
	}
	if err == nil {
		err = s.reached.Check(sha, c.Record.State, c.Record.StateSince)
	}
	return verify.Result(verify.CheckStates, err, "it is that of the events in the log")
}
