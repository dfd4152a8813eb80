package ledger

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// An EventType is the type of an event.
type EventType string

// The event types.
const (
	EventAttestation EventType = "attestation" // a new signed attestation is recorded
	EventState       EventType = "state"       // a commit moves between two states
	EventPolicy      EventType = "policy"      // a policy contract is updated
	EventRadar       EventType = "radar"       // the radar finds an overlap
	EventViolation   EventType = "violation"   // a deployment that does not count is recorded, or made good
	EventCommit      EventType = "commit"      // a commit object proves what a commit is
)

// EventTypes lists all event types. The database has sets of them as bits in this order.
func EventTypes() []EventType {
	return []EventType{EventAttestation, EventState, EventPolicy, EventRadar, EventViolation, EventCommit}
}

// DefaultEventTypes lists the event types that streams, lists and webhooks have if they ask
// for none.
func DefaultEventTypes() []EventType {
	return []EventType{EventAttestation, EventState, EventPolicy}
}

// ParseEventType parses the name of an event type.
func ParseEventType(name string) (EventType, error) {
	for _, t := range EventTypes() {
		if string(t) == name {
			return t, nil
		}
	}
	return "", fmt.Errorf("%q is not an event type (use attestation, state, policy, radar, violation or commit)", name)
}

// ParseEventTypes parses a comma-separated list of event types.
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

// An Event is the body of one event: an AttestationEvent, StateEvent, PolicyEvent,
// RadarEvent, ViolationEvent or CommitEvent. Fields are written in the order of their declaration;
// within v1 of the API, fields are added but never removed.
type Event interface {
	EventType() EventType
	// typed returns the event with its Type set.
	typed() Event
}

// An AttestationEvent reports that an attestation was recorded.
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

// A StateEvent reports that a commit moved between two states.
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

// A PolicyEvent reports that a repo's contract was updated.
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

// A RadarEvent reports a new overlap of two commits, or an overlap whose level rose. It
// is an event of the commit registered later.
type RadarEvent struct {
	ID     string      `json:"id"`
	Type   EventType   `json:"type"` // set by Render
	Org    string      `json:"org"`
	Repo   string      `json:"repo"`
	Commit string      `json:"commit"`
	Level  radar.Level `json:"level"`
	Other  RadarOther  `json:"other"`
	// Paths holds the strongest paths, strongest first. Render truncates it to limit
	// the size of the body; PathsTotal counts all paths.
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

// A RadarEventPath is a radar.Path without its line ranges.
type RadarEventPath struct {
	Path   string       `json:"path"`
	Level  radar.Level  `json:"level"`
	Reason radar.Reason `json:"reason"`
}

// A CommitEvent reports that the ledger has seen the object of a commit, which proves what
// the commit is.
type CommitEvent struct {
	ID     string    `json:"id"`
	Type   EventType `json:"type"` // set by Render
	Org    string    `json:"org"`
	Repo   string    `json:"repo"`
	Commit string    `json:"commit"`
	Tree   string    `json:"tree"`
	// Corrected holds what registrations had claimed otherwise. It is empty, not nil, if
	// nothing was.
	Corrected []CorrectedField `json:"corrected"`
	Timestamp Time             `json:"timestamp"`
}

// A CorrectedField is a field of a Correction, with its values.
type CorrectedField struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// EventType returns EventAttestation.
func (AttestationEvent) EventType() EventType { return EventAttestation }

// EventType returns EventState.
func (StateEvent) EventType() EventType { return EventState }

// EventType returns EventPolicy.
func (PolicyEvent) EventType() EventType { return EventPolicy }

// EventType returns EventRadar.
func (RadarEvent) EventType() EventType { return EventRadar }

// EventType returns EventCommit.
func (CommitEvent) EventType() EventType { return EventCommit }

func (e CommitEvent) typed() Event      { e.Type = e.EventType(); return e }
func (e AttestationEvent) typed() Event { e.Type = e.EventType(); return e }
func (e StateEvent) typed() Event       { e.Type = e.EventType(); return e }
func (e PolicyEvent) typed() Event      { e.Type = e.EventType(); return e }

func (e RadarEvent) typed() Event {
	e.Type = e.EventType()
	e.PathsTotal = max(e.PathsTotal, len(e.Paths))
	e.Paths = truncatePaths(e.Paths)
	return e
}

// maxRadarText limits the paths of a radar event, in bytes of JSON. The other fields
// take a few KiB, so the body stays below 256 KiB, the limit of a webhook's body.
const maxRadarText = 192 << 10

// truncatePaths returns the first paths, as many as the body of an event may hold.
func truncatePaths(paths []RadarEventPath) []RadarEventPath {
	paths = paths[:min(len(paths), radar.MaxPaths)]
	size := 0
	for i := range paths {
		if size += len(text.JSON(paths[i])) + 1; size > maxRadarText {
			return paths[:i]
		}
	}
	return paths
}

// Render returns the body of an event as JSON. It is called once for each event: the
// same bytes are stored, listed and delivered to webhooks.
func Render(e Event) []byte { return text.JSON(e.typed()) }

// EventPaths converts paths to the form that a RadarEvent holds.
func EventPaths(paths []radar.Path) []RadarEventPath {
	short := make([]RadarEventPath, len(paths))
	for i, p := range paths {
		short[i] = RadarEventPath{p.Path, p.Level, p.Reason}
	}
	return short
}
