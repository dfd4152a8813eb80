// Package trustpolicy reads trust policies of transparency logs (C2SP tlog-policy): which
// logs and witnesses are trusted, and which of the witnesses must have cosigned a
// checkpoint. Parse accepts exactly what the text of tlog-policy allows.
package trustpolicy

// The limits of a policy. tlog-policy recommends to support at least 32 logs, witnesses
// and groups.
const (
	MaxSize = 1 << 20 // in bytes
	MaxOf   = 256     // logs, witnesses and groups, each
)

// None is the quorum of a policy that needs no cosignatures.
const None = "none"

// A Policy says which checkpoints are valid: those that one of the logs has signed, and
// that witnesses have cosigned as the quorum demands.
type Policy struct {
	Logs      []Log
	Witnesses []Witness
	Groups    []Group
	// Quorum is the name of a witness or group, or None.
	Quorum string
}

// A Log is a log whose checkpoints are accepted. The name of its key is its origin.
type Log struct {
	Key Key
	URL string // may be empty
}

// A Witness is a witness whose cosignatures count.
type Witness struct {
	Name string
	Key  Key
	URL  string // submission prefix, may be empty
}

// A Group has witnessed a checkpoint if Threshold of its members have. The members are
// names of witnesses and of groups.
type Group struct {
	Name      string
	Threshold int
	Members   []string
}
