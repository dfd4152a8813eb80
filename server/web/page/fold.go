package page

import (
	"github.com/ledgerd/ledgerd/ledger"
)

// An EventRow is an event as a list shows it. Overlaps that have the same cause share a row.
type EventRow struct {
	Event
	// Overlaps holds all overlaps of the row; it is empty if there is one.
	Overlaps []Event
}

// Named returns the first branches that the row's commit overlaps with, and how many more
// there are.
func (r EventRow) Named() (named []ledger.RadarOther) {
	const most = 2
	for _, e := range r.Overlaps[:min(len(r.Overlaps), most)] {
		named = append(named, e.Other)
	}
	return named
}

// Rest returns the number of overlaps that Named does not have.
func (r EventRow) Rest() int { return len(r.Overlaps) - len(r.Named()) }

// Fold returns the rows of a list of events. Adjacent overlaps of the same commit are one
// row, with the highest level: a push caused them.
func Fold(events []Event) []EventRow {
	rows := make([]EventRow, 0, len(events))
	for _, e := range events {
		if n := len(rows) - 1; n >= 0 && rows[n].sharesCause(e) {
			rows[n].add(e)
			continue
		}
		rows = append(rows, EventRow{Event: e})
	}
	return rows
}

// sharesCause reports whether an overlap was found by the same push as those of the row.
func (r *EventRow) sharesCause(e Event) bool {
	return e.Type == ledger.EventRadar && r.Type == ledger.EventRadar && e.Repo == r.Repo && e.Commit == r.Commit
}

func (r *EventRow) add(e Event) {
	if r.Overlaps == nil {
		r.Overlaps = []Event{r.Event}
	}
	r.Overlaps = append(r.Overlaps, e)
	r.Level = max(r.Level, e.Level)
}
