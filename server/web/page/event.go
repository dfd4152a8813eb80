package page

import (
	"encoding/json"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// An Event holds the members of all event types that pages show. Type decides
// which of them are set.
type Event struct {
	ID        string           `json:"id"`
	Type      ledger.EventType `json:"type"`
	Repo      string           `json:"repo"`
	Commit    string           `json:"commit"`
	Timestamp ledger.Time      `json:"timestamp"`

	Predicate string        `json:"predicate"`
	Identity  string        `json:"identity"`
	Result    ledger.Result `json:"result"`

	From ledger.State `json:"from"`
	To   ledger.State `json:"to"`

	Status ledger.ViolationStatus `json:"status"`

	Tree      string                  `json:"tree"`
	Corrected []ledger.CorrectedField `json:"corrected"`

	Version   int    `json:"version"`
	ChangedBy string `json:"changed_by"`

	Action  string `json:"action"`
	Kind    string `json:"kind"`
	DN      string `json:"dn"`
	Purpose string `json:"purpose"`
	Key     string `json:"key"`
	Reason  string `json:"reason"`

	Level      radar.Level       `json:"level"`
	Other      ledger.RadarOther `json:"other"`
	PathsTotal int               `json:"paths_total"`
	Body       json.RawMessage   `json:"-"` // the event as received
}

// ReadEvents decodes events.
func ReadEvents(bodies []json.RawMessage) ([]Event, error) {
	events := make([]Event, len(bodies))
	for i, body := range bodies {
		if err := ledger.DecodeOpen(body, &events[i]); err != nil {
			return nil, fmt.Errorf("decode event: %w", err)
		}
		events[i].Body = body
	}
	return events, nil
}
