package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// States follows the states of commits by their events in the log.
type States struct {
	commits map[string]*standing
	// Pruned reports that events before those that are added were pruned.
	Pruned bool
}

// ErrPruned means that the events by which a commit came to its state were pruned.
var ErrPruned = errors.New("the events of its state were pruned")

// A standing is how a commit came to its state.
type standing struct {
	state     ledger.State // by the last event
	since     ledger.Time
	isSettled bool // some event is
	// shown are the states that the ledger may have shown: that of the last settled event, and
	// those of the events after it.
	shown []move
}

type move struct {
	to ledger.State
	at ledger.Time
}

// Add adds the next state event of the log. It is settled if it was in the log before the
// ledger was asked for the state. The error says that the commit was not in the state that the
// event says.
func (s *States) Add(e ledger.StateEvent, isSettled bool) error {
	if s.commits == nil {
		s.commits = make(map[string]*standing)
	}
	c := s.commits[e.Commit]
	if c == nil {
		c = &standing{shown: []move{{}}}
		if s.Pruned {
			c.state, c.shown[0].to = e.From, e.From
		}
		s.commits[e.Commit] = c
	}

	before := c.state
	c.state, c.since = e.To, e.Timestamp
	if isSettled {
		c.shown, c.isSettled = c.shown[:0], true
	}
	c.shown = append(c.shown, move{e.To, e.Timestamp})
	if e.From != before {
		return fmt.Errorf("the event %s moves the commit %s from %s to %s, and it was %s", e.ID, e.Commit, e.From, e.To,
			before)
	}
	return nil
}

// Check returns an error unless a commit can have been in the state that the ledger shows. It is
// ErrPruned if nothing shows that.
func (s *States) Check(commit string, state ledger.State, since ledger.Time) error {
	c := s.commits[commit]
	if c == nil && s.Pruned {
		return ErrPruned
	}
	if c == nil {
		c = &standing{shown: []move{{}}}
	}
	if !slices.ContainsFunc(c.shown, func(m move) bool { return m.to == state && (m.at == since || m.at == 0) }) {
		if c.state == state {
			return fmt.Errorf("the ledger shows the commit %s as %s since %s, and the log since %s", commit, state, since,
				c.since)
		}
		return fmt.Errorf("the ledger shows the commit %s as %s, and by the events in the log it is %s", commit, state,
			c.state)
	}
	return nil
}

// Transitions checks that the transitions that the ledger shows of a commit are those of its events in the log,
// both beginning with the first. Either may go on.
func Transitions(shown, logged []ledger.Transition) error {
	for i, t := range shown[:min(len(shown), len(logged))] {
		if want := logged[i]; t != want {
			return fmt.Errorf("it moved %s, and by its event %s", moveText(t), moveText(want))
		}
	}
	return nil
}

func moveText(t ledger.Transition) string {
	return fmt.Sprintf("from %s to %s at %s because of %s %s", t.From, t.To, t.At, t.Cause.Type, t.Cause.ID)
}

// TransitionOf returns the transition that an event reports.
func TransitionOf(e ledger.StateEvent) ledger.Transition {
	return ledger.Transition{From: e.From, To: e.To, At: e.Timestamp, Cause: e.Cause}
}

// Derived returns an error unless a commit is in the state to which its evidence leads.
func Derived(shown, derived ledger.State) error {
	if shown != derived {
		return fmt.Errorf("it is %s, and its evidence makes it %s", shown, derived)
	}
	return nil
}

// Settled returns the commits with settled events, in order: those that the ledger must know.
func (s *States) Settled() []string {
	list := make([]string, 0, len(s.commits))
	for commit, c := range s.commits {
		if c.isSettled {
			list = append(list, commit)
		}
	}
	slices.Sort(list)
	return list
}
