package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// exportedTypes are the types of the events of a repo that an export has. Those of attestations
// are read one by one.
func exportedTypes() []ledger.EventType {
	return []ledger.EventType{ledger.EventState, ledger.EventPolicy, ledger.EventCommit, ledger.EventViolation}
}

// slack is how much older than a commit its first event may be by the clock, which can be put back.
const slack = time.Hour

// A listed is what matters of an event in the history of a repo.
type listed struct {
	ID        string           `json:"id"`
	Type      ledger.EventType `json:"type"`
	Commit    string           `json:"commit"`
	From      ledger.State     `json:"from"`
	To        ledger.State     `json:"to"`
	Cause     ledger.Cause     `json:"cause"`
	Version   int              `json:"version"`
	Facts     string           `json:"facts"`
	Timestamp ledger.Time      `json:"timestamp"`
}

// A history finds the events of the commits and of the contract in the history of the repo, which
// it reads from the newest to the oldest.
type history struct {
	// transitions has those of each commit whose events were not found yet, oldest first.
	transitions map[string][]ledger.Transition
	versions    map[int]bool // the same of the contract
	// facts has the digest of what is known of each commit until its event was found.
	facts    map[string]string
	earliest ledger.Time
	left     int // transitions and versions
}

// wants reports whether an event is of the export.
func (h *history) wants(e listed) bool {
	list, isOurs := h.transitions[e.Commit]
	switch e.Type {
	case ledger.EventPolicy:
		if !h.versions[e.Version] {
			return false
		}
		delete(h.versions, e.Version)
		h.left--
		return true

	case ledger.EventState:
		last := len(list) - 1
		if last < 0 || list[last] != (ledger.Transition{From: e.From, To: e.To, At: e.Timestamp, Cause: e.Cause}) {
			return false // it is newer than the record of the commit
		}
		h.transitions[e.Commit] = list[:last]
		h.left--
		return true

	case ledger.EventCommit:
		if want, ok := h.facts[e.Commit]; ok && want != e.Facts {
			return false // the same
		}
		delete(h.facts, e.Commit)
	}
	return isOurs
}

// isComplete reports whether no event at a time, or before it, can be of the export.
func (h *history) isComplete(at ledger.Time) bool { return h.left == 0 && at < h.earliest.Add(-slack) }

// search exports the events of the commits and of the versions of the contract.
func (e *exporter) search(ctx context.Context) error {
	h := &history{transitions: e.transitions, facts: e.facts, versions: make(map[int]bool), earliest: e.earliest}
	for version := range e.versions {
		if version > 1 { // the first comes with the repo
			h.versions[version] = true
		}
	}
	h.left = len(h.versions)
	for _, list := range h.transitions {
		h.left += len(list)
	}

	read := int64(0)
	f := client.EventFilter{Types: exportedTypes(), Repo: e.repo, NewestFirst: true}
	err := each(ctx, func(q client.Query) (ledger.Page[json.RawMessage], error) {
		e.Progress(fmt.Sprintf("searching the history: %d events", read), 0, 0)
		return e.client.EventsPage(ctx, e.org, f, q)
	}, func(body json.RawMessage) (bool, error) {
		read++
		var event listed
		if err := ledger.DecodeOpen(body, &event); err != nil {
			return false, fmt.Errorf("parse an event in the history of %s: %w", e.repo, err)
		}
		if !h.wants(event) {
			return h.isComplete(event.Timestamp), nil
		}
		return false, e.event(event.ID, event.Timestamp, body)
	})
	if err != nil {
		return err
	}

	for _, sha := range e.manifest.Commits {
		if n := len(h.transitions[sha]); n > 0 {
			e.manifest.Unlisted = append(e.manifest.Unlisted, Unlisted{sha, n})
		}
	}
	return nil
}
