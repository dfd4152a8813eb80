package sqldb

import "time"

// A TroubleKind is what does not work during a Trouble.
type TroubleKind string

// The kinds of trouble. An engine is not ready during the first three.
const (
	FileTrouble       TroubleKind = "database file"
	WriteTrouble      TroubleKind = "writing"
	ReadTrouble       TroubleKind = "reading"
	CheckpointTrouble TroubleKind = "WAL checkpoint"
	WALTrouble        TroubleKind = "WAL size"
)

// A Trouble is a time during which part of an engine fails. It begins with the first
// failure, and ends when there was none for a few seconds. So it is reported twice,
// however many failures it has.
type Trouble struct {
	Kind  TroubleKind
	Err   error  // of the first failure
	Help  string // what the administrator should do, or empty
	Begun time.Time
	Count int // the number of failures
}
