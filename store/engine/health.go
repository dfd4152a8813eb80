package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// calm is the time without failures after which an incident has ended, except one of the
// file, which is either there or not.
const calm = 2 * time.Second

// A Health collects failures. It knows what is failing now, and reports when each
// incident begins and ends.
type Health struct {
	began, ended func(sqldb.Incident)
	help         func(sqldb.IncidentKind) string
	news         chan struct{} // has a value if an incident has begun
	any          atomic.Bool   // whether anything is failing now

	mu        sync.Mutex
	incidents []*incident
}

// An incident is a sqldb.Incident that has not ended.
type incident struct {
	sqldb.Incident
	current  error // of the latest attempt; nil if it succeeded
	last     time.Time
	reported bool
}

// NewHealth returns a health without failures. It calls began and ended, unless they are nil, at
// the beginning and the end of an incident, one call at a time. help returns what the administrator
// can do about an incident, or "".
func NewHealth(began, ended func(sqldb.Incident), help func(sqldb.IncidentKind) string) *Health {
	h := &Health{began: began, ended: ended, help: help, news: make(chan struct{}, 1)}
	if h.began == nil {
		h.began = func(sqldb.Incident) {}
	}
	if h.ended == nil {
		h.ended = func(sqldb.Incident) {}
	}
	return h
}

// Failed counts a failure. It does not wait for the report.
func (h *Health) Failed(kind sqldb.IncidentKind, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.find(kind)
	if t == nil {
		t = &incident{Incident: sqldb.Incident{Kind: kind, Err: err, Begun: time.Now()}}
		h.incidents = append(h.incidents, t)
		select {
		case h.news <- struct{}{}:
		default:
		}
	}
	t.current, t.last = err, time.Now()
	t.Count++
	h.any.Store(true)
}

// Succeeded records a success. It is cheap if nothing has failed.
func (h *Health) Succeeded(kind sqldb.IncidentKind) {
	if !h.any.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.find(kind); t != nil {
		t.current = nil
	}
	h.any.Store(slices.ContainsFunc(h.incidents, func(t *incident) bool { return t.current != nil }))
}

// Failing returns the error of the latest attempt of a kind, or nil if it succeeded.
func (h *Health) Failing(kind sqldb.IncidentKind) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.find(kind); t != nil {
		return t.current
	}
	return nil
}

func (h *Health) find(kind sqldb.IncidentKind) *incident {
	i := slices.IndexFunc(h.incidents, func(t *incident) bool { return t.Kind == kind })
	if i < 0 {
		return nil
	}
	return h.incidents[i]
}

// Report reports the incidents that have begun or ended since the last call. Only one
// goroutine may call it.
func (h *Health) Report(now time.Time) {
	begun, ended := h.changes(now)
	for _, t := range begun {
		t.Help = h.help(t.Kind)
		h.began(t)
	}
	for _, t := range ended {
		h.ended(t)
	}
}

// changes returns the incidents to report.
func (h *Health) changes(now time.Time) (begun, ended []sqldb.Incident) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.incidents {
		if !t.reported {
			t.reported = true
			begun = append(begun, t.Incident)
		}
	}
	h.incidents = slices.DeleteFunc(h.incidents, func(t *incident) bool {
		over := t.current == nil && (t.Kind == sqldb.FileIncident || now.Sub(t.last) >= calm)
		if over {
			ended = append(ended, t.Incident)
		}
		return over
	})
	return begun, ended
}
