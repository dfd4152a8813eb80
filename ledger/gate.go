package ledger

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Gate is the answer to the question whether a commit or an artifact has reached a state. As
// JSON, it has at most MaxGate bytes.
type Gate struct {
	Reached  bool  `json:"reached"`
	Required State `json:"required"`
	// State and Standing are those of the commit or the artifact; nil if they are not known.
	State    *State `json:"state"`
	Standing *State `json:"standing"`
	// Reasons say what is missing. More counts those that are left out.
	Reasons []string `json:"reasons,omitempty"`
	More    int      `json:"more,omitzero"`
}

const (
	// MaxGate is the maximum size of a Gate, in bytes.
	MaxGate = 1024
	// maxReasons limits the size of all reasons of a Gate as JSON.
	maxReasons = 800
)

// Gate answers whether the commit has reached a state.
func (c *Commit) Gate(required State) Gate {
	g := newGate(required, new(c.AnsweredState()), &c.Standing)
	if g.Reached {
		return g
	}
	for i := range c.Requirements {
		if r := &c.Requirements[i]; r.Applies && !r.Met && r.State <= required {
			g.add(r.State.String() + ": " + r.Reason)
		}
	}
	if g.Reasons == nil {
		g.add("it was not deployed, or was rolled back")
	}
	return g
}

// Gate answers whether the artifact has reached a state.
func (a *Artifact) Gate(required State) Gate {
	g := newGate(required, a.State, a.Standing)
	if g.Reached {
		return g
	}
	if a.State == nil {
		g.add(a.Reason)
	}
	for _, l := range a.Links {
		if l.Counts && !Reached(required, l.State, l.Standing) {
			g.add(fmt.Sprintf("%s@%.12s is %s, standing %s", l.Repo, l.Commit, l.State, l.Standing))
		}
	}
	return g
}

func newGate(required State, state, standing *State) Gate {
	return Gate{Required: required, State: state, Standing: standing,
		Reached: state != nil && Reached(required, *state, *standing)}
}

// add adds a reason, clipped as there is room for it.
func (g *Gate) add(reason string) {
	room := maxReasons
	for _, r := range g.Reasons {
		room -= sizeOf(r)
	}
	for _, most := range []int{300, 100} {
		if r := text.ClipAt(reason, most); sizeOf(r) <= room {
			g.Reasons = append(g.Reasons, r)
			return
		}
	}
	g.More++
}

// sizeOf returns the size of a text as a JSON string.
func sizeOf(s string) int {
	quoted, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return maxReasons + 1 // it is not UTF-8
	}
	return len(quoted)
}
