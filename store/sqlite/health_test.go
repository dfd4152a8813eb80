package sqlite

import (
	"errors"
	"testing"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

func newTestHealth(j *journal) *health {
	return newHealth(j.options(), func(sqldb.IncidentKind) string { return "help" })
}

// An incident of writing ends when nothing has failed for a while, and one of the file
// as soon as the file is there.
func TestIncidentEnds(t *testing.T) {
	j := new(journal)
	h := newTestHealth(j)
	expect := func(when string, begun, ended int) {
		t.Helper()
		if b, e := j.counts(); b != begun || e != ended {
			t.Errorf("%s: %d begun and %d ended, want %d and %d", when, b, e, begun, ended)
		}
	}

	h.failed(sqldb.WriteIncident, errors.New("disk full"))
	h.failed(sqldb.FileIncident, errors.New("gone"))
	last := h.find(sqldb.WriteIncident).last
	h.report(last.Add(2 * calm))
	expect("both are failing", 2, 0)

	h.succeeded(sqldb.FileIncident)
	if !h.any.Load() {
		t.Error("writes are failing, but nothing is failing")
	}
	h.report(last)
	expect("the file is there", 2, 1)

	h.succeeded(sqldb.WriteIncident)
	if h.any.Load() {
		t.Error("nothing is failing, but something is")
	}
	h.report(last.Add(calm - 1))
	expect("a moment after a failed write", 2, 1)
	h.failed(sqldb.WriteIncident, errors.New("disk full"))
	h.succeeded(sqldb.WriteIncident)
	last = h.find(sqldb.WriteIncident).last
	h.report(last.Add(calm - 1))
	expect("a moment after another failed write", 2, 1)
	h.report(last.Add(calm))
	expect("a while after the last failed write", 2, 2)
	if n := j.ended[1].Count; n != 2 {
		t.Errorf("the incident has %d failures, want 2", n)
	}
}

// A new incident wakes the monitor, its later failures do not.
func TestIncidentWakesTheMonitor(t *testing.T) {
	h := newTestHealth(new(journal))
	for i := range 3 {
		h.failed(sqldb.WriteIncident, errors.New("disk full"))
		if want := i == 0; len(h.news) > 0 != want {
			t.Errorf("failure %d: woken %v, want %v", i+1, !want, want)
		}
		for len(h.news) > 0 {
			<-h.news
		}
	}
}

// What fails while the engine closes is reported too.
func TestIncidentAtClose(t *testing.T) {
	j := new(journal)
	m := &monitor{health: newTestHealth(j), stop: make(chan struct{})}
	m.health.failed(sqldb.WriteIncident, errors.New("disk full"))
	m.close()
	if begun, _ := j.counts(); begun != 1 {
		t.Errorf("%d incidents reported, want 1", begun)
	}
}
