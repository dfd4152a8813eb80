package sqldb

import "time"

// An IncidentKind names what fails during an Incident.
type IncidentKind string

// The kinds of incident. An engine is not ready during the first three.
const (
	FileIncident       IncidentKind = "database file"
	WriteIncident      IncidentKind = "writing"
	ReadIncident       IncidentKind = "reading"
	CheckpointIncident IncidentKind = "WAL checkpoint"
	WALIncident        IncidentKind = "WAL size"
)

// An Incident is a time during which part of an engine fails. It begins with the first
// failure, and ends when there was none for a few seconds. So it is reported twice,
// however many failures it has.
type Incident struct {
	Kind  IncidentKind
	Err   error  // of the first failure
	Help  string // what the administrator should do, or empty
	Begun time.Time
	Count int // the number of failures
}
