package ledger

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// An EventType is one kind of what the ledger tells the world.
type EventType string

// The event types.
const (
	EventAttestation EventType = "attestation" // a new signed attestation is recorded
	EventState       EventType = "state"       // a commit moves between two states
	EventPolicy      EventType = "policy"      // a policy contract is updated
	EventRadar       EventType = "radar"       // the radar finds an overlap
)

// EventTypes lists all event types.
func EventTypes() []EventType {
	return []EventType{EventAttestation, EventState, EventPolicy, EventRadar}
}

// ParseEventType reads the name of an event type.
func ParseEventType(name string) (EventType, error) {
	for _, t := range EventTypes() {
		if string(t) == name {
			return t, nil
		}
	}
	return "", fmt.Errorf("%q is not an event type (use attestation, state, policy or radar)", name)
}

// ParseEventTypes reads names of event types with commas between them.
func ParseEventTypes(list string) ([]EventType, error) {
	var types []EventType
	for name := range strings.SplitSeq(list, ",") {
		t, err := ParseEventType(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		types = append(types, t)
	}
	return types, nil
}

// An Event is the body of one event: an AttestationEvent, StateEvent,
// PolicyEvent or RadarEvent. Their fields stand in the order in which they are written;
// within v1 of the API, fields are only ever added.
type Event interface {
	EventType() EventType
	// typed returns the event with its Type filled in.
	typed() Event
}

// An AttestationEvent tells that an attestation was recorded.
type AttestationEvent struct {
	ID            string    `json:"id"`
	Type          EventType `json:"type"` // set by Render
	Org           string    `json:"org"`
	Repo          string    `json:"repo"`
	Commit        string    `json:"commit"`
	Predicate     string    `json:"predicate"`
	Identity      string    `json:"identity"` // the signer's DN
	Result        Result    `json:"result"`
	Timestamp     Time      `json:"timestamp"`
	Attestation   string    `json:"attestation"`
	PayloadDigest string    `json:"payload_digest"`
}

// A StateEvent tells that a commit moved between two states.
type StateEvent struct {
	ID        string    `json:"id"`
	Type      EventType `json:"type"` // set by Render
	Org       string    `json:"org"`
	Repo      string    `json:"repo"`
	Commit    string    `json:"commit"`
	From      State     `json:"from"`
	To        State     `json:"to"`
	Cause     Cause     `json:"cause"`
	Timestamp Time      `json:"timestamp"`
}

// A PolicyEvent tells that a repo's contract was updated.
type PolicyEvent struct {
	ID              string    `json:"id"`
	Type            EventType `json:"type"` // set by Render
	Org             string    `json:"org"`
	Repo            string    `json:"repo"`
	Version         int       `json:"version"`
	PreviousVersion int       `json:"previous_version"`
	Digest          string    `json:"digest"`
	ChangedBy       string    `json:"changed_by"`
	Timestamp       Time      `json:"timestamp"`
}

// A RadarEvent tells that two commits overlap, or overlap worse than before. It
// is about the one registered later.
type RadarEvent struct {
	ID     string      `json:"id"`
	Type   EventType   `json:"type"` // set by Render
	Org    string      `json:"org"`
	Repo   string      `json:"repo"`
	Commit string      `json:"commit"`
	Level  radar.Level `json:"level"`
	Other  RadarOther  `json:"other"`
	// Paths are the strongest, the strongest first. Render leaves out what is
	// too much; PathsTotal counts all.
	Paths      []RadarEventPath `json:"paths"`
	Timestamp  Time             `json:"timestamp"`
	PathsTotal int              `json:"paths_total"`
}

// A RadarOther is the commit registered earlier.
type RadarOther struct {
	Commit string `json:"commit"`
	Branch string `json:"branch"`
	Author Author `json:"author"`
}

// A RadarEventPath is a radar.Path without its lines.
type RadarEventPath struct {
	Path   string       `json:"path"`
	Level  radar.Level  `json:"level"`
	Reason radar.Reason `json:"reason"`
}

// EventType returns EventAttestation.
func (AttestationEvent) EventType() EventType { return EventAttestation }

// EventType returns EventState.
func (StateEvent) EventType() EventType { return EventState }

// EventType returns EventPolicy.
func (PolicyEvent) EventType() EventType { return EventPolicy }

// EventType returns EventRadar.
func (RadarEvent) EventType() EventType { return EventRadar }

func (e AttestationEvent) typed() Event { e.Type = e.EventType(); return e }
func (e StateEvent) typed() Event       { e.Type = e.EventType(); return e }
func (e PolicyEvent) typed() Event      { e.Type = e.EventType(); return e }

func (e RadarEvent) typed() Event {
	e.Type = e.EventType()
	e.PathsTotal = max(e.PathsTotal, len(e.Paths))
	e.Paths = fitting(e.Paths)
	return e
}

// maxRadarText bounds the paths of a radar event in bytes of JSON, so that its
// body stays under the 256 KiB that a webhook's body has at most: what else there
// is in it takes a few KiB.
const maxRadarText = 192 << 10

// fitting returns as many of the first paths as a body may hold.
func fitting(paths []RadarEventPath) []RadarEventPath {
	paths = paths[:min(len(paths), radar.MaxPaths)]
	size := 0
	for i := range paths {
		if size += len(text.JSON(paths[i])) + 1; size > maxRadarText {
			return paths[:i]
		}
	}
	return paths
}

// Render writes the body of an event. It is called once for each event: these bytes
// are stored, listed and delivered to webhooks.
func Render(e Event) []byte { return text.JSON(e.typed()) }

// EventPaths returns the paths as an event tells them.
func EventPaths(paths []radar.Path) []RadarEventPath {
	told := make([]RadarEventPath, len(paths))
	for i, p := range paths {
		told[i] = RadarEventPath{p.Path, p.Level, p.Reason}
	}
	return told
}
