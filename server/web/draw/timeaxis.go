package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// Sizes of the picture, in its own units.
const (
	AxisWidth = 1000
	minBand   = 12.0
	maxBands  = 12 // bands in the text
	maxMarks  = 200
)

// A TimeAxis shows the states of a commit from its registration until now.
type TimeAxis struct {
	Bands []Band
	Marks []FailureMark
	// Spent has the time in each state, in the order of the states.
	Spent []Spent
	// Text is the picture in words.
	Text string
	// From and To are the ends of the axis.
	From, To ledger.Time
}

// A Band is a time in one state.
type Band struct {
	State    ledger.State
	From, To ledger.Time
	X, Width float64
	// Down reports whether the commit fell into the state.
	Down bool
}

// A FailureMark is the time of a failure.
type FailureMark struct {
	X      float64
	Status ledger.Status
}

// A Spent is the total time in a state.
type Spent struct {
	State ledger.State
	Time  time.Duration
	// Now reports whether the commit is in the state.
	Now bool
}

// States lays out the transitions of a commit, oldest first, and the failures among its
// attestations. The axis begins with the registration or, if old transitions are missing,
// with the first one. Every band has a visible width.
func States(
	registered ledger.Time, transitions []ledger.Transition, attestations []ledger.AttestationRecord, now ledger.Time,
) *TimeAxis {
	bands := bandsOf(registered, transitions, now)
	if len(bands) == 0 {
		return nil
	}
	a := &TimeAxis{Bands: bands, From: bands[0].From, To: bands[len(bands)-1].To}
	a.place()
	for _, rec := range attestations {
		if rec.Result.Status.IsFailure() && rec.RecordedAt >= a.From && len(a.Marks) < maxMarks {
			a.Marks = append(a.Marks, FailureMark{a.at(rec.RecordedAt), rec.Result.Status})
		}
	}
	a.sum()
	a.Text = a.words()
	return a
}

// bandsOf returns the bands without their places.
func bandsOf(registered ledger.Time, transitions []ledger.Transition, now ledger.Time) []Band {
	state, from := ledger.Draft, registered
	if len(transitions) > 0 && transitions[0].From != ledger.Draft {
		state, from = transitions[0].To, transitions[0].At // the one before it is missing
		transitions = transitions[1:]
	}
	var bands []Band
	down := false
	for _, t := range transitions {
		at := max(t.At, from)
		if at > from {
			bands = append(bands, Band{State: state, From: from, To: at, Down: down})
		}
		state, from, down = t.To, at, t.To < t.From
	}
	return append(bands, Band{State: state, From: from, To: max(now, from), Down: down})
}

// place gives each band its width: at least minBand, and the rest by its time.
func (a *TimeAxis) place() {
	room := max(AxisWidth-minBand*float64(len(a.Bands)), 0)
	least := (AxisWidth - room) / float64(len(a.Bands))
	total := cmp.Or(float64(a.To-a.From), 1)
	var x float64
	for i := range a.Bands {
		b := &a.Bands[i]
		b.X, b.Width = x, least+room*float64(b.To-b.From)/total
		x += b.Width
	}
	if last := &a.Bands[len(a.Bands)-1]; a.To == a.From { // no time has passed
		last.Width = AxisWidth - last.X
	}
}

// at returns the place of a time.
func (a *TimeAxis) at(t ledger.Time) float64 {
	for _, b := range a.Bands {
		if t < b.To {
			return b.X + b.Width*float64(t-b.From)/float64(b.To-b.From)
		}
	}
	return AxisWidth
}

// sum adds up the times in each state.
func (a *TimeAxis) sum() {
	spent := make(map[ledger.State]time.Duration)
	for _, b := range a.Bands {
		spent[b.State] += b.To.Sub(b.From)
	}
	now := a.Bands[len(a.Bands)-1].State
	for _, s := range ledger.States() {
		if spent[s] > 0 || s == now {
			a.Spent = append(a.Spent, Spent{s, spent[s], s == now})
		}
	}
}

// words describes the bands, the last ones if there are many.
func (a *TimeAxis) words() string {
	var parts []string
	for _, b := range slices.Backward(a.Bands) {
		if len(parts) == maxBands {
			parts = append(parts, format.Plural(len(a.Bands)-maxBands, "earlier change"))
			break
		}
		how := ""
		if b.Down {
			how = "back to "
		}
		parts = append(parts, fmt.Sprintf("%s%s for %s", how, format.State(b.State), format.Duration(b.To.Sub(b.From))))
	}
	slices.Reverse(parts)
	return "States over time: " + strings.Join(parts, ", ") + "."
}
