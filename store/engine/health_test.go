package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A journal holds the incidents that were reported.
type journal struct{ begun, ended []sqldb.Incident }

func newTestHealth(j *journal) *Health {
	return NewHealth(func(t sqldb.Incident) { j.begun = append(j.begun, t) },
		func(t sqldb.Incident) { j.ended = append(j.ended, t) }, func(sqldb.IncidentKind) string { return "help" })
}

// An incident of writing ends when nothing has failed for a while, and one of the file
// as soon as the file is there.
func TestIncidentEnds(t *testing.T) {
	j := new(journal)
	h := newTestHealth(j)
	expect := func(when string, begun, ended int) {
		t.Helper()
		if b, e := len(j.begun), len(j.ended); b != begun || e != ended {
			t.Errorf("%s: %d begun and %d ended, want %d and %d", when, b, e, begun, ended)
		}
	}

	h.Failed(sqldb.WriteIncident, errors.New("disk full"))
	h.Failed(sqldb.FileIncident, errors.New("gone"))
	last := h.find(sqldb.WriteIncident).last
	h.Report(last.Add(2 * calm))
	expect("both are failing", 2, 0)

	h.Succeeded(sqldb.FileIncident)
	if !h.any.Load() {
		t.Error("writes are failing, but nothing is failing")
	}
	h.Report(last)
	expect("the file is there", 2, 1)

	h.Succeeded(sqldb.WriteIncident)
	if h.any.Load() {
		t.Error("nothing is failing, but something is")
	}
	h.Report(last.Add(calm - 1))
	expect("a moment after a failed write", 2, 1)
	h.Failed(sqldb.WriteIncident, errors.New("disk full"))
	h.Succeeded(sqldb.WriteIncident)
	last = h.find(sqldb.WriteIncident).last
	h.Report(last.Add(calm - 1))
	expect("a moment after another failed write", 2, 1)
	h.Report(last.Add(calm))
	expect("a while after the last failed write", 2, 2)
	if n := j.ended[1].Count; n != 2 {
		t.Errorf("the incident has %d failures, want 2", n)
	}
}

// A new incident wakes the monitor, its later failures do not.
func TestIncidentWakesTheMonitor(t *testing.T) {
	h := newTestHealth(new(journal))
	for i := range 3 {
		h.Failed(sqldb.WriteIncident, errors.New("disk full"))
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
	m := &Monitor{health: newTestHealth(j), stop: make(chan struct{})}
	m.health.Failed(sqldb.WriteIncident, errors.New("disk full"))
	m.Close()
	if len(j.begun) != 1 {
		t.Errorf("%d incidents reported, want 1", len(j.begun))
	}
}

// While a check of the files does not return, the engine is not ready.
func TestCheckThatHangs(t *testing.T) {
	hangs, release := make(chan struct{}), make(chan struct{})
	check := func() error {
		select {
		case hangs <- struct{}{}:
		default:
		}
		<-release
		return nil
	}
	h := newTestHealth(new(journal))
	w := NewWriter(nil, sqldb.Hooks{}, h)
	defer w.Close()
	m := StartMonitor(check, sqldb.Write{}, h, w)
	defer m.Close()

	<-hangs
	m.checked.Store(-int64(time.Minute))
	if err := m.Ready(); sqldb.ClassOf(err) != sqldb.Stalled {
		t.Errorf("got %v, want an error of class Stalled", err)
	}
	close(release)
	for deadline := time.Now().Add(10 * time.Second); m.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not ready after the check: %v", m.Ready())
		}
	}
}
